package provisioner_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mailretention/mailretention/provisioner"
	"github.com/mailretention/mailretention/retention"
)

// deletingWorks drops tables and prunes messages in the sessions of s, and makes and checks through plain what goes and what is counted.
func deletingWorks(t *testing.T, s, plain *store) {
	t.Helper()
	q := &queue{}
	p, err := provisioner.New(s.db, provisioner.Config{Database: s.name, Pending: func(ctx context.Context) ([]int64, error) {
		var one int
		if err := s.db.QueryRowContext(ctx, "SELECT 1").Scan(&one); err != nil { // the queue can be on the same, only connection
			return nil, err
		}
		return q.Pending(ctx)
	}})
	require.NoError(t, err)
	require.NoError(t, p.Provision(t.Context()))
	settings := "SELECT CONCAT_WS(' ', @@autocommit, @@sql_mode, @@sql_safe_updates, @@lock_wait_timeout, @@innodb_lock_wait_timeout)"
	before := s.column(settings)
	plain.addDay(9, 1)
	plain.addDay(8, 1)
	first := plain.addMessages(9, 300)
	plain.addChildren(first)
	plain.addChildren(first + 299)
	pending := plain.addMessages(8, 10)
	held := pending + 1
	q.add(pending)
	plain.exec(fmt.Sprint("UPDATE ", plain.Ident("messages"), " SET held=1 WHERE id=", held))
	plain.addChildren(pending)
	plain.addChildren(held)

	var rows int64
	count := func(n int64) error { rows += n; return nil }
	require.NoError(t, p.DropTable(t.Context(), plain.day(9), count))
	require.EqualValues(t, 300, rows)
	require.ErrorIs(t, p.DropTable(t.Context(), plain.day(8), count), retention.ErrInUse)
	require.EqualValues(t, 308, rows)
	require.Equal(t, []int64{pending, held}, plain.pointing())
	require.Equal(t, []string{plain.day(8)}, plain.tables())
	require.Equal(t, []string{plain.day(8) + " 1"}, plain.books())

	rows = 0
	require.NoError(t, p.PruneMessages(t.Context(), retention.Cut{Before: plain.today}, count))
	require.EqualValues(t, 308, rows)
	plain.requireMessages([]int64{pending, held})
	require.Equal(t, before, s.column(settings), "the session is as it was found")
}
