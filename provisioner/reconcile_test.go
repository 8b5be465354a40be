package provisioner_test

import (
	"context"
	"database/sql"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mailretention/mailretention/internal/faultsql"
	"github.com/mailretention/mailretention/provisioner"
	"github.com/mailretention/mailretention/retention"
)

// reconcile requires that a call repairs so many drifts and leaves none.
func (s *store) reconcile(want int) {
	s.t.Helper()
	repaired, err := s.Reconcile(s.t.Context())
	require.NoError(s.t, err)
	require.Equal(s.t, want, repaired)
	require.Empty(s.t, s.inventory().Drift)
}

func TestReconcileDeletesOrphans(t *testing.T) {
	bothBooks(t, func(t *testing.T, s *store) {
		s.book(s.day(60), fiveGB)
		s.book(s.day(2), fiveGB)
		s.book("raw-backup", 1)
		s.book(nil, 2)
		s.addDay(5, 3)
		s.reconcile(1)
		require.Equal(t, []string{s.day(2) + " 5000000000", "raw-backup 1", "NULL 2", s.day(5) + " 3"}, s.books())
	})
}

func TestReconcileDeletesOnlyOrphansAndNoTable(t *testing.T) {
	bothBooks(t, func(t *testing.T, s *store) {
		for ago := 3; ago < 10; ago++ {
			s.book(s.day(ago), fiveGB)
		}
		s.reconcile(7)
		require.Empty(t, s.books())
	})
}

func TestReconcileKeepsTheLowestOfDoubles(t *testing.T) {
	s := provisioned(t, provisioner.Config{})
	s.withoutKey()
	for _, ago := range []int{5, 6} {
		s.addDay(ago, 10)
		s.book(s.day(ago), 10)
	}
	s.exec("UPDATE "+s.Ident("raw_message_sizes")+" SET size=size+id WHERE table_name=?", s.day(6))
	s.addMessage(6, 77, false)
	s.book(s.day(40), 1)
	s.book(s.day(40), 1)
	lowest := s.column("SELECT MIN(id) FROM " + s.Ident("raw_message_sizes") + " GROUP BY table_name HAVING table_name IN ('" + s.day(5) + "','" + s.day(6) + "') ORDER BY 1")
	s.reconcile(3)
	require.Equal(t, []string{s.day(5) + " 10", s.day(6) + " 77"}, s.books())
	require.Equal(t, lowest, s.column("SELECT id FROM "+s.Ident("raw_message_sizes")+" ORDER BY id"))
}

func TestReconcileMakesMissingRows(t *testing.T) {
	bothBooks(t, func(t *testing.T, s *store) {
		s.addTable(s.day(5))
		s.addMessage(5, 100, false)
		s.addMessage(5, 20, true)
		s.addDay(6, 0)
		s.exec("UPDATE " + s.Ident("raw_message_sizes") + " SET size=NULL")
		s.addMessage(6, 3, false)
		s.reconcile(2)
		require.ElementsMatch(t, []string{s.day(5) + " 120", s.day(6) + " 3"}, s.books())
	})
}

func TestReconcileClearsDanglingPointers(t *testing.T) {
	pending := []int64{}
	s := provisioned(t, provisioner.Config{Pending: func(context.Context) ([]int64, error) { return pending, nil }})
	s.addDay(5, 1)
	kept := s.addMessage(5, 1, false)
	for range 3 {
		s.addMessage(6, 1, false)
	}
	s.addMessage(6, 1, true)
	pending = append(pending, s.addMessage(6, 1, false))
	s.addMessage(500, 1, false)
	s.book(s.day(500), 1)
	s.exec("INSERT INTO "+s.Ident("messages")+" (raw_table) VALUES (?)", s.day(6)+" ")
	s.reconcile(2)
	require.Equal(t, []string{"5"}, s.column("SELECT COUNT(*) FROM "+s.Ident("messages")+
		" WHERE raw_table IS NULL AND raw_headers_id IS NULL AND raw_body_id IS NULL AND size IS NULL AND timestamp > ?", s.today.AddDate(0, 0, -7).Unix()))
	require.Equal(t, []string{"1"}, s.column("SELECT COUNT(*) FROM "+s.Ident("messages")+" WHERE id=? AND raw_table=? AND size=1", kept, s.day(5)))
	require.Equal(t, []string{"2"}, s.column("SELECT COUNT(*) FROM "+s.Ident("messages")+" WHERE raw_table IS NOT NULL"),
		"the one that looks alike is not ours, and pointers go before an orphan of any age does")
}

func TestReconcileJudgesAgain(t *testing.T) {
	// What is an orphan when it is read is a day's table when the guard of the first repair has run, and a table without a row is gone.
	var s *store
	made := false
	s = provisioned(t, provisioner.Config{Guard: func(context.Context, *sql.Tx) error {
		if !made {
			made = true
			s.addTable(s.day(5))
			s.exec("DROP TABLE " + s.Ident(s.day(6)))
		}
		return nil
	}})
	s.addTable(s.day(6))
	s.book(s.day(9), 9)
	s.book(s.day(5), 5)
	repaired, err := s.Reconcile(t.Context())
	require.NoError(t, err)
	require.Equal(t, 1, repaired)
	require.Equal(t, []string{s.day(5) + " 5"}, s.books())
}

func TestReconcileStopsAtTheGuard(t *testing.T) {
	lost := errors.New("lease lost")
	s := provisioned(t, provisioner.Config{Guard: func(context.Context, *sql.Tx) error { return lost }})
	s.book(s.day(9), 9)
	s.book(s.day(8), 8)
	s.addTable(s.day(5))
	s.addMessage(6, 1, false)
	before := s.books()
	repaired, err := s.Reconcile(t.Context())
	require.Zero(t, repaired)
	require.ErrorIs(t, err, retention.ErrStop)
	require.ErrorIs(t, err, lost)
	require.Equal(t, before, s.books())
	require.Equal(t, []string{s.day(6)}, s.column("SELECT raw_table FROM "+s.Ident("messages")))
}

// Only the row tells of pointers that are older than what is looked through, so it goes last.
func TestReconcileClearsPointersBeforeTheirRow(t *testing.T) {
	lost := errors.New("lease lost")
	calls := 0
	s := provisioned(t, provisioner.Config{Guard: func(context.Context, *sql.Tx) error {
		if calls++; calls > 1 {
			return lost
		}
		return nil
	}})
	s.addMessage(500, 1, false)
	s.book(s.day(500), 1)
	_, err := s.Reconcile(t.Context())
	require.ErrorIs(t, err, lost)
	require.Zero(t, s.pointingAt(500))
	require.Len(t, s.books(), 1)
}

func TestReconcileBySixteenAtOnce(t *testing.T) {
	bothBooks(t, func(t *testing.T, s *store) {
		for ago := 3; ago < 13; ago++ {
			s.addTable(s.day(ago))
			s.addMessage(ago, 7, false)
			s.book(s.day(ago+20), 1)
			s.addMessage(ago+40, 1, false)
		}
		atOnce(t, 16, func(int) error {
			_, err := s.Reconcile(t.Context())
			return err
		})
		require.Empty(t, s.inventory().Drift)
		require.Len(t, s.books(), 10)
	})
}

func TestReconcileBesideCreatorsAndWriters(t *testing.T) {
	bothBooks(t, func(t *testing.T, s *store) {
		atOnce(t, 8, func(i int) error {
			for range 10 {
				if i%2 == 0 {
					if _, err := s.Reconcile(t.Context()); err != nil {
						return err
					}
					continue
				}
				if err := s.insert(t.Context(), s.today, 10); err != nil {
					return err
				}
			}
			return nil
		})
		require.Equal(t, []string{s.day(0) + " 400"}, s.books())
	})
}

func TestReconcileSaysThatItWasEnded(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	s := provisioned(t, provisioner.Config{Throttle: func(context.Context) error {
		cancel()
		return nil
	}})
	s.addMessage(6, 1, false)
	s.book(s.day(9), 9)
	_, err := s.Reconcile(ctx)
	require.ErrorIs(t, err, context.Canceled)
	s.Provisioner, err = provisioner.New(s.db, provisioner.Config{Database: s.name})
	require.NoError(t, err)
	require.NotEmpty(t, s.inventory().Drift)
	_, err = s.Reconcile(t.Context())
	require.NoError(t, err)
	require.Empty(t, s.inventory().Drift)
}

// A table that can't be seen while the sizes are read, as in the middle of being made, is left for the next call, and fails nothing.
func TestReconcileLeavesWhatCanNotBeMeasured(t *testing.T) {
	s := provisioned(t, provisioner.Config{})
	s.withoutKey()
	s.addDay(5, 1)
	s.book(s.day(5), 2)
	s.addTable(s.day(6))
	p, faults := s.faulty(provisioner.Config{})
	rename := func(from, to string) {
		for _, ago := range []int{5, 6} {
			s.exec("RENAME TABLE " + s.Ident(from+s.day(ago)) + " TO " + s.Ident(to+s.day(ago)))
		}
	}
	for range 2 { // of each table
		faults.Arm(
			faultsql.Fault{Text: "raw_table` IN (?)", Before: func() { rename("", "away-") }},
			faultsql.Fault{Text: "DATA_LENGTH", After: func() { rename("away-", "") }},
		)
	}
	repaired, err := p.Reconcile(t.Context())
	require.NoError(t, err)
	require.Zero(t, repaired)
	require.Equal(t, []string{s.day(5) + " 1", s.day(5) + " 2"}, s.books())
	faults.Reset()
	s.reconcile(2)
	require.Len(t, s.books(), 2)
}
