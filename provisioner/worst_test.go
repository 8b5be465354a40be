package provisioner_test

import (
	"context"
	"fmt"
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

// An index on more than the raw table has the messages in another order than that of their ids.
func TestDropTableByAnIndexOnMore(t *testing.T) {
	schema := provisioner.PostalSchema()
	schema.Messages.RawIndex = "on_raw_table_and_time"
	s := provisioned(t, provisioner.Config{Schema: schema})
	s.exec("CREATE INDEX on_raw_table_and_time ON " + s.Ident("messages") + " (raw_table, timestamp)")
	s.addDay(9, 1)
	s.addMessages(9, 1000)
	s.exec("UPDATE " + s.Ident("messages") + " SET timestamp=timestamp-id")
	batches := 0
	require.NoError(t, s.DropTable(t.Context(), s.day(9), func(int64) error { batches++; return nil }))
	require.Empty(t, s.pointing())
	require.Less(t, batches, 20)
}

// Nothing of the server's day goes, whatever a cut says that was made by another clock.
func TestPruneLeavesToday(t *testing.T) {
	s := provisioned(t, provisioner.Config{})
	s.addMessages(1, 10)
	first := s.addMessages(0, 2)
	require.NoError(t, s.PruneMessages(t.Context(), retention.Cut{Before: s.today.AddDate(1, 0, 0)}, nil))
	require.Equal(t, []int64{first, first + 1}, s.ids(fmt.Sprint("SELECT id FROM ", s.Ident("messages"), " ORDER BY id")))
}
