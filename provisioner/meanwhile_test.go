package provisioner_test

import (
	"context"
	"database/sql"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mailretention/mailretention/internal/faultsql"
	"github.com/mailretention/mailretention/provisioner"
	"github.com/mailretention/mailretention/retention"
)

// A held message is released in this order: it is queued, tried, and no longer held. What the queue said before that is too little.
func TestAReleasedMessageStays(t *testing.T) {
	for name, work := range map[string]func(s *store, progress func(int64) error) error{
		"when its table would go": func(s *store, progress func(int64) error) error { return s.DropTable(t.Context(), s.day(9), progress) },
		"when it would be pruned": func(s *store, progress func(int64) error) error {
			return s.PruneMessages(t.Context(), retention.Cut{Before: s.today}, progress)
		},
	} {
		t.Run(name, func(t *testing.T) {
			q := &queue{}
			s := provisioned(t, provisioner.Config{Pending: func(ctx context.Context) ([]int64, error) {
				time.Sleep(10 * time.Millisecond) // so dear that it isn't asked before each batch
				return q.Pending(ctx)
			}})
			s.addDay(9, 1)
			released := s.addMessages(9, 1000) + 999
			hold := func(held int) { s.execf("UPDATE %s SET held=%d WHERE id=%d", s.Ident("messages"), held, released) }
			hold(1)
			batches := 0
			err := work(s, func(int64) error {
				if batches++; batches == 1 {
					q.add(released)
					hold(0)
				}
				return nil
			})
			if err != nil {
				require.ErrorIs(t, err, retention.ErrInUse)
			}
			require.Equal(t, []int64{released}, s.pointing())
		})
	}
}

// A table that is made again when it had gone, by a late writer or from a backup, keeps the messages that point at it.
func TestATableThatComesBack(t *testing.T) {
	clearing := "CASE WHEN TRUE" // the first statement that takes references to a table that is gone
	comesBack := func(t *testing.T) (s *store, p *provisioner.Provisioner, id *int64) {
		s = provisioned(t, provisioner.Config{})
		p, faults := s.faulty(provisioner.Config{})
		id = new(int64)
		faults.Arm(faultsql.Fault{Text: clearing, Before: func() {
			s.addTable(s.day(9))
			*id = s.addMessage(9, 1, false)
		}})
		return s, p, id
	}
	for name, before := range map[string]int{"after its drop": 1, "before its drop": 0} {
		t.Run(name, func(t *testing.T) {
			s, p, id := comesBack(t)
			s.book(s.day(9), 1)
			if before > 0 {
				s.addTable(s.day(9))
			}
			require.ErrorIs(t, p.DropTable(t.Context(), s.day(9), nil), retention.ErrInUse)
			require.Equal(t, []int64{*id}, s.pointing())
			require.Equal(t, []string{s.day(9)}, s.tables())
			require.Len(t, s.books(), 1)
		})
	}
	t.Run("before its pointers are repaired", func(t *testing.T) {
		s, p, id := comesBack(t)
		first := s.addMessage(9, 1, true)
		repaired, err := p.Reconcile(t.Context())
		require.NoError(t, err)
		require.Zero(t, repaired)
		require.Equal(t, []int64{first, *id}, s.pointing())
	})
}

// A message comes between ids whose references go, after these were read, and is queued.
func TestDropTableAWriterBetweenTheIds(t *testing.T) {
	q := &queue{}
	s := provisioned(t, provisioner.Config{})
	p, faults := s.faulty(provisioner.Config{Pending: q.Pending})
	s.addDay(9, 1)
	first := s.addMessages(9, 3)
	s.execf("UPDATE %s SET id=id+1 WHERE id=%d", s.Ident("messages"), first+2)
	faults.Arm(faultsql.Fault{Text: "UPDATE", Before: func() {
		s.addMessages(9, 1)
		s.execf("UPDATE %s SET id=%d WHERE id=%d", s.Ident("messages"), first+2, first+4)
		q.add(first + 2)
	}})
	require.ErrorIs(t, p.DropTable(t.Context(), s.day(9), nil), retention.ErrInUse)
	require.Equal(t, []int64{first + 2}, s.pointing())
}

// A message whose mail is put into another table after it was read keeps that.
func TestDropTableOfAMessageThatMoved(t *testing.T) {
	s := provisioned(t, provisioner.Config{})
	p, faults := s.faulty(provisioner.Config{})
	s.addDay(9, 1)
	s.addMessage(9, 1, false)
	faults.Arm(faultsql.Fault{Text: "UPDATE", Before: func() { s.exec("UPDATE "+s.Ident("messages")+" SET raw_table=?", s.day(8)) }})
	require.NoError(t, p.DropTable(t.Context(), s.day(9), nil))
	require.Equal(t, 1, s.pointingAt(8))
}

func TestDropTableNoticesWhatIsNeededMeanwhile(t *testing.T) {
	for name, meanwhile := range map[string]func(s *store, q *queue, id int64){
		"queued": func(_ *store, q *queue, id int64) { q.add(id) },
		"held": func(s *store, _ *queue, id int64) {
			s.exec(fmt.Sprint("UPDATE ", s.Ident("messages"), " SET held=1 WHERE id=", id))
		},
	} {
		t.Run(name+" between two batches", func(t *testing.T) {
			q := &queue{}
			s := provisioned(t, provisioner.Config{Pending: q.Pending})
			s.addDay(9, 1)
			last := s.addMessages(9, 300) + 299
			batches := 0
			err := s.DropTable(t.Context(), s.day(9), func(int64) error {
				if batches++; batches == 1 {
					meanwhile(s, q, last)
				}
				return nil
			})
			require.ErrorIs(t, err, retention.ErrInUse)
			require.Greater(t, batches, 1)
			require.Equal(t, []int64{last}, s.pointing())
			require.Equal(t, []string{s.day(9)}, s.tables())
		})
		t.Run(name+" just before the drop", func(t *testing.T) {
			q := &queue{}
			var s *store
			var id int64
			s = provisioned(t, provisioner.Config{Pending: q.Pending, Guard: func(context.Context, *sql.Tx) error {
				if s.pointingAt(9) == 0 {
					id = s.addMessage(9, 1, false)
					meanwhile(s, q, id)
				}
				return nil
			}})
			s.addDay(9, 1)
			s.addMessage(9, 1, false)
			require.ErrorIs(t, s.DropTable(t.Context(), s.day(9), nil), retention.ErrInUse)
			require.Equal(t, []int64{id}, s.pointing())
			require.Equal(t, []string{s.day(9)}, s.tables())
		})
	}
}

// A writer that was slow for days stores a pointer at a table that went meanwhile: the next call clears it, whatever needs it.
func TestLateWriter(t *testing.T) {
	q := &queue{}
	s := provisioned(t, provisioner.Config{Pending: q.Pending})
	s.addDay(9, 1)
	require.NoError(t, s.DropTable(t.Context(), s.day(9), nil))
	s.addMessage(9, 1, false)
	s.addMessage(9, 1, true)
	q.add(s.addMessage(9, 1, false))
	var rows int64
	require.NoError(t, s.DropTable(t.Context(), s.day(9), func(n int64) error { rows += n; return nil }))
	require.EqualValues(t, 3, rows)
	require.Empty(t, s.pointing())
}

// A message queued or put on hold in the middle of pruning stays, with its children.
func TestPruneNoticesWhatIsNeededMeanwhile(t *testing.T) {
	q := &queue{}
	s := provisioned(t, provisioner.Config{Pending: q.Pending})
	last := s.addMessages(5, 400) + 399
	s.addChildren(last)
	s.addChildren(last - 1)
	batches := 0
	require.NoError(t, s.PruneMessages(t.Context(), retention.Cut{Before: s.today}, func(int64) error {
		if batches++; batches == 1 {
			q.add(last)
			s.exec(fmt.Sprint("UPDATE ", s.Ident("messages"), " SET held=1 WHERE id=", last-1))
		}
		return nil
	}))
	require.Greater(t, batches, 1)
	s.requireMessages([]int64{last - 1, last})
}

// What is added to a message, or protects it, while its batch is under way.
func TestPruneWhatChangesMeanwhile(t *testing.T) {
	for name, test := range map[string]struct {
		at       string // the statement before which it happens
		change   string
		messages []int64
	}{
		"a child of a message that went":   {at: "FROM %messages WHERE", change: "INSERT INTO %deliveries (message_id) VALUES (2)", messages: nil},
		"held before its children went":    {at: "FROM %clicks WHERE", change: "UPDATE %messages SET held=1 WHERE id=2", messages: []int64{2}},
		"held when its children had gone":  {at: "FROM %messages WHERE", change: "UPDATE %messages SET held=1 WHERE id=2", messages: []int64{2}},
		"young when its children had gone": {at: "FROM %messages WHERE", change: "UPDATE %messages SET timestamp=UNIX_TIMESTAMP()+86400 WHERE id=2", messages: []int64{2}},
		"gone by another's hand":           {at: "FROM %clicks WHERE", change: "DELETE FROM %messages WHERE id=2", messages: nil},
	} {
		t.Run(name, func(t *testing.T) {
			s := provisioned(t, provisioner.Config{})
			p, faults := s.faulty(provisioner.Config{})
			s.exec("INSERT INTO " + s.Ident("messages") + " (id, timestamp) VALUES (1, 1), (2, 1), (3, 1)")
			for id := range int64(3) {
				s.addChildren(id + 1)
			}
			in := func(text string) string {
				before, after, _ := strings.Cut(text, "%")
				table, rest, _ := strings.Cut(after, " ")
				return before + s.Ident(table) + " " + rest
			}
			faults.Arm(faultsql.Fault{Text: strings.TrimSpace(in(test.at)), Before: func() { s.exec(in(test.change)) }})
			require.NoError(t, p.PruneMessages(t.Context(), retention.Cut{Before: s.today}, nil))
			require.Zero(t, faults.Armed())
			s.requireMessages(test.messages)
		})
	}
}

// A message comes between ids that go, with a child that is committed, after these ids were read: both stay.
func TestPruneAWriterBetweenTheIds(t *testing.T) {
	s := provisioned(t, provisioner.Config{})
	p, faults := s.faulty(provisioner.Config{})
	s.exec("INSERT INTO " + s.Ident("messages") + " (id, timestamp) VALUES (1, 1), (2, 1), (4, 1)")
	faults.Arm(faultsql.Fault{Text: "DELETE", Before: func() {
		s.exec("INSERT INTO "+s.Ident("messages")+" (id, timestamp) VALUES (3, ?)", s.today.Unix())
		s.addChildren(3)
	}})
	require.NoError(t, p.PruneMessages(t.Context(), retention.Cut{Before: s.today}, nil))
	s.requireMessages([]int64{3})
}

// A writer that has not committed its message and a child of it: neither goes, nor what a running writer adds.
func TestPruneBesideAnUncommittedWriter(t *testing.T) {
	s := provisioned(t, provisioner.Config{})
	last := s.addMessages(5, 500) + 499
	tx, err := s.db.BeginTx(t.Context(), nil)
	require.NoError(t, err)
	defer tx.Rollback()
	result, err := tx.ExecContext(t.Context(), "INSERT INTO "+s.Ident("messages")+" (timestamp) VALUES (?)", s.today.Unix())
	require.NoError(t, err)
	id, err := result.LastInsertId()
	require.NoError(t, err)
	require.Greater(t, id, last)
	_, err = tx.ExecContext(t.Context(), "INSERT INTO "+s.Ident("deliveries")+" (message_id) VALUES (?)", id)
	require.NoError(t, err)

	require.NoError(t, s.prune())
	require.NoError(t, tx.Commit())
	require.Equal(t, []int64{id}, s.ids("SELECT id FROM "+s.Ident("messages")))
	require.Equal(t, []int64{id}, s.ids("SELECT message_id FROM "+s.Ident("deliveries")))
}

// A child is committed before its message, whose id is below that of messages which stay.
func TestPruneAWriterOfAChildFirst(t *testing.T) {
	s := provisioned(t, provisioner.Config{})
	p, faults := s.faulty(provisioner.Config{})
	s.exec("INSERT INTO "+s.Ident("messages")+" (id, timestamp) VALUES (1, 1), (100, ?)", s.today.Unix())
	s.addChildren(50)
	s.addChildren(100)
	faults.Arm(faultsql.Fault{Text: "FOR UPDATE", Before: func() {
		s.exec("INSERT INTO "+s.Ident("messages")+" (id, timestamp) VALUES (50, ?)", s.today.Unix())
	}})
	require.NoError(t, p.PruneMessages(t.Context(), retention.Cut{Before: s.today}, nil))
	s.requireMessages([]int64{50, 100})
}

// Another one, without a lease, deletes the very rows of each batch first: there is progress all the same.
func TestPruneBesideOneThatIsFaster(t *testing.T) {
	s := provisioned(t, provisioner.Config{})
	p, faults := s.faulty(provisioner.Config{})
	first := s.addMessages(5, 300)
	for range 15 { // more than a batch is tried
		faults.Arm(faultsql.Fault{Text: "FROM " + s.Ident("messages") + " WHERE", Before: func() {
			s.execf("DELETE FROM %s WHERE id>%d ORDER BY id LIMIT 1", s.Ident("messages"), first)
		}})
	}
	require.NoError(t, p.PruneMessages(t.Context(), retention.Cut{Before: s.today}, nil))
	require.Zero(t, faults.Armed())
	s.requireMessages(nil)
}
