package integration

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mailretention/mailretention/internal/faultsql"
	"github.com/mailretention/mailretention/internal/mysqlerr"
	"github.com/mailretention/mailretention/internal/mysqltest"
)

const (
	somePoints = 10
	delay      = 50 * time.Millisecond

	// childVariable holds, for a test that runs itself as a process to be killed, the database and the statement.
	childVariable = "MAILRETENTION_TEST_CHILD"
)

// points are statements of the operation, from its first to its last.
func (c *crash) points() (at []int) {
	for i := range somePoints {
		at = append(at, 1+i*(c.statements-1)/(somePoints-1))
	}
	return at
}

// A server refuses a statement; what else it says is true.
func TestCrashByAServersErrorAtTenPoints(t *testing.T) {
	t.Parallel()
	numbers := []uint16{
		mysqlerr.Deadlock, mysqlerr.ChangedSinceRead, mysqlerr.LockWaitTimeout, mysqlerr.LockNotAvailable, mysqlerr.QueryInterrupted,
		mysqlerr.StatementTimeout, mysqlerr.BinlogStatementOnly, mysqlerr.TableDenied, mysqlerr.UnknownTable,
		1040, // too many connections
		1053, // shutdown
		1180, // error during commit
		1290, // read only
	}
	c := newCrash(t, leasedRun())
	points := 0
	for _, number := range numbers {
		for _, at := range c.points() {
			require.True(t, c.interrupt(faultsql.Fault{At: at, Kind: faultsql.ServerError, Number: number}))
			points++
		}
	}
	t.Logf("%d crash points", points)
}

// A statement that takes long changes nothing, and one during which the caller gives up ends the run.
func TestCrashByADelayAtTenPoints(t *testing.T) {
	t.Parallel()
	c := newCrash(t, leasedRun())
	for _, at := range c.points() {
		c.op.fill(c.mailbox)
		w := c.worker()
		w.faults.Arm(faultsql.Fault{At: at, Delay: delay})
		require.NoError(t, c.op.do(t.Context(), w))
		require.Zero(t, w.faults.Armed())
		requireSame(t, c.after, c.state(), "after a delay")
		w.die()

		c.op.fill(c.mailbox)
		w = c.worker()
		ctx, cancel := context.WithCancel(t.Context())
		w.faults.Arm(faultsql.Fault{At: at, Before: cancel, Delay: delay})
		err := c.op.do(ctx, w)
		require.Zero(t, w.faults.Armed())
		if err != nil {
			require.ErrorIs(t, err, context.Canceled)
		}
		c.healed(err, "after its context had ended")
		w.die()
	}
	t.Logf("%d crash points", 2*somePoints)
}

// A process is killed, and another one gets its lease as soon as it may be stolen, and goes on.
func TestCrashByAKillAtTenPoints(t *testing.T) {
	if child := os.Getenv(childVariable); child != "" {
		database, at, _ := strings.Cut(child, " ")
		n, err := strconv.Atoi(at)
		require.NoError(t, err)
		m := openMailbox(t, mysqltest.Open(t, database), database)
		m.queue = runQueue()
		w := m.worker()
		w.faults.Arm(faultsql.Fault{At: n, Kind: faultsql.KillProcess})
		t.Fatal(fencedRun(t.Context(), w))
	}
	t.Parallel()
	onOneDay(t)
	c := newCrash(t, leasedRun())
	var killed []*mailbox
	for range somePoints {
		m := newCrashMailbox(t)
		fillForRun(m)
		killed = append(killed, m)
	}
	dsn := mysqltest.DSN(t, "")
	endings := together(somePoints, func(i int) error {
		child := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestCrashByAKillAtTenPoints$")
		child.Env = append(os.Environ(), "MAILRETENTION_DSN="+dsn, childVariable+"="+killed[i].name+" "+strconv.Itoa(c.points()[i]))
		out, err := child.CombinedOutput()
		if exit, ok := errors.AsType[*exec.ExitError](err); ok && exit.Sys().(syscall.WaitStatus).Signaled() {
			return nil
		}
		return errors.Join(errors.New("it was not killed"), err, errors.New(string(out)))
	})
	require.NoError(t, errors.Join(endings...))
	for _, m := range killed {
		requireNothingLost(t, c.before, m.state(), c.after, "after a kill")
		// A minute of the lease's time passes.
		m.exec("UPDATE " + m.store.Ident(leaseTable) + " SET ttl_us=1000000, expires_at=UTC_TIMESTAMP(6)")
	}
	endings = together(somePoints, func(i int) error {
		w := killed[i].worker()
		defer w.die()
		return fencedRun(t.Context(), w)
	})
	require.NoError(t, errors.Join(endings...))
	for _, m := range killed {
		requireSame(t, c.after, m.state(), "after a kill")
	}
	t.Logf("%d crash points", somePoints)
}
