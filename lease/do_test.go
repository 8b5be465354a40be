package lease_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mailretention/mailretention/lease"
)

func nothing(context.Context) error { return nil }

func TestWorkThatIgnoresItsContextIsNotReleasedAndTheErrorSaysSo(t *testing.T) {
	virtual(t, func(t *testing.T, s *fakeServer) {
		leases := s.leases(t, "holder", lease.Config{MaxHold: time.Minute})
		err := leases.Do(t.Context(), suiteName, func(context.Context) error {
			time.Sleep(10 * time.Minute)
			return nil
		})
		requireReason(t, err, lease.LostMaxHold)
		require.ErrorContains(t, err, "ignored")
		require.NotEmpty(t, s.row(suiteName).holder, "nothing is released")
		require.NoError(t, s.leases(t, "next", lease.Config{}).Do(t.Context(), suiteName, nothing))
	})
}

func TestWorkThatPanicsIsReleasedAndThePanicGoesOn(t *testing.T) {
	virtual(t, func(t *testing.T, s *fakeServer) {
		leases := s.leases(t, "holder", lease.Config{MinHold: time.Hour})
		require.PanicsWithValue(t, "oh", func() {
			_ = leases.Do(t.Context(), suiteName, func(context.Context) error { panic("oh") })
		})
		require.Empty(t, s.row(suiteName).holder)
		require.NoError(t, leases.Do(t.Context(), suiteName, nothing), "it doesn't rest")
	})
}

func TestAfterWorkThatSucceededTheLeaseRests(t *testing.T) {
	virtual(t, func(t *testing.T, s *fakeServer) {
		cfg := lease.Config{MinHold: 5 * time.Minute}
		begin := time.Now()
		require.NoError(t, s.leases(t, "first", cfg).Do(t.Context(), suiteName, nothing))
		time.Sleep(time.Minute)
		second := s.leases(t, "second", cfg)
		err := second.Do(t.Context(), suiteName, nothing)
		var held *lease.HeldError
		require.ErrorAs(t, err, &held)
		require.True(t, held.Held())
		require.False(t, held.Active)
		require.WithinDuration(t, begin.Add(5*time.Minute), held.NotBefore, time.Second)
		require.WithinDuration(t, begin.Add(5*time.Minute), held.Retry, time.Second)
		time.Sleep(time.Until(held.Retry))
		require.NoError(t, second.Do(t.Context(), suiteName, nothing))
	})
}

func TestAfterWorkThatFailedAnotherMayGoAtOnce(t *testing.T) {
	virtual(t, func(t *testing.T, s *fakeServer) {
		cfg := lease.Config{MinHold: 5 * time.Minute}
		failed := errors.New("failed")
		require.ErrorIs(t, s.leases(t, "first", cfg).Do(t.Context(), suiteName, func(context.Context) error { return failed }), failed)
		require.NoError(t, s.leases(t, "second", cfg).Do(t.Context(), suiteName, nothing))
	})
}

func TestMaxHoldEndsWorkThatRunsAway(t *testing.T) {
	virtual(t, func(t *testing.T, s *fakeServer) {
		begin := time.Now()
		err := s.leases(t, "holder", lease.Config{MaxHold: 3 * time.Minute, MinHold: time.Hour}).Do(t.Context(), suiteName, func(ctx context.Context) error {
			<-ctx.Done()
			return nil
		})
		requireReason(t, err, lease.LostMaxHold)
		require.WithinDuration(t, begin.Add(3*time.Minute), time.Now(), time.Millisecond)
		require.Empty(t, s.row(suiteName).holder, "released: the work heeded its context")
		require.NoError(t, s.leases(t, "next", lease.Config{}).Do(t.Context(), suiteName, nothing))
	})
}

func TestForcedReleaseOfAHungHolderFailsItsGuardsAtOnceAndNeverMakesTwo(t *testing.T) {
	for _, jump := range []time.Duration{0, time.Hour, -time.Hour} {
		virtual(t, func(t *testing.T, s *fakeServer) {
			var h history
			holder := s.leases(t, "holder", lease.Config{})
			operator := s.leases(t, "operator", lease.Config{})
			err := holder.Do(t.Context(), suiteName, func(ctx context.Context) error {
				held, _ := lease.FromContext(ctx)
				leave := h.enter(suiteName, "holder", held.Token())
				context.AfterFunc(ctx, leave)
				s.setFault(hang("renew")) // it hears nothing of what happens
				info, err := operator.Inspect(t.Context(), suiteName)
				require.NoError(t, err)
				require.NoError(t, operator.ForceRelease(t.Context(), suiteName, info.Token))
				requireReason(t, operator.ForceRelease(t.Context(), suiteName, info.Token), lease.LostForced)
				s.jump(jump)
				next, err := operator.Wait(context.WithoutCancel(ctx), suiteName)
				require.NoError(t, err)
				h.enter(suiteName, "operator", next.Token())
				requireReason(t, guarded(ctx, s.pool(t), held.Token(), holder.Guard), lease.LostUnrenewed)
				return nil
			})
			require.ErrorIs(t, err, lease.ErrLost)
			require.NoError(t, h.check(nil))
			require.Empty(t, s.writes())
		})
	}
}

func TestGuardOfAHolderThatHasBeenRevokedFailsAtOnceAndEndsItsContext(t *testing.T) {
	virtual(t, func(t *testing.T, s *fakeServer) {
		holder := s.leases(t, "holder", lease.Config{})
		err := holder.Do(t.Context(), suiteName, func(ctx context.Context) error {
			held, _ := lease.FromContext(ctx)
			require.NoError(t, guarded(ctx, s.pool(t), held.Token(), holder.Guard))
			require.NoError(t, holder.ForceRelease(ctx, suiteName, held.Token()))
			err := guarded(ctx, s.pool(t), held.Token(), holder.Guard)
			requireReason(t, err, lease.LostForced)
			<-ctx.Done()
			require.Equal(t, lease.LostForced, cause(t, ctx).Reason)
			return err
		})
		requireReason(t, err, lease.LostForced)
		require.Len(t, s.writes(), 1)
	})
}

func TestOneShotProcessTakesADeadHoldersLeaseWithinOneCall(t *testing.T) {
	for _, c := range []struct {
		name       string
		afterDeath func(*fakeServer)
		took       time.Duration
	}{
		{"long dead", func(*fakeServer) { time.Sleep(time.Hour) }, suiteTTL},
		{"just expired", func(*fakeServer) { time.Sleep(suiteTTL) }, suiteTTL},
		{"its expiry moved into the future by a jump back", func(s *fakeServer) { time.Sleep(time.Hour); s.jump(-2 * time.Hour) }, 2 * suiteTTL},
	} {
		t.Run(c.name, func(t *testing.T) {
			virtual(t, func(t *testing.T, s *fakeServer) {
				abandoned(t, s, lease.Config{})
				c.afterDeath(s)
				begin := time.Now()
				require.NoError(t, s.leases(t, "one-shot", lease.Config{}).Do(t.Context(), suiteName, func(ctx context.Context) error {
					held, _ := lease.FromContext(ctx)
					require.Equal(t, "dead", held.StolenFrom())
					return nil
				}))
				require.InDelta(t, c.took.Seconds(), time.Since(begin).Seconds(), 1.5)
			})
		})
	}
}

func TestLiveHolderIsHeldAtOnce(t *testing.T) {
	for _, jump := range []time.Duration{0, -10 * time.Minute, 10 * time.Minute} {
		virtual(t, func(t *testing.T, s *fakeServer) {
			held, err := s.leases(t, "holder", lease.Config{}).Acquire(t.Context(), suiteName)
			require.NoError(t, err)
			_, cancel := held.Heartbeat(t.Context())
			defer cancel()
			s.jump(jump)
			begin := time.Now()
			err = s.leases(t, "one-shot", lease.Config{}).Do(t.Context(), suiteName, nothing)
			require.ErrorIs(t, err, lease.ErrHeld)
			require.ErrorContains(t, err, "holder")
			atMost := time.Duration(0)
			if jump != 0 { // it looks dead, until its next sign of life
				atMost = suiteTTL / 4 * 11 / 10
			}
			require.LessOrEqual(t, time.Since(begin), atMost+time.Second)
		})
	}
}

func TestTheRowsTTLCountsNotTheContenders(t *testing.T) {
	virtual(t, func(t *testing.T, s *fakeServer) {
		abandoned(t, s, lease.Config{TTL: 10 * time.Minute})
		hasty := s.leases(t, "hasty", lease.Config{TTL: time.Second})
		took := takeover(t, hasty, time.Second)
		require.InDelta(t, (10 * time.Minute).Seconds(), took.Seconds(), 1)
	})
}

func TestObserveLongerThanTheTTLIsHeeded(t *testing.T) {
	virtual(t, func(t *testing.T, s *fakeServer) {
		abandoned(t, s, lease.Config{})
		took := takeover(t, s.leases(t, "patient", lease.Config{Observe: 5 * time.Minute}), time.Second)
		require.InDelta(t, (5 * time.Minute).Seconds(), took.Seconds(), 1)
	})
}

func TestContenderThatPollsTakesOverAfterTTLAndOnePoll(t *testing.T) {
	virtual(t, func(t *testing.T, s *fakeServer) {
		l, err := s.leases(t, "holder", lease.Config{}).Acquire(t.Context(), suiteName)
		require.NoError(t, err)
		contender := s.leases(t, "contender", lease.Config{})
		for range 20 { // while the holder lives
			require.NoError(t, l.Renew(t.Context()))
			_, err := contender.Acquire(t.Context(), suiteName)
			require.ErrorIs(t, err, lease.ErrHeld)
			time.Sleep(10 * time.Second)
		}
		died := time.Now().Add(-10 * time.Second)
		takeover(t, contender, time.Second)
		require.LessOrEqual(t, time.Since(died), suiteTTL+time.Second)
	})
}

func TestNestedLeasesOfTwoPools(t *testing.T) {
	virtual(t, func(t *testing.T, s *fakeServer) {
		outer, inner := s.leases(t, "outer", lease.Config{}), s.leases(t, "inner", lease.Config{})
		_, ok := lease.FromContext(t.Context())
		require.False(t, ok)
		err := outer.Do(t.Context(), "one", func(ctx context.Context) error {
			return inner.Do(ctx, "two", func(ctx context.Context) error {
				held, ok := lease.FromContext(ctx)
				require.True(t, ok)
				require.Equal(t, "two", held.Name())
				require.NoError(t, guarded(ctx, s.pool(t), 1, outer.Guard))
				require.NoError(t, guarded(ctx, s.pool(t), 2, inner.Guard))
				require.NoError(t, outer.ForceRelease(ctx, "one", s.row("one").token))
				requireReason(t, guarded(ctx, s.pool(t), 3, outer.Guard), lease.LostForced)
				<-ctx.Done() // the inner context ends with the outer one
				require.Equal(t, "one", cause(t, ctx).Name)
				return nil
			})
		})
		require.Equal(t, "one", requireReason(t, err, lease.LostForced).Name)
		require.Empty(t, s.row("two").holder)
	})
}

func TestGuardWithoutALeaseOfTheseLeasesIsAnError(t *testing.T) {
	virtual(t, func(t *testing.T, s *fakeServer) {
		a, b := s.leases(t, "a", lease.Config{}), s.leases(t, "b", lease.Config{})
		require.ErrorContains(t, guarded(t.Context(), s.pool(t), 1, a.Guard), "no lease")
		require.NoError(t, a.Do(t.Context(), suiteName, func(ctx context.Context) error {
			require.ErrorContains(t, guarded(ctx, s.pool(t), 1, b.Guard), "no lease")
			return nil
		}))
		require.Empty(t, s.writes())
	})
}

func TestCancelledWaitIsStillMatchable(t *testing.T) {
	virtual(t, func(t *testing.T, s *fakeServer) {
		abandoned(t, s, lease.Config{})
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err := s.leases(t, "waiter", lease.Config{}).Wait(ctx, suiteName)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.ErrorIs(t, err, lease.ErrHeld)
	})
}

func TestWaitGetsALeaseSoonAfterItIsFree(t *testing.T) {
	virtual(t, func(t *testing.T, s *fakeServer) {
		held, err := s.leases(t, "holder", lease.Config{}).Acquire(t.Context(), suiteName)
		require.NoError(t, err)
		var free time.Time
		go func() {
			time.Sleep(30 * time.Second)
			free = time.Now()
			_ = held.Release(t.Context())
		}()
		_, err = s.leases(t, "waiter", lease.Config{}).Wait(t.Context(), suiteName)
		require.NoError(t, err)
		require.LessOrEqual(t, time.Since(free), suiteTTL/60)
	})
}

func TestWorkEndsWithItsCallersContext(t *testing.T) {
	virtual(t, func(t *testing.T, s *fakeServer) {
		ctx, cancel := context.WithCancel(t.Context())
		err := s.leases(t, "holder", lease.Config{}).Do(ctx, suiteName, func(ctx context.Context) error {
			cancel()
			<-ctx.Done()
			return ctx.Err()
		})
		require.ErrorIs(t, err, context.Canceled)
		require.NotErrorIs(t, err, lease.ErrLost)
		require.Empty(t, s.row(suiteName).holder, "released all the same")
	})
}

func TestEventsTellWhatHappened(t *testing.T) {
	virtual(t, func(t *testing.T, s *fakeServer) {
		var seen events
		leases := s.leases(t, "holder", lease.Config{Interval: 10 * time.Second, OnEvent: seen.add})
		require.NoError(t, leases.Do(t.Context(), suiteName, func(ctx context.Context) error {
			pause(ctx, 12*time.Second)
			s.setFault(once(fault{cut: true}, "renew"))
			pause(ctx, 10*time.Second)
			return nil
		}))
		require.Equal(t, []lease.EventKind{
			lease.EventAcquired, lease.EventRenewed, lease.EventRenewFailed, lease.EventRenewed, lease.EventReleased,
		}, seen.kinds())
		abandoned(t, s, lease.Config{})
		s.setFault(hang("renew"))
		err := leases.Do(t.Context(), suiteName, nothing)
		require.ErrorIs(t, err, lease.ErrHeld)
		_, err = leases.Wait(t.Context(), suiteName)
		require.NoError(t, err)
		require.Equal(t, lease.EventStolen, seen.kinds()[5])
	})
}
