package lease_test

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-sql-driver/mysql"
	"github.com/stretchr/testify/require"

	"github.com/mailretention/mailretention/lease"
)

func TestRenewalThatNeverReturnsEndsTheWorkBeforeTheLeaseCanBeStolen(t *testing.T) {
	for _, after := range []time.Duration{0, 7 * time.Second, 40 * time.Second, 10 * time.Minute} {
		t.Run(fmt.Sprint("after ", after), func(t *testing.T) {
			virtual(t, func(t *testing.T, s *fakeServer) {
				const margin = 15 * time.Second
				l, err := s.leases(t, "holder", lease.Config{TTL: suiteTTL, Margin: margin}).Acquire(t.Context(), suiteName)
				require.NoError(t, err)
				work, cancel := l.Heartbeat(t.Context())
				defer cancel()
				time.Sleep(after)
				s.setFault(hang("renew"))
				<-work.Done()
				requireReason(t, context.Cause(work), lease.LostUnrenewed)
				require.WithinDuration(t, s.row(suiteName).expires.Add(-margin), time.Now(), time.Millisecond)
				require.ErrorIs(t, l.Check(0), lease.ErrLost)
				require.Zero(t, l.TrustedUntil())
			})
		})
	}
}

func TestRenewalThatExecutesButIsNeverAnsweredDoesNotExtendTrust(t *testing.T) {
	virtual(t, func(t *testing.T, s *fakeServer) {
		l, err := s.leases(t, "holder", lease.Config{}).Acquire(t.Context(), suiteName)
		require.NoError(t, err)
		trusted := l.TrustedUntil()
		work, cancel := l.Heartbeat(t.Context())
		defer cancel()
		s.setFault(on(fault{silent: true}, "renew"))
		<-work.Done()
		require.WithinDuration(t, trusted, time.Now(), time.Millisecond)
		require.Greater(t, s.row(suiteName).seq, uint64(1), "the renewals did execute")
	})
}

func TestTrustCountsFromBeforeTheRequest(t *testing.T) {
	virtual(t, func(t *testing.T, s *fakeServer) {
		const slow, trusted = 8 * time.Second, 45 * time.Second
		s.setFault(func(statement) fault { return fault{slow: slow} })
		leases := s.leases(t, "holder", lease.Config{})
		_, err := leases.Inspect(t.Context(), suiteName) // first use
		require.NoError(t, err)
		l, err := leases.Acquire(t.Context(), suiteName)
		require.NoError(t, err)
		require.WithinDuration(t, time.Now().Add(trusted-slow), l.TrustedUntil(), time.Millisecond)
		time.Sleep(10 * time.Second)
		require.NoError(t, l.Renew(t.Context()))
		require.WithinDuration(t, time.Now().Add(trusted-slow), l.TrustedUntil(), time.Millisecond)
		require.NoError(t, l.Check(trusted-slow))
		require.ErrorIs(t, l.Check(trusted-slow+time.Second), lease.ErrLost)
	})
}

func TestLostAnswerOfARenewalKeepsTheLeaseAndItsToken(t *testing.T) {
	virtual(t, func(t *testing.T, s *fakeServer) {
		l, err := s.leases(t, "holder", lease.Config{}).Acquire(t.Context(), suiteName)
		require.NoError(t, err)
		token := l.Token()
		s.setFault(once(fault{cut: true}, "renew"))
		require.NoError(t, l.Renew(t.Context()))
		require.Equal(t, token, s.row(suiteName).token)
		require.Equal(t, uint64(3), s.row(suiteName).seq, "renewed twice")
		require.NoError(t, l.Release(t.Context()))
	})
}

func TestLostAnswerOfAnAcquireIsAdoptedAfterARenewal(t *testing.T) {
	for _, kind := range []string{"insert", "acquire", "steal"} {
		t.Run(kind, func(t *testing.T) {
			virtual(t, func(t *testing.T, s *fakeServer) {
				leases := s.leases(t, "holder", lease.Config{})
				if kind != "insert" {
					dead := abandoned(t, s, lease.Config{})
					if kind == "acquire" {
						require.NoError(t, dead.Release(t.Context()))
					}
				}
				s.setFault(once(fault{cut: true}, kind))
				l, err := leases.Wait(t.Context(), suiteName)
				require.NoError(t, err)
				require.Equal(t, s.row(suiteName).token, l.Token())
				require.True(t, s.row(suiteName).renewed.After(s.row(suiteName).acquired), "trusted only after a renewal")
				if kind == "steal" {
					require.Equal(t, "dead", l.StolenFrom())
				} else {
					require.Empty(t, l.StolenFrom())
				}
				require.NoError(t, l.Check(40*time.Second))
			})
		})
	}
}

func TestLostAnswerOfAReleaseIsNoError(t *testing.T) {
	virtual(t, func(t *testing.T, s *fakeServer) {
		l, err := s.leases(t, "holder", lease.Config{}).Acquire(t.Context(), suiteName)
		require.NoError(t, err)
		s.setFault(once(fault{cut: true}, "release"))
		require.NoError(t, l.Release(t.Context()))
		require.Empty(t, s.row(suiteName).holder)
		require.NoError(t, l.Release(t.Context()))
	})
}

// once gives the fault to the first statement of that kind.
func once(f fault, kind string) func(statement) fault {
	done := false
	return func(s statement) fault {
		if s.kind != kind || done {
			return fault{}
		}
		done = true
		return f
	}
}

func TestAcquireThatTimedOutButRanLaterIsReleased(t *testing.T) {
	for _, c := range []struct {
		name  string
		delay time.Duration
		free  bool
	}{
		{"before the best-effort release", 500 * time.Millisecond, true},
		{"after the best-effort release", time.Minute, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			virtual(t, func(t *testing.T, s *fakeServer) {
				l := abandoned(t, s, lease.Config{})
				require.NoError(t, l.Release(t.Context()))
				ctx, cancel := context.WithTimeout(t.Context(), time.Second)
				defer cancel()
				s.setFault(once(fault{silent: true, delay: c.delay}, "acquire"))
				_, err := s.leases(t, "holder", lease.Config{}).Acquire(ctx, suiteName)
				require.ErrorIs(t, err, context.DeadlineExceeded)
				time.Sleep(c.delay)
				synctest.Wait()
				require.Equal(t, c.free, s.row(suiteName).holder == "")
				took := takeover(t, s.leases(t, "other", lease.Config{}), time.Second)
				require.LessOrEqual(t, took, 60*time.Second+60*time.Second, "TTL + Observe")
			})
		})
	}
}

func TestErrorsThatMayPassAreTriedAgainWhileTheLeaseIsTrusted(t *testing.T) {
	number := func(n uint16) error { return &mysql.MySQLError{Number: n} }
	for _, c := range []struct {
		err  error
		lost bool
	}{
		{number(1213), false},
		{number(1020), false},
		{number(1205), false},
		{number(3572), false},
		{number(1290), false},
		{number(1836), false},
		{number(1047), false},
		{number(1040), false},
		{number(1053), false},
		{number(1180), false},
		{number(1317), false},
		{driver.ErrBadConn, false},
		{mysql.ErrInvalidConn, false},
		{number(1142), true},
		{number(1146), true},
		{errors.New("unheard of"), true},
	} {
		t.Run(c.err.Error(), func(t *testing.T) {
			virtual(t, func(t *testing.T, s *fakeServer) {
				var seen events
				l, err := s.leases(t, "holder", lease.Config{OnEvent: seen.add}).Acquire(t.Context(), suiteName)
				require.NoError(t, err)
				work, cancel := l.Heartbeat(t.Context())
				defer cancel()
				begin := time.Now()
				s.setFault(func(st statement) fault {
					if st.kind == "renew" && (c.lost || time.Since(begin) < 40*time.Second) {
						return fault{refuse: c.err}
					}
					return fault{}
				})
				pause(work, 10*time.Minute)
				if !c.lost {
					require.NoError(t, work.Err())
					return
				}
				require.WithinDuration(t, begin.Add(45*time.Second), time.Now(), time.Millisecond, "trusted till then all the same")
				require.ErrorIs(t, requireReason(t, context.Cause(work), lease.LostUnrenewed), c.err)
				require.True(t, seen.has(lease.EventRenewFailed))
				require.True(t, seen.has(lease.EventLost))
			})
		})
	}
}

func TestZombieChangesNothingAfterASteal(t *testing.T) {
	forEachZombieAct(t, lease.LostStolen, func(t *testing.T, s *fakeServer, zombie *lease.Lease) {
		successor, err := s.leases(t, "successor", lease.Config{}).Wait(t.Context(), suiteName)
		require.NoError(t, err)
		require.Equal(t, "dead", successor.StolenFrom())
		t.Cleanup(func() {
			require.NoError(t, successor.Renew(context.Background()))
			require.NoError(t, successor.Release(context.Background()))
		})
	})
}

func TestZombieChangesNothingAfterAForcedRelease(t *testing.T) {
	forEachZombieAct(t, lease.LostForced, func(t *testing.T, s *fakeServer, zombie *lease.Lease) {
		require.NoError(t, s.leases(t, "operator", lease.Config{}).ForceRelease(t.Context(), suiteName, zombie.Token()))
	})
}

// forEachZombieAct loses a lease by what lose does, and lets its holder try each of the things that holders do.
func forEachZombieAct(t *testing.T, reason lease.LostReason, lose func(*testing.T, *fakeServer, *lease.Lease)) {
	t.Helper()
	for act, do := range map[string]func(testing.TB, *fakeServer, *lease.Lease) error{
		"renew":   func(t testing.TB, _ *fakeServer, zombie *lease.Lease) error { return zombie.Renew(t.Context()) },
		"release": func(t testing.TB, _ *fakeServer, zombie *lease.Lease) error { return zombie.Release(t.Context()) },
		"guarded transaction": func(t testing.TB, s *fakeServer, zombie *lease.Lease) error {
			return guarded(t.Context(), s.pool(t), zombie.Token(), lease.GuardOf(zombie))
		},
	} {
		t.Run(act, func(t *testing.T) {
			virtual(t, func(t *testing.T, s *fakeServer) {
				zombie := abandoned(t, s, lease.Config{})
				lose(t, s, zombie)
				before := s.row(suiteName)
				requireReason(t, do(t, s, zombie), reason)
				require.Equal(t, before, s.row(suiteName))
				require.Empty(t, s.writes())
				require.ErrorIs(t, zombie.Check(0), lease.ErrLost)
			})
		})
	}
}
