package retention_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mailretention/mailretention/retention"
	"github.com/stretchr/testify/require"
)

func TestClockSkew(t *testing.T) {
	for name, c := range map[string]struct {
		skew    time.Duration
		maxSkew time.Duration
		slow    time.Duration // how long the inventory takes; the database's clock is that of its end
		suspect bool
	}{
		"none":                                {},
		"an hour":                             {skew: time.Hour},
		"an hour behind":                      {skew: -time.Hour},
		"more than an hour":                   {skew: time.Hour + time.Nanosecond, suspect: true},
		"more than an hour behind":            {skew: -time.Hour - time.Nanosecond, suspect: true},
		"as much as is allowed":               {skew: time.Minute, maxSkew: time.Minute},
		"more than is allowed":                {skew: time.Minute + time.Nanosecond, maxSkew: time.Minute, suspect: true},
		"none, but a slow inventory":          {slow: 3 * time.Hour},
		"a year":                              {skew: 365 * 24 * time.Hour, suspect: true},
		"more than a duration holds, forward": {skew: 1<<63 - 1, suspect: true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &script{}
				s.inventory = func(context.Context) (retention.Inventory, error) {
					time.Sleep(c.slow)
					inv := today(8)
					inv.Now = inv.Now.Add(c.skew)
					inv.Drift = make([]retention.Drift, 1)
					return inv, nil
				}
				cfg := newBench().cfg
				cfg.MaxSkew = c.maxSkew
				cfg.Policy.RawDays = new(5)
				report, err := retention.Run(t.Context(), s, cfg)
				if !c.suspect {
					require.NoError(t, err)
					return
				}
				require.ErrorIs(t, err, retention.ErrSuspectClock)
				require.ErrorIs(t, err, retention.ErrRefused)
				require.Equal(t, retention.OutcomeRefused, report.Outcome)
				require.Equal(t, "inventory", s.log(), "nothing is touched, the books neither")
				require.Len(t, report.Plan.Keeps, 8-len(report.Plan.Drops), "the plan is there to be read")
			})
		})
	}
}

// TestClockAYearAheadEverywhere has worker and server agree on a wrong time.
func TestClockAYearAheadEverywhere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &script{inv: today(60)}
		time.Sleep(365 * 24 * time.Hour)
		s.inv.Now = time.Now().UTC()
		cfg := retention.Config{Name: "mx", Policy: retention.Policy{RawDays: new(30), MessageDays: new(30)}}
		report, err := retention.Run(t.Context(), s, cfg)
		require.ErrorIs(t, err, retention.ErrWouldEmpty)
		require.Equal(t, retention.OutcomeRefused, report.Outcome)
		require.Equal(t, "inventory", s.log())
		require.Len(t, report.Plan.Drops, 60)
		require.ErrorContains(t, err, "messages before", "both refusals are told")

		cfg.Policy.AllowEmpty = true
		report, err = retention.Run(t.Context(), s, cfg)
		require.NoError(t, err)
		require.Equal(t, retention.OutcomeDone, report.Outcome)
	})
}

func TestPreview(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &script{inv: today(8)}
		s.inv.Drift = make([]retention.Drift, 1)
		cfg := newBench().cfg
		cfg.Locker = locker(func(context.Context, string, func(context.Context) error) error { panic("no lease") })
		cfg.Holds = func(context.Context) ([]retention.Hold, error) { return []retention.Hold{day(6)}, nil }
		r, err := retention.New(s, cfg)
		require.NoError(t, err)
		plan, err := r.Plan(t.Context())
		require.NoError(t, err)
		require.Len(t, plan.Drops, 3)
		require.Len(t, plan.Drift, 1)
		require.Equal(t, "inventory", s.log())

		s.inv.Now = s.inv.Now.Add(2 * time.Hour)
		plan, err = r.Plan(t.Context())
		require.ErrorIs(t, err, retention.ErrSuspectClock)
		require.NotEmpty(t, plan.Drops, "to be read")

		cfg.Holds = func(context.Context) ([]retention.Hold, error) { return nil, errBroken }
		blind, err := retention.New(&script{inv: today(8)}, cfg)
		require.NoError(t, err)
		plan, err = blind.Plan(t.Context())
		require.ErrorIs(t, err, retention.ErrRefused)
		require.ErrorIs(t, err, errBroken)
		require.Empty(t, plan.Drops)
		require.Len(t, plan.Keeps, 8, "to be read too")

		s.inventory = func(context.Context) (retention.Inventory, error) { return retention.Inventory{}, errBroken }
		plan, err = r.Plan(t.Context())
		require.ErrorIs(t, err, errBroken)
		require.Zero(t, plan)

		ctx, cancel := context.WithCancelCause(t.Context())
		cancel(errShutdown)
		_, err = r.Plan(ctx)
		require.ErrorIs(t, err, errShutdown)
		require.ErrorIs(t, err, context.Canceled)
	})
}
