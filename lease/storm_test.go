package lease_test

import (
	"database/sql"
	"errors"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mailretention/mailretention/internal/mysqltest"
	"github.com/mailretention/mailretention/lease"
)

// battlefield is a database for worker processes.
func battlefield(t testing.TB) (*sql.DB, orders) {
	t.Helper()
	db, name := mysqltest.DB(t)
	provisioned(t, db, lease.Config{})
	createWork(t, db)
	_, err := db.Exec(naiveTable)
	require.NoError(t, err)
	return db, orders{DSN: mysqltest.DSN(t, name), TTL: time.Minute}
}

// fight lets workers in eight processes fight and returns what went wrong.
func fight(t testing.TB, db *sql.DB, o orders) (terms int, wrong error) {
	t.Helper()
	const processes = 8
	o.Workers = 8
	var h history
	var children []*child
	for range processes {
		children = append(children, spawn(t, "storm", o))
	}
	var errs []error
	for _, c := range children {
		r := c.hear()
		require.NoError(t, c.cmd.Wait())
		h.intervals = append(h.intervals, r.Intervals...)
		for _, e := range r.Errors {
			errs = append(errs, errors.New(e))
		}
	}
	return h.terms(), errors.Join(errors.Join(errs...), h.check(written(t, db)))
}

func TestStormOn64WorkersInEightProcessesLeavesOneHistory(t *testing.T) {
	mysqltest.NoLeaks(t)
	db, o := battlefield(t)
	o.For = storm(15 * time.Second)
	terms, wrong := fight(t, db, o)
	require.NoError(t, wrong)
	require.Greater(t, terms, 64)
	t.Logf("%d terms, %d guarded rows", terms, len(written(t, db)))
}

func TestNaiveTwinFailsTheStorm(t *testing.T) {
	mysqltest.NoLeaks(t)
	db, o := battlefield(t)
	o.Naive, o.For = true, 3*time.Second
	terms, wrong := fight(t, db, o)
	require.Error(t, wrong)
	t.Logf("%d terms, %d deadlocks", terms, strings.Count(wrong.Error(), "1213"))
}

// sleepThroughTwoTTLs stops a process in the middle of a guarded transaction until its lease has been stolen twice.
func sleepThroughTwoTTLs(t testing.TB, db *sql.DB, o orders) report {
	t.Helper()
	o.TTL = time.Second
	sleeper := spawn(t, "sleeper", o)
	require.Equal(t, "in transaction", sleeper.hear().State)
	require.NoError(t, sleeper.cmd.Process.Signal(syscall.SIGSTOP))
	for _, owner := range []string{"first", "second"} { // each dies
		if o.Naive {
			naive := &naiveLease{db: db, owner: owner, ttl: o.TTL}
			require.Eventually(t, func() bool { return naive.acquire(t.Context(), suiteName) == nil }, 10*o.TTL, 10*time.Millisecond)
			continue
		}
		l, err := newLeases(t, db, lease.Config{TTL: o.TTL, Owner: owner}).Wait(t.Context(), suiteName)
		require.NoError(t, err)
		require.NotEmpty(t, l.StolenFrom())
	}
	require.NoError(t, sleeper.cmd.Process.Signal(syscall.SIGCONT))
	_, err := sleeper.in.Write([]byte("go on\n"))
	require.NoError(t, err)
	r := sleeper.hear()
	require.NoError(t, sleeper.cmd.Wait())
	return r
}

func TestProcessStoppedInAGuardedTransactionCantCommitAfterASteal(t *testing.T) {
	mysqltest.NoLeaks(t)
	db, o := battlefield(t)
	r := sleepThroughTwoTTLs(t, db, o)
	require.False(t, r.Committed, "%+v", r)
	require.Equal(t, lease.LostStolen, r.Reason, "%+v", r)
	require.Contains(t, r.Errors[0], "by second")
	require.Empty(t, written(t, db))
}

func TestNaiveTwinCommitsAfterASteal(t *testing.T) {
	mysqltest.NoLeaks(t)
	db, o := battlefield(t)
	o.Naive = true
	r := sleepThroughTwoTTLs(t, db, o)
	require.True(t, r.Committed)
	require.NotEmpty(t, written(t, db))
}
