package retention_test

import (
	"context"
	"errors"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mailretention/mailretention/retention"
	"github.com/stretchr/testify/require"
)

var errShutdown = errors.New("shutting down")

// TestRunEndsWithItsContext ends the context at a point of the run, with a cause, and the lease's likewise.
func TestRunEndsWithItsContext(t *testing.T) {
	for name, c := range map[string]struct {
		at      func(b *bench, end func())
		outcome retention.Outcome
		calls   string
		events  string
	}{
		"before it begins": {
			func(_ *bench, end func()) { end() },
			retention.OutcomeFailed, "", "finished",
		},
		"in the inventory": {
			func(b *bench, end func()) {
				b.inventory = func(ctx context.Context) (retention.Inventory, error) {
					end()
					return retention.Inventory{}, ctx.Err()
				}
			},
			retention.OutcomeFailed, "inventory", "finished",
		},
		"in an inventory that does not look": {
			func(b *bench, end func()) {
				b.inventory = func(context.Context) (retention.Inventory, error) {
					end()
					return b.inv, nil
				}
			},
			retention.OutcomeFailed, "inventory", "planned, finished",
		},
		"in a batch": {
			func(b *bench, end func()) {
				b.drop = func(_ context.Context, name string, p progress) error {
					if name == "raw6" {
						end()
					}
					return p(2)
				}
			},
			retention.OutcomePartial, "inventory, drop raw7, drop raw6", "planned, dropping raw7, batch raw7, dropped raw7, dropping raw6, batch raw6, failed raw6, finished",
		},
		"in a statement": {
			func(b *bench, end func()) {
				b.drop = func(ctx context.Context, name string, _ progress) error {
					if name == "raw6" {
						end()
					}
					return ctx.Err()
				}
			},
			retention.OutcomePartial, "inventory, drop raw7, drop raw6", "planned, dropping raw7, dropped raw7, dropping raw6, failed raw6, finished",
		},
		"in a statement that fails otherwise": {
			func(b *bench, end func()) {
				b.drop = func(context.Context, string, progress) error {
					end()
					return errBroken
				}
			},
			retention.OutcomePartial, "inventory, drop raw7", "planned, dropping raw7, failed raw7, finished",
		},
		"in a drop that the queue refuses": {
			func(b *bench, end func()) {
				b.drop = func(context.Context, string, progress) error {
					end()
					return retention.ErrRefused
				}
			},
			retention.OutcomePartial, "inventory, drop raw7", "planned, dropping raw7, kept raw7, finished",
		},
		"between two tables": {
			func(b *bench, end func()) {
				b.drop = func(_ context.Context, _ string, p progress) error {
					err := p(1)
					end()
					return err
				}
			},
			retention.OutcomePartial, "inventory, drop raw7", "planned, dropping raw7, batch raw7, dropped raw7, finished",
		},
		"after the last table": {
			func(b *bench, end func()) {
				b.drop = func(_ context.Context, name string, p progress) error {
					err := p(1)
					if name == "raw4" {
						end()
					}
					return err
				}
			},
			retention.OutcomePartial, "inventory, drop raw7, drop raw6, drop raw5, drop raw4", "",
		},
		"in pruning": {
			func(b *bench, end func()) {
				b.prune = func(_ context.Context, _ retention.Cut, p progress) error {
					end()
					return p(1)
				}
			},
			retention.OutcomePartial, "inventory, drop raw7, drop raw6, drop raw5, drop raw4, prune", "",
		},
		"after pruning": {
			func(b *bench, end func()) {
				b.prune = func(context.Context, retention.Cut, progress) error {
					end()
					return nil
				}
			},
			retention.OutcomePartial, "inventory, drop raw7, drop raw6, drop raw5, drop raw4, prune", "",
		},
		"while the holds are read": {
			func(b *bench, end func()) {
				b.cfg.Holds = func(ctx context.Context) ([]retention.Hold, error) {
					end()
					return nil, ctx.Err()
				}
			},
			retention.OutcomeFailed, "inventory", "planned, finished",
		},
	} {
		check := func(t *testing.T, b *bench, report retention.Report, err error) {
			require.ErrorIs(t, err, errShutdown)
			require.Equal(t, c.outcome, report.Outcome)
			require.Equal(t, errShutdown.Error(), report.Stopped)
			require.Equal(t, c.calls, b.script.log())
			if c.events != "" {
				require.Equal(t, c.events, b.events.log())
			}
			require.Equal(t, retention.EventFinished, b.list[len(b.list)-1].Kind)
		}
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithCancelCause(t.Context())
			b := newBench()
			c.at(b, func() { cancel(errShutdown) })
			b.runUnder(t, ctx, func(t *testing.T, report retention.Report, err error) {
				require.ErrorIs(t, err, context.Canceled)
				check(t, b, report, err)
			})
		})
		t.Run("the lease is lost "+name, func(t *testing.T) {
			b := newBench()
			lose := func() {}
			c.at(b, func() { lose() })
			b.cfg.Locker = locker(func(ctx context.Context, _ string, fn func(context.Context) error) error {
				ctx, cancel := context.WithCancelCause(ctx)
				lose = func() { cancel(errShutdown) }
				if c.calls == "" {
					lose()
				}
				return fn(ctx)
			})
			b.run(t, func(t *testing.T, report retention.Report, err error) { check(t, b, report, err) })
		})
	}
}

func TestRunEndsAtItsDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		s := &script{inv: today(8), drop: func(ctx context.Context, _ string, _ progress) error {
			time.Sleep(40 * time.Second)
			return ctx.Err()
		}}
		report, err := retention.Run(ctx, s, newBench().cfg)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.Equal(t, retention.OutcomePartial, report.Outcome)
		require.Equal(t, "inventory, drop raw7, drop raw6", s.log())
	})
}

func TestRunThatWasAllDoneIsDone(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	b := newBench()
	b.reconcile = func(context.Context) (int, error) {
		cancel()
		return 0, nil
	}
	b.runUnder(t, ctx, func(t *testing.T, report retention.Report, err error) {
		require.NoError(t, err)
		require.Equal(t, retention.OutcomeDone, report.Outcome)
	})
}

// TestRunPassesPanicsOn looks at the last event, since the report can't come back.
func TestRunPassesPanicsOn(t *testing.T) {
	panicking := map[string]func(b *bench){
		"the inventory": func(b *bench) {
			b.inventory = func(context.Context) (retention.Inventory, error) { panic(errBroken) }
		},
		"a drop": func(b *bench) {
			b.drop = func(_ context.Context, name string, p progress) error {
				if name == "raw6" {
					panic(errBroken)
				}
				return p(2)
			}
		},
		"the holds": func(b *bench) {
			b.cfg.Holds = func(context.Context) ([]retention.Hold, error) { panic(errBroken) }
		},
		"the Locker": func(b *bench) {
			b.cfg.Locker = locker(func(context.Context, string, func(context.Context) error) error { panic(errBroken) })
		},
		"OnEvent": func(b *bench) {
			b.cfg.OnEvent = func(e retention.Event) {
				b.on(e)
				if e.Kind == retention.EventDropping {
					panic(errBroken)
				}
			}
		},
	}
	for name, set := range panicking {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBench()
				b.inv = today(8)
				set(b)
				require.PanicsWithValue(t, errBroken, func() { _, _ = retention.Run(t.Context(), &b.script, b.cfg) })
				finished := 0
				for _, e := range b.list {
					if e.Kind == retention.EventFinished {
						finished++
					}
				}
				require.Equal(t, 1, finished)
				last := b.list[len(b.list)-1]
				require.Equal(t, retention.EventFinished, last.Kind)
				require.Error(t, last.Err)
				require.NotEmpty(t, last.Report.Stopped)
				want := retention.OutcomeFailed
				if len(last.Report.Tables) > 0 {
					want = retention.OutcomePartial
				}
				require.Equal(t, want, last.Report.Outcome)
			})
		})
	}
	t.Run("the end of the goroutine, as by a mock in a test", func(t *testing.T) {
		b := newBench()
		b.inventory = func(context.Context) (retention.Inventory, error) {
			runtime.Goexit()
			return retention.Inventory{}, nil
		}
		done := make(chan struct{})
		go func() {
			defer close(done)
			_, _ = retention.Run(t.Context(), &b.script, b.cfg)
		}()
		<-done
		require.Equal(t, "finished", b.events.log())
	})
}
