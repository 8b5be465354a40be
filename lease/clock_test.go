package lease_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mailretention/mailretention/lease"
)

// The bounds of a takeover: at most twice the patience, plus a poll.
func TestDeadLeaseIsTakenOverInBoundedTimeWhateverTheServersClockDoes(t *testing.T) {
	const poll = time.Second
	for _, c := range []struct {
		name    string
		disturb func(*fakeServer)
		atMost  time.Duration
	}{
		{"steady", func(*fakeServer) {}, suiteTTL},
		{"ten minutes ahead", func(s *fakeServer) { s.jump(10 * time.Minute) }, suiteTTL},
		{"ten minutes back", func(s *fakeServer) { s.jump(-10 * time.Minute) }, 2 * suiteTTL},
		{"a year back", func(s *fakeServer) { s.jump(-365 * 24 * time.Hour) }, 2 * suiteTTL},
		{"standing still", (*fakeServer).freeze, 2 * suiteTTL},
	} {
		t.Run(c.name, func(t *testing.T) {
			virtual(t, func(t *testing.T, s *fakeServer) {
				var seen events
				contender := s.leases(t, "contender", lease.Config{OnEvent: seen.add})
				abandoned(t, s, lease.Config{})
				_, err := contender.Acquire(t.Context(), suiteName) // it has looked before
				require.ErrorIs(t, err, lease.ErrHeld)
				c.disturb(s)
				require.LessOrEqual(t, takeover(t, contender, poll), c.atMost+poll)
				require.Equal(t, c.name != "steady", seen.has(lease.EventClockAnomaly))
			})
		})
	}
}

func TestRowWrittenAYearAheadIsTakenOverInTTLAndObserve(t *testing.T) {
	virtual(t, func(t *testing.T, s *fakeServer) {
		const year = 365 * 24 * time.Hour
		s.jump(year)
		abandoned(t, s, lease.Config{})
		s.jump(-year)
		var seen events
		begin := time.Now()
		require.NoError(t, s.leases(t, "one-shot", lease.Config{OnEvent: seen.add}).Do(t.Context(), suiteName, func(context.Context) error { return nil }))
		require.InDelta(t, (suiteTTL + suiteTTL).Seconds(), time.Since(begin).Seconds(), 2)
		require.True(t, seen.has(lease.EventClockAnomaly))
		require.Greater(t, s.row(suiteName).token, uint64(time.Now().Add(year-time.Hour).UnixMicro()), "the token doesn't go back with the clock")
	})
}

func TestRenewalEndsWhatAWrongClockWrote(t *testing.T) {
	virtual(t, func(t *testing.T, s *fakeServer) {
		s.jump(time.Hour)
		l, err := s.leases(t, "holder", lease.Config{}).Acquire(t.Context(), suiteName)
		require.NoError(t, err)
		s.jump(-time.Hour)
		require.NoError(t, l.Renew(t.Context()))
		require.WithinDuration(t, time.Now().Add(suiteTTL), s.row(suiteName).expires, time.Millisecond)
	})
}

func TestRestEndsWhenTheTimeOfAcquisitionLiesInTheFuture(t *testing.T) {
	virtual(t, func(t *testing.T, s *fakeServer) {
		leases := s.leases(t, "holder", lease.Config{MinHold: time.Hour})
		nothing := func(context.Context) error { return nil }
		s.jump(24 * time.Hour)
		require.NoError(t, leases.Do(t.Context(), suiteName, nothing))
		require.ErrorIs(t, leases.Do(t.Context(), suiteName, nothing), lease.ErrHeld)
		s.jump(-24 * time.Hour)
		require.NoError(t, leases.Do(t.Context(), suiteName, nothing))
	})
}

// With the holder's TTL of 60 s and a margin of 15 s, no observation that a model allows is shorter than 45 s; these
// are the jumps for which a shorter one fails.
func TestNoJumpOfTheServersClockMakesTwoTrustedHolders(t *testing.T) {
	for _, jump := range []time.Duration{-10 * time.Minute, -time.Minute, -time.Second, time.Second, 30 * time.Second, time.Minute, 10 * time.Minute} {
		for _, lossAfter := range []time.Duration{0, 14 * time.Second, 29 * time.Second} {
			t.Run(fmt.Sprintf("%v after %v", jump, lossAfter), func(t *testing.T) {
				virtual(t, func(t *testing.T, s *fakeServer) {
					var h history
					holder, err := s.leases(t, "holder", lease.Config{}).Acquire(t.Context(), suiteName)
					require.NoError(t, err)
					work, cancel := holder.Heartbeat(t.Context())
					defer cancel()
					context.AfterFunc(work, h.enter(suiteName, "holder", holder.Token()))
					go func() {
						time.Sleep(lossAfter)
						s.setFault(hang("renew"))
						s.jump(jump)
					}()
					contender := s.leases(t, "contender", lease.Config{})
					l, err := contender.Wait(t.Context(), suiteName)
					require.NoError(t, err)
					h.enter(suiteName, "contender", l.Token())()
					require.NoError(t, h.check(nil))
				})
			})
		}
	}
}
