package provisioner_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mailretention/mailretention/internal/mysqltest"
	"github.com/mailretention/mailretention/provisioner"
	"github.com/mailretention/mailretention/retention"
)

// What goes and what is counted does not depend on the DSN, nor on how many connections there are. Sessions are as they were found.
func TestDeletingInOddSessions(t *testing.T) {
	for name, params := range oddSessions(t) {
		t.Run(name, func(t *testing.T) {
			mysqltest.NoLeaks(t)
			q := &queue{}
			s := provisioned(t, provisioner.Config{})
			db := mysqltest.Open(t, s.name, params...)
			db.SetMaxOpenConns(1)
			p, err := provisioner.New(db, provisioner.Config{Database: s.name, LockWait: time.Second, Pending: func(ctx context.Context) ([]int64, error) {
				var one int
				if err := db.QueryRowContext(ctx, "SELECT 1").Scan(&one); err != nil { // the queue is on the same, only connection
					return nil, err
				}
				return q.Pending(ctx)
			}})
			require.NoError(t, err)
			settings := func() (value string) {
				require.NoError(t, db.QueryRowContext(t.Context(), "SELECT CONCAT_WS(' ', @@autocommit, @@sql_mode, @@sql_safe_updates, @@lock_wait_timeout, @@innodb_lock_wait_timeout)").Scan(&value))
				return value
			}
			before := settings()
			s.addDay(9, 1)
			s.addDay(8, 1)
			first := s.addMessages(9, 300)
			s.addChildren(first)
			s.addChildren(first + 299)
			kept := s.addMessages(8, 10)
			s.addChildren(kept)
			q.add(kept)
			s.exec(fmt.Sprint("UPDATE ", s.Ident("messages"), " SET held=1 WHERE id=", kept+1))
			s.addChildren(kept + 1)

			var cleared, pruned int64
			count := func(sum *int64) func(int64) error { return func(n int64) error { *sum += n; return nil } }
			require.NoError(t, p.DropTable(t.Context(), s.day(9), count(&cleared)))
			require.EqualValues(t, 300, cleared)
			require.ErrorIs(t, p.DropTable(t.Context(), s.day(8), count(&cleared)), retention.ErrInUse)
			require.EqualValues(t, 308, cleared)
			require.Equal(t, []int64{kept, kept + 1}, s.pointing())
			require.Equal(t, []string{s.day(8)}, s.tables())
			require.Equal(t, []string{s.day(8) + " 1"}, s.books())

			require.NoError(t, p.PruneMessages(t.Context(), retention.Cut{Before: s.today}, count(&pruned)))
			require.EqualValues(t, 308, pruned)
			s.requireMessages([]int64{kept, kept + 1})
			require.Equal(t, before, settings())
		})
	}
}
