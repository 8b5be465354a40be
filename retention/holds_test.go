package retention_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/mailretention/mailretention/retention"
	"github.com/stretchr/testify/require"
)

// day returns a hold over the day that is ago days before the local clock's.
func day(ago int) retention.Hold {
	d := time.Now().UTC().Truncate(24*time.Hour).AddDate(0, 0, -ago)
	return retention.Hold{From: d, To: d, Reason: "case 17"}
}

// holdFrom gives the hold over the day from the n-th question on, counted from 1.
func (b *bench) holdFrom(n, ago int) {
	asked := 0
	b.cfg.Holds = func(context.Context) ([]retention.Hold, error) {
		asked++
		if asked >= n {
			return []retention.Hold{day(ago)}, nil
		}
		return nil, nil
	}
}

// The questions of a run of newBench: for the plan 1; for each table one before it and one after its batch, 2 to 9;
// before pruning 10, after its batch 11.
const (
	askedForPlan   = 1
	askedForTable  = 2 // raw7; two later raw6
	askedInTable   = 3
	askedForPrune  = 10
	askedInPruning = 11
)

func TestHoldsAreAsked(t *testing.T) {
	b := newBench()
	asked := 0
	b.cfg.Holds = func(context.Context) ([]retention.Hold, error) {
		asked++
		return nil, nil
	}
	b.run(t, func(t *testing.T, _ retention.Report, err error) {
		require.NoError(t, err)
		require.Equal(t, askedInPruning, asked)
	})
}

func TestHoldGivenForThePlan(t *testing.T) {
	b := newBench()
	b.holdFrom(askedForPlan, 6)
	b.prune = func(_ context.Context, cut retention.Cut, _ progress) error {
		require.Equal(t, []retention.Hold{day(6)}, cut.Except)
		return nil
	}
	b.run(t, func(t *testing.T, report retention.Report, err error) {
		require.NoError(t, err)
		require.Equal(t, []retention.Hold{day(6)}, report.Plan.Policy.Holds)
		require.Equal(t, "inventory, drop raw7, drop raw5, drop raw4, prune, reconcile", b.script.log())
	})
}

func TestHoldGivenBetweenPlanAndTable(t *testing.T) {
	b := newBench()
	b.holdFrom(askedForTable, 6)
	b.run(t, func(t *testing.T, report retention.Report, err error) {
		require.NoError(t, err)
		require.Equal(t, retention.OutcomeDone, report.Outcome)
		require.Equal(t, "inventory, drop raw7, drop raw5, drop raw4, prune, reconcile", b.script.log())
		kept := report.Tables[1]
		require.Equal(t, retention.VerdictKept, kept.Verdict)
		require.ErrorIs(t, kept.Err, retention.ErrInUse)
		require.EqualError(t, kept.Err, "retention: in use: legal hold: case 17")
		require.False(t, kept.Detached)
	})
}

func TestHoldGivenBetweenTwoBatchesOfATable(t *testing.T) {
	b := newBench()
	b.holdFrom(askedInTable, 7)
	b.run(t, func(t *testing.T, report retention.Report, err error) {
		require.NoError(t, err)
		require.Equal(t, "inventory, drop raw7, drop raw6, drop raw5, drop raw4, prune, reconcile", b.script.log())
		require.Equal(t, retention.VerdictKept, report.Tables[0].Verdict)
		require.True(t, report.Tables[0].Detached)
		require.Equal(t, retention.VerdictDropped, report.Tables[1].Verdict)
	})
}

func TestHoldGivenBeforePruning(t *testing.T) {
	b := newBench()
	b.holdFrom(askedForPrune, 9)
	var except []retention.Hold
	b.prune = func(_ context.Context, cut retention.Cut, _ progress) error {
		except = cut.Except
		return nil
	}
	b.run(t, func(t *testing.T, _ retention.Report, err error) {
		require.NoError(t, err)
		require.Equal(t, []retention.Hold{day(9)}, except)
	})
}

// TestHoldGivenInPruning has a store that stops, and is called again with a narrower cut.
func TestHoldGivenInPruning(t *testing.T) {
	known := hold(5, 3)
	for name, given := range map[string]retention.Hold{
		"of other days":           hold(9, 9),
		"that begins earlier":     hold(9, 3),
		"that ends later":         hold(5, 1),
		"that begins with no day": {To: known.To},
		"that ends with no day":   {From: known.From},
		"of all days":             {},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench()
			b.cfg.Policy.Holds = []retention.Hold{known}
			asked := 0
			b.cfg.Holds = func(context.Context) ([]retention.Hold, error) {
				if asked++; asked < askedInPruning {
					return []retention.Hold{known}, nil
				}
				return []retention.Hold{known, given}, nil
			}
			var excepts [][]retention.Hold
			b.prune = func(_ context.Context, cut retention.Cut, p progress) error {
				excepts = append(excepts, cut.Except)
				return p(3)
			}
			b.run(t, func(t *testing.T, report retention.Report, err error) {
				require.NoError(t, err)
				require.Equal(t, [][]retention.Hold{{known, known}, {known, known, given}}, excepts)
				require.EqualValues(t, 6, report.RowsPruned)
				require.Equal(t, retention.OutcomeDone, report.Outcome)
			})
		})
	}
}

// TestHoldTakenBackIsKeptToTheEnd since the run began with it.
func TestHoldTakenBackIsKeptToTheEnd(t *testing.T) {
	b := newBench()
	asked := 0
	b.cfg.Holds = func(context.Context) ([]retention.Hold, error) {
		if asked++; asked == askedForPlan {
			return []retention.Hold{day(6)}, nil
		}
		return nil, nil
	}
	b.prune = func(_ context.Context, cut retention.Cut, p progress) error {
		require.Equal(t, []retention.Hold{day(6)}, cut.Except)
		return p(1)
	}
	b.run(t, func(t *testing.T, _ retention.Report, err error) {
		require.NoError(t, err)
		require.NotContains(t, b.calls, "drop raw6")
	})
}

func TestUnreadableHoldsProtectEverything(t *testing.T) {
	unreadable := func(context.Context) ([]retention.Hold, error) { return nil, errBroken }
	invalid := func(context.Context) ([]retention.Hold, error) {
		return []retention.Hold{{From: day(0).From.Add(time.Hour)}}, nil
	}
	for name, c := range map[string]struct {
		at    int
		calls string
	}{
		"for the plan":           {askedForPlan, "inventory"},
		"for the first table":    {askedForTable, "inventory"},
		"in the first table":     {askedInTable, "inventory, drop raw7"},
		"for the next table":     {askedForTable + 2, "inventory, drop raw7"},
		"before pruning":         {askedForPrune, "inventory, drop raw7, drop raw6, drop raw5, drop raw4"},
		"between pruned batches": {askedInPruning, "inventory, drop raw7, drop raw6, drop raw5, drop raw4, prune"},
	} {
		for how, holds := range map[string]func(context.Context) ([]retention.Hold, error){"unreadable": unreadable, "invalid": invalid} {
			t.Run(name+", "+how, func(t *testing.T) {
				b := newBench()
				asked := 0
				b.cfg.Holds = func(ctx context.Context) ([]retention.Hold, error) {
					if asked++; asked >= c.at {
						return holds(ctx)
					}
					return nil, nil
				}
				b.run(t, func(t *testing.T, report retention.Report, err error) {
					require.ErrorIs(t, err, retention.ErrRefused)
					require.Equal(t, how == "unreadable", errors.Is(err, errBroken))
					require.Equal(t, retention.OutcomeRefused, report.Outcome)
					require.Contains(t, report.Stopped, "legal holds")
					require.Equal(t, c.calls, b.script.log())
					require.Len(t, report.Plan.Keeps, 8-len(report.Plan.Drops), "the plan is there")
					if c.at == askedForPlan {
						require.Empty(t, report.Plan.Drops)
					}
				})
			})
		}
	}
}
