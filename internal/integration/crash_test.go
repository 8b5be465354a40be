package integration

import (
	"context"
	"database/sql"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mailretention/mailretention/internal/faultsql"
	"github.com/mailretention/mailretention/lease"
	"github.com/mailretention/mailretention/provisioner"
)

// operation is what a crash interrupts.
type operation struct {
	fill  func(m *mailbox) // puts the database back into the state before, whatever is there
	do    func(ctx context.Context, w *worker) error
	clean func(ctx context.Context, w *worker, err error) error // what is done after do ended with err; nil: do once more
}

// worker is a process that works on a mailbox: its pools are its own, and each of its statements may fail.
type worker struct {
	m      *mailbox
	faults *faultsql.Connector
	db     *sql.DB
	pool   *sql.DB // of the leases
	leases *lease.Leases
	store  *provisioner.Provisioner
}

// worker starts a worker. BatchTime is so long that the sizes of batches don't depend on how fast the machine is.
func (m *mailbox) worker(params ...string) *worker {
	m.t.Helper()
	faults := faultsql.New(m.connector(params...))
	w := &worker{m: m, faults: faults, db: sql.OpenDB(faults), pool: sql.OpenDB(faults)}
	var err error
	w.leases, err = lease.New(w.pool, lease.Config{Table: m.name + "." + leaseTable})
	require.NoError(m.t, err)
	w.store = m.provisioner(w.db, provisioner.Config{
		BatchTime: time.Hour,
		Pending:   func(context.Context) ([]int64, error) { return m.queue, nil },
		Guard: func(ctx context.Context, tx *sql.Tx) error {
			if _, held := lease.FromContext(ctx); !held {
				return nil // the work is done without a lease
			}
			return w.leases.Guard(ctx, tx)
		},
	})
	return w
}

// die closes the worker's pools: whatever it still tries comes to nothing, as in a process that was killed.
func (w *worker) die() {
	w.db.Close()
	w.pool.Close()
}

// crashEverywhere interrupts the operation at each of its statements, in three ways. Each time it looks at once, and again after
// the operation was done once more without a fault: then the database is as if nothing had happened.
func crashEverywhere(t *testing.T, op operation) {
	for _, kind := range []faultsql.Kind{faultsql.FailBefore, faultsql.LoseAnswer, faultsql.Dead} {
		t.Run(string(kind), func(t *testing.T) {
			t.Parallel()
			c := newCrash(t, op)
			points := 0
			for c.interrupt(faultsql.Fault{At: points + 1, Kind: kind}) {
				points++
			}
			require.GreaterOrEqual(t, points, c.statements, "each of its statements was reached")
			t.Logf("%d crash points", points)
		})
	}
}

// crash is an operation on a database of its own, and what it does when nothing happens.
type crash struct {
	*mailbox
	op            operation
	before, after state
	statements    int
}

func newCrash(t *testing.T, op operation) *crash {
	t.Helper()
	c := &crash{mailbox: newCrashMailbox(t), op: op}
	op.fill(c.mailbox)
	c.before = c.state()
	w := c.worker()
	defer w.die()
	require.NoError(t, op.do(t.Context(), w))
	c.statements = w.faults.Count()
	c.after = c.state()
	c.requireBooksAgree()
	return c
}

// interrupt does the operation with a fault; false if it ended before the fault happened.
func (c *crash) interrupt(fault faultsql.Fault) (happened bool) {
	c.t.Helper()
	c.op.fill(c.mailbox)
	w := c.worker()
	defer w.die()
	if fault.Kind == faultsql.Dead {
		fault.After = w.die
	}
	w.faults.Arm(fault)
	err := c.op.do(c.t.Context(), w)
	if w.faults.Armed() > 0 {
		require.NoError(c.t, err)
		return false
	}
	c.healed(err, fmt.Sprintf("after %s (%d) at statement %d, %q, which ended with %v", fault.Kind, fault.Number, fault.At, w.faults.Log()[fault.At-1], err))
	return true
}

// healed looks at what an interrupted operation that ended with err left behind, and does it again.
func (c *crash) healed(err error, why string) {
	c.t.Helper()
	requireNothingLost(c.t, c.before, c.state(), c.after, why)
	w := c.worker()
	defer w.die()
	if c.op.clean == nil {
		err = c.op.do(c.t.Context(), w)
	} else {
		err = c.op.clean(c.t.Context(), w, err)
	}
	require.NoError(c.t, err, "the clean run %s", why)
	requireSame(c.t, c.after, c.state(), why)
}
