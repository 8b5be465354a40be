package provisioner

import (
	"database/sql"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mailretention/mailretention/internal/faultsql"
	"github.com/mailretention/mailretention/internal/mysqltest"
)

// After a failover the number of the lost connection may be that of somebody else's.
func TestKillLeavesOtherStatements(t *testing.T) {
	const theirs = "DO SLEEP(600)"
	faults := faultsql.New(mysqltest.Connector(t, ""))
	db := sql.OpenDB(faults)
	defer db.Close()
	p, err := New(db, Config{Database: "d"})
	require.NoError(t, err)
	c, err := db.Conn(t.Context())
	require.NoError(t, err)
	defer c.Close()
	var number uint64
	require.NoError(t, c.QueryRowContext(t.Context(), "SELECT CONNECTION_ID()").Scan(&number))
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		c.ExecContext(t.Context(), theirs) // MySQL says that it was ended, MariaDB doesn't
	}()
	for running := false; !running; time.Sleep(time.Millisecond) {
		require.NoError(t, each(t.Context(), db, selectRunning, []any{number, theirs}, []any{&number}, func() { running = true }))
	}
	killed := func() bool { return strings.Contains(strings.Join(faults.Log(), "\n"), "KILL QUERY") }
	require.NoError(t, p.kill(t.Context(), number, dropTable(p.Ident("raw-2026-06-03"))))
	require.False(t, killed())
	require.NoError(t, p.kill(t.Context(), number, theirs))
	require.True(t, killed())
	<-ended
}
