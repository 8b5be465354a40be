package provisioner_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mailretention/mailretention/internal/faultsql"
	"github.com/mailretention/mailretention/provisioner"
)

// bookkeepings are the kinds of bookkeeping that work, each with the column by which clients find a row.
var bookkeepings = map[string]struct {
	unique bool
	key    string
	alter  func(s *store)
}{
	"unique key":       {true, "table_name", func(*store) {}},
	"unique key alone": {true, "table_name", func(s *store) { s.alterBooks("DROP COLUMN id") }},
	"Postal's":         {false, "table_name", (*store).withoutKey},
	"no index on the name": {false, "id", func(s *store) {
		s.withoutKey()
		s.alterBooks("DROP KEY on_table_name")
	}},
}

func (s *store) alterBooks(how string) {
	s.t.Helper()
	s.execf("ALTER TABLE %s %s", s.Ident("raw_message_sizes"), how)
}

// booksChange is a change of what is booked for the table of a day.
type booksChange struct {
	ago     int
	table   bool  // whether there is one
	rows    []int // cases: how many rows the table has before
	do      func(s *store, p *provisioner.Provisioner) error
	deletes bool
	left    func(rows int) int
}

func booksChanges() map[string]booksChange {
	none := func(int) int { return 0 }
	one := func(int) int { return 1 }
	same := func(rows int) int { return rows }
	ensure := func(s *store, p *provisioner.Provisioner) error {
		_, err := p.EnsureDay(s.t.Context(), s.today)
		return err
	}
	reconcile := func(s *store, p *provisioner.Provisioner) error {
		_, err := p.Reconcile(s.t.Context())
		return err
	}
	drop := func(s *store, p *provisioner.Provisioner) error { return p.DropTable(s.t.Context(), s.day(4), nil) }
	return map[string]booksChange{
		"a new day":     {0, false, []int{0}, ensure, false, one},
		"a stale row":   {0, false, []int{1, 40}, ensure, false, same},
		"a missing row": {4, true, []int{0}, reconcile, false, one},
		"doubles":       {4, true, []int{2, 40}, reconcile, true, one},
		"an orphan":     {4, false, []int{1, 40}, reconcile, true, none},
		"a drop":        {4, true, []int{1, 40}, drop, true, none},
	}
}

// eachBooksChange runs a test for each change in each kind of bookkeeping. The rows of the table are few, among few others, or most of all.
func eachBooksChange(t *testing.T, test func(t *testing.T, s *store, c booksChange, key string)) {
	for kind, books := range bookkeepings {
		for what, c := range booksChanges() {
			for _, rows := range c.rows {
				if books.unique && rows > 1 {
					continue
				}
				t.Run(kind+"/"+what, func(t *testing.T) {
					s := provisioned(t, provisioner.Config{}, "innodb_lock_wait_timeout=1")
					books.alter(s)
					s.addDay(c.ago+2, 1)
					s.addDay(c.ago-2, 1)
					if c.table {
						s.addTable(s.day(c.ago))
					}
					for i := range rows {
						s.book(s.day(c.ago), i+5)
					}
					test(t, s, c, books.key)
					require.Len(t, s.column("SELECT size FROM "+s.Ident("raw_message_sizes")+" WHERE table_name=?", s.day(c.ago)), c.left(rows))
				})
			}
		}
	}
}

// Whoever changes what is booked for one table keeps nobody waiting who changes, or makes, another's row.
func TestBooksOfOthersAreFree(t *testing.T) {
	eachBooksChange(t, func(t *testing.T, s *store, c booksChange, key string) {
		p, faults := s.faulty(provisioner.Config{})
		books := s.Ident("raw_message_sizes")
		var statements []string
		for _, row := range s.column("SELECT "+key+" FROM "+books+" WHERE table_name<>?", s.day(c.ago)) {
			statements = append(statements, fmt.Sprintf("UPDATE %s SET size=size+1 WHERE %s='%s'", books, key, row))
		}
		for _, ago := range []int{c.ago + 1, c.ago - 1} {
			statements = append(statements, fmt.Sprintf("INSERT INTO %s (table_name, size) VALUES ('%s', 1)", books, s.day(ago)))
		}
		var errs []error
		faults.Arm(faultsql.Fault{Text: "COMMIT", Before: func() {
			for _, statement := range statements {
				_, err := s.db.ExecContext(t.Context(), statement)
				errs = append(errs, err)
			}
		}})
		require.NoError(t, c.do(s, p))
		require.Len(t, errs, 4)
		require.NoError(t, errors.Join(errs...))
	})
}

// A client that books to a row while it is deleted waits for that, and meets no deadlock.
func TestBooksAreDeletedBesideAClient(t *testing.T) {
	eachBooksChange(t, func(t *testing.T, s *store, c booksChange, _ string) {
		p, faults := s.faulty(provisioner.Config{})
		if !c.deletes {
			require.NoError(t, c.do(s, p))
			return
		}
		books := s.Ident("raw_message_sizes")
		client := make(chan error, 1)
		faults.Arm(faultsql.Fault{Text: "DELETE", Before: func() {
			go func() {
				_, err := s.db.ExecContext(t.Context(), "UPDATE "+books+" SET size=size+1 WHERE table_name='"+s.day(c.ago)+"'")
				client <- err
			}()
			waits := func() bool {
				return len(s.column("SELECT 1 FROM information_schema.INNODB_TRX WHERE trx_state='LOCK WAIT' AND trx_query LIKE CONCAT('UPDATE ', ?, '%')", books)) > 0
			}
			require.Eventually(t, waits, 10*time.Second, 150*time.Millisecond, "the list is a tenth of a second old")
		}})
		require.NoError(t, c.do(s, p))
		require.Zero(t, faults.Armed())
		require.NoError(t, <-client)
	})
}

// Nor does it wait for these, however many of all rows are its own.
func TestBooksWaitForNoOthers(t *testing.T) {
	eachBooksChange(t, func(t *testing.T, s *store, c booksChange, key string) {
		if key == "id" {
			require.NoError(t, c.do(s, s.Provisioner)) // without an index all rows are read
			return
		}
		client, err := s.db.BeginTx(t.Context(), &sql.TxOptions{Isolation: sql.LevelReadCommitted}) // it locks rows, and no gap where ours go
		require.NoError(t, err)
		defer client.Rollback()
		books := s.Ident("raw_message_sizes")
		for _, statement := range []string{
			fmt.Sprintf("UPDATE %s SET size=size+1 WHERE table_name='%s'", books, s.day(c.ago+2)),
			fmt.Sprintf("INSERT INTO %s (table_name, size) VALUES ('%s', 1)", books, s.day(c.ago+3)),
		} {
			_, err := client.ExecContext(t.Context(), statement)
			require.NoError(t, err)
		}
		if c.table {
			require.NoError(t, s.InsertInto(t.Context(), s.today.AddDate(0, 0, -c.ago), func(context.Context, string) (int64, error) { return 1, nil }))
		}
		require.NoError(t, c.do(s, s.Provisioner))
	})
}
