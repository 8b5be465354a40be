package benchmark

import (
	"context"
	"database/sql"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mailretention/mailretention/internal/faultsql"
	"github.com/mailretention/mailretention/lease"
	"github.com/mailretention/mailretention/provisioner"
	"github.com/mailretention/mailretention/retention"
)

// mostStatements is what a run with nothing to do may take, its lease included.
const mostStatements = 8

// aMonth is a policy under which nothing of the last thirty days goes.
func aMonth() retention.Policy {
	return retention.Policy{RawDays: new(30), RawBytes: new(int64(1) << 40), MessageDays: new(60)}
}

func TestStatementsOfARunWithNothingToDo(t *testing.T) {
	m := sharedServer(t).newMailbox(t, content{perDay: evenly(30, 3000), bytes: 10})
	m.exec("DELETE FROM messages WHERE id<=10") // below the first message left, children without one are looked for
	statements := m.statementsOfNothing()
	require.Len(t, statements, mostStatements, "%q", statements)
}

// statementsOfNothing are those of a run that has nothing to do, after the first use.
func (m *mailbox) statementsOfNothing() (log []string) {
	m.t.Helper()
	work, beats := faultsql.New(connector(m.t, m.server.dsn(m.name), 0)), faultsql.New(connector(m.t, m.server.dsn(m.name), 0))
	open := func(c *faultsql.Connector) *sql.DB {
		db := sql.OpenDB(c)
		m.t.Cleanup(func() { require.NoError(m.t, db.Close()) })
		return db
	}
	leases, err := lease.New(open(beats), lease.Config{})
	require.NoError(m.t, err)
	store, err := provisioner.New(open(work), provisioner.Config{Database: m.name, Guard: leases.Guard})
	require.NoError(m.t, err)
	for range 2 {
		work.Reset()
		beats.Reset()
		report, err := retention.Run(m.t.Context(), store, retention.Config{Name: m.name, Policy: aMonth(), Locker: leases})
		require.NoError(m.t, err)
		require.Equal(m.t, retention.OutcomeNothingToDo, report.Outcome, "%s", report)
	}
	return append(beats.Log(), work.Log()...)
}

// roundTrips does nothing as often as these statements: a constant is read for a read, and a row written by its key for a write.
func roundTrips(db *sql.DB, statements []string) func(context.Context) error {
	return func(ctx context.Context) error {
		for _, statement := range statements {
			bare := bareRead
			if strings.HasPrefix(statement, "UPDATE") {
				bare = bareWrite
			}
			if _, err := db.ExecContext(ctx, bare); err != nil {
				return err
			}
		}
		return nil
	}
}
