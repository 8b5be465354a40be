package retention_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/mailretention/mailretention/retention"
	"github.com/stretchr/testify/require"
)

func TestRunOutcomes(t *testing.T) {
	nothing := func(_ context.Context, _ retention.Cut, _ progress) error { return nil }
	held := func(context.Context, string, func(context.Context) error) error { return heldError{} }
	refuse := fmt.Errorf("queue: %w", retention.ErrRefused)
	for name, c := range map[string]struct {
		set     func(b *bench)
		outcome retention.Outcome
		errs    []error
		calls   string
		events  string
		stopped string
	}{
		"done": {
			set:     func(*bench) {},
			outcome: retention.OutcomeDone,
			calls:   "inventory, drop raw7, drop raw6, drop raw5, drop raw4, prune, reconcile",
		},
		"nothing to do": {
			set: func(b *bench) {
				b.cfg.Policy.RawDays = new(30)
				b.prune = nothing
			},
			outcome: retention.OutcomeNothingToDo,
			calls:   "inventory, prune",
			events:  "planned, pruned, finished",
		},
		"nothing to do where all is in use": {
			set: func(b *bench) {
				b.drop = func(context.Context, string, progress) error { return retention.ErrInUse }
				b.prune = nothing
			},
			outcome: retention.OutcomeNothingToDo,
			calls:   "inventory, drop raw7, drop raw6, drop raw5, drop raw4, prune",
			events:  "planned, dropping raw7, kept raw7, dropping raw6, kept raw6, dropping raw5, kept raw5, dropping raw4, kept raw4, pruned, finished",
		},
		"done where a table in use was detached in part": {
			set: func(b *bench) {
				b.drop = func(_ context.Context, _ string, p progress) error { return errors.Join(p(1), retention.ErrInUse) }
				b.prune = nothing
			},
			outcome: retention.OutcomeDone,
			calls:   "inventory, drop raw7, drop raw6, drop raw5, drop raw4, prune",
		},
		"done where only the books were repaired": {
			set: func(b *bench) {
				b.cfg.Policy = retention.Policy{}
				b.inventory = func(context.Context) (retention.Inventory, error) {
					inv := b.inv
					inv.Drift = []retention.Drift{{Table: "raw", Kind: retention.DriftOrphan}}
					return inv, nil
				}
				b.reconcile = func(context.Context) (int, error) { return 1, nil }
			},
			outcome: retention.OutcomeDone,
			calls:   "inventory, reconcile, inventory",
		},
		"partial where a table failed": {
			set:     func(b *bench) { b.drop = failing(map[string]error{"raw6": errBroken}) },
			outcome: retention.OutcomePartial,
			errs:    []error{errBroken},
			calls:   "inventory, drop raw7, drop raw6, drop raw5, drop raw4, prune, reconcile",
			events: "planned, dropping raw7, batch raw7, dropped raw7, dropping raw6, failed raw6, dropping raw5, batch raw5, dropped raw5, " +
				"dropping raw4, batch raw4, dropped raw4, batch, pruned, finished",
		},
		"partial where pruning failed": {
			set:     func(b *bench) { b.prune = func(context.Context, retention.Cut, progress) error { return errBroken } },
			outcome: retention.OutcomePartial,
			errs:    []error{errBroken},
			calls:   "inventory, drop raw7, drop raw6, drop raw5, drop raw4, prune, reconcile",
		},
		"partial after MaxDrops, without an error": {
			set:     func(b *bench) { b.cfg.MaxDrops = 3 },
			outcome: retention.OutcomePartial,
			calls:   "inventory, drop raw7, drop raw6, drop raw5, prune, reconcile",
			stopped: "MaxDrops is 3: 1 table left for the next run",
		},
		"done where MaxDrops was enough": {
			set:     func(b *bench) { b.cfg.MaxDrops = 4 },
			outcome: retention.OutcomeDone,
			calls:   "inventory, drop raw7, drop raw6, drop raw5, drop raw4, prune, reconcile",
		},
		"partial after three failures in a row": {
			set: func(b *bench) {
				b.drop = failing(map[string]error{"raw6": errBroken, "raw5": errBroken, "raw4": errBroken})
				b.cfg.Policy.RawDays = new(2)
			},
			outcome: retention.OutcomePartial,
			errs:    []error{errBroken},
			calls:   "inventory, drop raw7, drop raw6, drop raw5, drop raw4",
			stopped: "3 tables failed in a row",
		},
		"partial after three failures at once": {
			set: func(b *bench) {
				b.drop = failing(map[string]error{"raw7": errBroken, "raw6": errBroken, "raw5": errBroken})
			},
			outcome: retention.OutcomePartial,
			errs:    []error{errBroken},
			calls:   "inventory, drop raw7, drop raw6, drop raw5",
			stopped: "3 tables failed in a row",
		},
		"three failures that are not in a row end nothing": {
			set: func(b *bench) {
				b.drop = failing(map[string]error{"raw7": errBroken, "raw6": errBroken, "raw5": retention.ErrInUse, "raw4": errBroken})
			},
			outcome: retention.OutcomePartial,
			errs:    []error{errBroken},
			calls:   "inventory, drop raw7, drop raw6, drop raw5, drop raw4, prune",
		},
		"partial after ErrStop": {
			set: func(b *bench) {
				b.drop = failing(map[string]error{"raw6": fmt.Errorf("guard: %w", retention.ErrStop)})
			},
			outcome: retention.OutcomePartial,
			errs:    []error{retention.ErrStop},
			calls:   "inventory, drop raw7, drop raw6",
			stopped: "guard: retention: stop",
		},
		"partial after ErrStop in pruning": {
			set: func(b *bench) {
				b.prune = func(context.Context, retention.Cut, progress) error { return retention.ErrStop }
			},
			outcome: retention.OutcomePartial,
			errs:    []error{retention.ErrStop},
			calls:   "inventory, drop raw7, drop raw6, drop raw5, drop raw4, prune",
			stopped: "retention: prune messages: retention: stop",
		},
		"partial where the last reconciliation failed": {
			set:     func(b *bench) { b.reconcile = func(context.Context) (int, error) { return 0, errBroken } },
			outcome: retention.OutcomePartial,
			errs:    []error{errBroken},
			calls:   "inventory, drop raw7, drop raw6, drop raw5, drop raw4, prune, reconcile",
			stopped: "retention: reconcile: broken",
		},
		"held": {
			set:     func(b *bench) { b.cfg.Locker = locker(held) },
			outcome: retention.OutcomeHeld,
			errs:    []error{retention.ErrHeld, heldError{}},
			events:  "finished",
			stopped: "retention: held by another: held until noon",
		},
		"held, by a wrapped error": {
			set: func(b *bench) {
				b.cfg.Locker = locker(func(context.Context, string, func(context.Context) error) error {
					return errors.Join(errBroken, fmt.Errorf("lease: %w", heldError{}))
				})
			},
			outcome: retention.OutcomeHeld,
			errs:    []error{retention.ErrHeld, heldError{}, errBroken},
			events:  "finished",
			stopped: "retention: held by another: broken\nlease: held until noon",
		},
		"held, by the sentinel": {
			set: func(b *bench) {
				b.cfg.Locker = locker(func(context.Context, string, func(context.Context) error) error { return retention.ErrHeld })
			},
			outcome: retention.OutcomeHeld,
			errs:    []error{retention.ErrHeld},
			events:  "finished",
			stopped: "retention: held by another",
		},
		"not held, though the work's own error says so": {
			set: func(b *bench) {
				b.cfg.Locker = locker(func(ctx context.Context, _ string, fn func(context.Context) error) error { return fn(ctx) })
				b.inventory = func(context.Context) (retention.Inventory, error) { return retention.Inventory{}, heldError{} }
			},
			outcome: retention.OutcomeFailed,
			errs:    []error{heldError{}},
			calls:   "inventory",
			events:  "finished",
			stopped: "retention: inventory: held until noon",
		},
		"refused by the inventory": {
			set: func(b *bench) {
				b.inventory = func(context.Context) (retention.Inventory, error) { return retention.Inventory{}, refuse }
			},
			outcome: retention.OutcomeRefused,
			errs:    []error{retention.ErrRefused},
			calls:   "inventory",
			events:  "finished",
			stopped: "retention: inventory: queue: retention: refused",
		},
		"refused by a drop": {
			set:     func(b *bench) { b.drop = failing(map[string]error{"raw6": refuse}) },
			outcome: retention.OutcomeRefused,
			errs:    []error{retention.ErrRefused},
			calls:   "inventory, drop raw7, drop raw6",
			events:  "planned, dropping raw7, batch raw7, dropped raw7, dropping raw6, kept raw6, finished",
			stopped: "queue: retention: refused",
		},
		"refused by pruning": {
			set:     func(b *bench) { b.prune = func(context.Context, retention.Cut, progress) error { return refuse } },
			outcome: retention.OutcomeRefused,
			errs:    []error{retention.ErrRefused},
			calls:   "inventory, drop raw7, drop raw6, drop raw5, drop raw4, prune",
			stopped: "retention: prune messages: queue: retention: refused",
		},
		"refused since it would empty": {
			set: func(b *bench) {
				b.inventory = func(context.Context) (retention.Inventory, error) {
					b.inv.Tables = append(b.inv.Tables[:1], b.inv.Tables[4:]...)
					return b.inv, nil
				}
			},
			outcome: retention.OutcomeRefused,
			errs:    []error{retention.ErrWouldEmpty, retention.ErrRefused},
			calls:   "inventory",
			events:  "planned, finished",
			stopped: "retention: refused: would empty: 4 tables would go and none stay beside the protected ones; look at the clock and the plan, and set AllowEmpty for one run if it is right",
		},
		"refused since the policy is bad": {
			set:     func(b *bench) { b.cfg.Policy.RawDays = new(-1) },
			outcome: retention.OutcomeRefused,
			errs:    []error{retention.ErrBadPolicy, retention.ErrRefused},
			events:  "finished",
			stopped: "retention: refused: bad policy: RawDays is -1: it must not be negative; nil keeps for ever",
		},
		"failed since there is no name": {
			set:     func(b *bench) { b.cfg.Name = "" },
			outcome: retention.OutcomeFailed,
			events:  "finished",
			stopped: `retention: Name is "": give the mail server's name, which names the lease`,
		},
		"failed with the inventory": {
			set: func(b *bench) {
				b.inventory = func(context.Context) (retention.Inventory, error) { return retention.Inventory{}, errBroken }
			},
			outcome: retention.OutcomeFailed,
			errs:    []error{errBroken},
			calls:   "inventory",
			events:  "finished",
			stopped: "retention: inventory: broken",
		},
		"failed with the first reconciliation": {
			set: func(b *bench) {
				b.inventory = func(context.Context) (retention.Inventory, error) {
					b.inv.Drift = make([]retention.Drift, 1)
					return b.inv, nil
				}
				b.reconcile = func(context.Context) (int, error) { return 0, errBroken }
			},
			outcome: retention.OutcomeFailed,
			errs:    []error{errBroken},
			calls:   "inventory, reconcile",
			events:  "finished",
			stopped: "retention: reconcile: broken",
		},
		"failed with the lease": {
			set: func(b *bench) {
				b.cfg.Locker = locker(func(context.Context, string, func(context.Context) error) error { return errBroken })
			},
			outcome: retention.OutcomeFailed,
			errs:    []error{errBroken},
			events:  "finished",
			stopped: "retention: lease: broken",
		},
		"failed since the Locker did nothing": {
			set: func(b *bench) {
				b.cfg.Locker = locker(func(context.Context, string, func(context.Context) error) error { return nil })
			},
			outcome: retention.OutcomeFailed,
			events:  "finished",
			stopped: "retention: the Locker did not run it and gives no error",
		},
		"partial where the Locker swallows the error": {
			set: func(b *bench) {
				b.drop = failing(map[string]error{"raw6": errBroken})
				b.cfg.Locker = locker(func(ctx context.Context, _ string, fn func(context.Context) error) error {
					_ = fn(ctx)
					return nil
				})
			},
			outcome: retention.OutcomePartial,
			errs:    []error{errBroken},
			calls:   "inventory, drop raw7, drop raw6, drop raw5, drop raw4, prune, reconcile",
		},
		"partial where the lease was lost at the end": {
			set: func(b *bench) {
				b.cfg.Locker = locker(func(ctx context.Context, _ string, fn func(context.Context) error) error {
					return errors.Join(fn(ctx), errBroken)
				})
			},
			outcome: retention.OutcomePartial,
			errs:    []error{errBroken},
			calls:   "inventory, drop raw7, drop raw6, drop raw5, drop raw4, prune, reconcile",
			stopped: "broken",
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench()
			c.set(b)
			b.run(t, func(t *testing.T, report retention.Report, err error) {
				require.Equal(t, c.outcome, report.Outcome)
				require.Equal(t, c.stopped, report.Stopped)
				require.Equal(t, c.calls, b.script.log())
				if c.events != "" {
					require.Equal(t, c.events, b.events.log())
				}
				for _, e := range c.errs {
					require.ErrorIs(t, err, e)
				}
				switch report.Outcome {
				case retention.OutcomeDone, retention.OutcomeNothingToDo:
					require.NoError(t, err)
				case retention.OutcomePartial:
					require.Equal(t, c.errs == nil, err == nil)
				default:
					require.Error(t, err)
				}
				last := b.list[len(b.list)-1]
				require.Equal(t, retention.EventFinished, last.Kind)
				require.Equal(t, report, last.Report)
				require.Equal(t, err, last.Err)
			})
		})
	}
}

type heldError struct{}

func (heldError) Error() string { return "held until noon" }

func (heldError) Held() bool { return true }
