package lease_test

import (
	"context"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mailretention/mailretention/lease"
)

// virtual runs a test in virtual time, on a server of its own.
func virtual(t *testing.T, test func(t *testing.T, s *fakeServer)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) { test(t, newFakeServer()) })
}

// events collects what happened.
type events struct {
	mu  sync.Mutex
	all []lease.Event
}

func (e *events) add(v lease.Event) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.all = append(e.all, v)
}

func (e *events) kinds() []lease.EventKind {
	e.mu.Lock()
	defer e.mu.Unlock()
	var kinds []lease.EventKind
	for _, v := range e.all {
		kinds = append(kinds, v.Kind)
	}
	return kinds
}

func (e *events) has(kind lease.EventKind) bool { return slices.Contains(e.kinds(), kind) }

// abandoned lets a worker acquire the lease and die.
func abandoned(t testing.TB, s *fakeServer, cfg lease.Config) *lease.Lease {
	t.Helper()
	l, err := s.leases(t, "dead", cfg).Acquire(t.Context(), suiteName)
	require.NoError(t, err)
	return l
}

// takeover is how long it takes until a contender that polls gets the lease.
func takeover(t testing.TB, l *lease.Leases, every time.Duration) time.Duration {
	t.Helper()
	begin := time.Now()
	for {
		held, err := l.Acquire(t.Context(), suiteName)
		if err == nil {
			require.NoError(t, held.Release(t.Context()))
			return time.Since(begin)
		}
		require.ErrorIs(t, err, lease.ErrHeld)
		time.Sleep(every)
	}
}

// cause is why the context ended.
func cause(t testing.TB, ctx context.Context) *lease.LostError {
	t.Helper()
	var lost *lease.LostError
	require.ErrorAs(t, context.Cause(ctx), &lost)
	return lost
}

func requireReason(t testing.TB, err error, reason lease.LostReason) *lease.LostError {
	t.Helper()
	var lost *lease.LostError
	require.ErrorAs(t, err, &lost)
	require.Equal(t, reason, lost.Reason)
	require.ErrorIs(t, err, lease.ErrLost)
	return lost
}
