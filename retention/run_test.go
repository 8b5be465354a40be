package retention_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mailretention/mailretention/retention"
	"github.com/stretchr/testify/require"
)

var errBroken = errors.New("broken")

// bench is a store of eight days, of which the policy drops 4, 5, 6 and 7 days ago, and prunes messages.
type bench struct {
	script
	events
	cfg retention.Config
}

func newBench() *bench {
	b := &bench{cfg: retention.Config{Name: "mx", Policy: retention.Policy{RawDays: new(3), MessageDays: new(3)}}}
	b.cfg.OnEvent = b.on
	return b
}

// run runs under a virtual clock that agrees with the database's.
func (b *bench) run(t *testing.T, check func(t *testing.T, report retention.Report, err error)) {
	b.runUnder(t, context.Background(), check)
}

func (b *bench) runUnder(t *testing.T, ctx context.Context, check func(t *testing.T, report retention.Report, err error)) {
	synctest.Test(t, func(t *testing.T) {
		b.inv = today(8)
		report, err := retention.Run(ctx, &b.script, b.cfg)
		check(t, report, err)
	})
}

// today returns an inventory of one table for each of the last n days of the local clock, newest first.
func today(n int) retention.Inventory {
	inv := retention.Inventory{Now: time.Now().UTC(), Newest: time.Now().UTC()}
	for ago := range n {
		day := inv.Now.Truncate(24*time.Hour).AddDate(0, 0, -ago)
		inv.Tables = append(inv.Tables, retention.Table{Name: fmt.Sprintf("raw%d", ago), Day: day, Bytes: mib, SizeKnown: true})
	}
	return inv
}

func TestRunOrder(t *testing.T) {
	b := newBench()
	b.inventory = func(context.Context) (retention.Inventory, error) {
		inv := b.inv
		if !slices.Contains(b.calls, "reconcile") {
			inv.Drift = []retention.Drift{{Table: "raw-2000-01-01", Kind: retention.DriftOrphan, Bytes: 5 << 30}}
		}
		return inv, nil
	}
	b.reconcile = func(context.Context) (int, error) { return 1, nil }
	b.cfg.Locker = locker(func(ctx context.Context, name string, fn func(context.Context) error) error {
		b.note("lease " + name)
		defer b.note("release")
		return fn(ctx)
	})
	b.run(t, func(t *testing.T, report retention.Report, err error) {
		require.NoError(t, err)
		require.Equal(t, "lease retention/mx, inventory, reconcile, inventory, drop raw7, drop raw6, drop raw5, drop raw4, prune, reconcile, release", b.script.log())
		require.Equal(t, "planned, dropping raw7, batch raw7, dropped raw7, dropping raw6, batch raw6, dropped raw6, dropping raw5, batch raw5, dropped raw5, "+
			"dropping raw4, batch raw4, dropped raw4, batch, pruned, finished", b.events.log())
		require.Equal(t, retention.OutcomeDone, report.Outcome)
		require.Equal(t, "mx", report.Name)
		require.Equal(t, 2, report.Repaired)
		require.EqualValues(t, 8, report.RowsDetached)
		require.EqualValues(t, 3, report.RowsPruned)
		require.EqualValues(t, 4*mib, report.BytesFreed)
		require.Empty(t, report.Stopped)
		require.Empty(t, report.Plan.Drift, "the plan is made of the second reading")
		require.Equal(t, "mx: done after 0s, 4 tables dropped, 4.0 MiB freed, 8 messages detached, 3 messages pruned, 2 places repaired", report.String())
	})
}

func TestRunReconcilesOnlyOnDriftAndAfterDrops(t *testing.T) {
	b := newBench()
	b.cfg.Policy.RawDays = nil
	b.run(t, func(t *testing.T, report retention.Report, err error) {
		require.NoError(t, err)
		require.Equal(t, "inventory, prune", b.script.log())
		require.Equal(t, retention.OutcomeDone, report.Outcome)
	})
}

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

func TestRunJoinsOneErrorForEachTable(t *testing.T) {
	b := newBench()
	b.drop = failing(map[string]error{"raw7": errBroken, "raw5": errBroken})
	b.run(t, func(t *testing.T, report retention.Report, err error) {
		require.EqualError(t, err, "raw7: broken\nraw5: broken")
		first, ok := errors.AsType[*retention.TableError](err)
		require.True(t, ok)
		require.Equal(t, "raw7", first.Table)

		var verdicts []retention.Verdict
		for _, tr := range report.Tables {
			verdicts = append(verdicts, tr.Verdict)
			require.Equal(t, tr.Verdict == retention.VerdictFailed, errors.Is(tr.Err, errBroken))
			require.Equal(t, retention.ReasonAge, tr.Reason)
		}
		require.Equal(t, []retention.Verdict{retention.VerdictFailed, retention.VerdictDropped, retention.VerdictFailed, retention.VerdictDropped}, verdicts)
	})
}

func TestRunReportsDetachedTables(t *testing.T) {
	b := newBench()
	b.drop = func(_ context.Context, name string, p progress) error {
		result := map[string]error{"raw7": errBroken, "raw6": retention.ErrInUse}
		return errors.Join(p(4), p(1), result[name])
	}
	b.run(t, func(t *testing.T, report retention.Report, _ error) {
		require.EqualValues(t, 20, report.RowsDetached)
		for i, detached := range []bool{true, true, false, false} {
			require.Equal(t, detached, report.Tables[i].Detached, report.Tables[i].Table.Name)
			require.EqualValues(t, 5, report.Tables[i].Rows)
		}
	})
}

func TestRunTellsHowLongStepsTook(t *testing.T) {
	b := newBench()
	b.drop = func(_ context.Context, _ string, p progress) error {
		time.Sleep(time.Second)
		err := p(1)
		time.Sleep(2 * time.Second)
		return errors.Join(err, p(1))
	}
	b.run(t, func(t *testing.T, report retention.Report, err error) {
		require.NoError(t, err)
		require.Equal(t, 12*time.Second, report.Took)
		require.Equal(t, 3*time.Second, report.Tables[0].Took)
		require.Equal(t, time.UTC, report.Started.Location())
		took := map[retention.EventKind][]time.Duration{}
		for _, e := range b.list {
			took[e.Kind] = append(took[e.Kind], e.Took)
		}
		require.Equal(t, []time.Duration{time.Second, 2 * time.Second}, took[retention.EventBatch][:2])
		require.Equal(t, 3*time.Second, took[retention.EventDropped][0])
		require.Equal(t, 12*time.Second, took[retention.EventFinished][0])
	})
}

func TestEventsCarryTheReportSoFar(t *testing.T) {
	b := newBench()
	b.run(t, func(t *testing.T, _ retention.Report, _ error) {
		tables, detached := 0, int64(0)
		for _, e := range b.list {
			require.GreaterOrEqual(t, len(e.Report.Tables), tables)
			require.GreaterOrEqual(t, e.Report.RowsDetached, detached)
			tables, detached = len(e.Report.Tables), e.Report.RowsDetached
			require.Len(t, e.Report.Plan.Drops, 4)
			require.Equal(t, e.Kind == retention.EventFinished, e.Report.Outcome != "")
		}
		require.Equal(t, 4, tables)
	})
}

func TestRunLogs(t *testing.T) {
	var text bytes.Buffer
	b := newBench()
	b.drop = failing(map[string]error{"raw6": errBroken, "raw5": retention.ErrInUse})
	b.cfg.Logger = slog.New(slog.NewTextHandler(&text, &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == slog.TimeKey {
			return slog.Attr{}
		}
		return a
	}}))
	b.run(t, func(t *testing.T, _ retention.Report, _ error) {
		require.Equal(t, `level=INFO msg="retention planned" mail_server=mx drops=4 warnings=[]
level=INFO msg="retention dropped" mail_server=mx table=raw7 rows=2 took=0s
level=WARN msg="retention failed" mail_server=mx table=raw6 rows=0 took=0s err=broken
level=INFO msg="retention kept" mail_server=mx table=raw5 rows=0 took=0s err="retention: in use"
level=INFO msg="retention dropped" mail_server=mx table=raw4 rows=2 took=0s
level=INFO msg="retention pruned" mail_server=mx table="" rows=3 took=0s
level=WARN msg="retention finished" mail_server=mx report.name=mx report.outcome=partial report.took=0s report.dropped=2 report.kept=1 `+
			`report.failed=1 report.repaired=0 report.rows_detached=4 report.rows_pruned=3 report.bytes_freed=2097152 report.stopped="" err="raw6: broken"
`, text.String())
	})
}

func TestNewJoinsAllFaults(t *testing.T) {
	_, err := retention.New(nil, retention.Config{MaxDrops: -1, MaxSkew: -time.Second, Policy: retention.Policy{MinKeepDays: -1}})
	require.EqualError(t, err, `retention: the store is nil: give one, such as a *provisioner.Provisioner
retention: Name is "": give the mail server's name, which names the lease
retention: MaxDrops is -1: it must not be negative; 0 means no bound
retention: MaxSkew is -1s: it must not be negative; 0 means 1h0m0s
retention: refused: bad policy: MinKeepDays is -1: it must not be negative; 0 means 2`)
	require.ErrorIs(t, err, retention.ErrBadPolicy)
}
