package retention_test

import (
	"context"
	"fmt"
	"iter"
	"math"
	"runtime"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mailretention/mailretention/retention"
	"github.com/stretchr/testify/require"
)

// fleet is runners whose inventory takes a second each. It counts how many are at it at once.
type fleet struct {
	mu      sync.Mutex
	now     int
	most    int
	order   []string // in which they began
	ended   []string // whose context ended
	work    func(ctx context.Context, name string) error
	holding map[string]int // how often a name is still held
}

func (f *fleet) runner(t *testing.T, name string) *retention.Runner {
	s := &script{inventory: func(ctx context.Context) (retention.Inventory, error) { return f.inventory(ctx, name) }}
	r, err := retention.New(s, retention.Config{Name: name, Locker: locker(f.lock)})
	require.NoError(t, err)
	return r
}

func (f *fleet) lock(ctx context.Context, name string, fn func(context.Context) error) error {
	f.mu.Lock()
	held := f.holding[name] > 0
	f.holding[name]--
	f.order = append(f.order, name[len("retention/"):])
	f.mu.Unlock()
	if held {
		return retention.ErrHeld
	}
	return fn(ctx)
}

func (f *fleet) inventory(ctx context.Context, name string) (retention.Inventory, error) {
	f.mu.Lock()
	f.now++
	f.most = max(f.most, f.now)
	f.mu.Unlock()
	defer func() {
		f.mu.Lock()
		f.now--
		f.mu.Unlock()
	}()
	if f.work != nil {
		if err := f.work(ctx, name); err != nil {
			return retention.Inventory{}, err
		}
	}
	select {
	case <-time.After(time.Second):
		return retention.Inventory{Now: time.Now()}, nil
	case <-ctx.Done():
		f.mu.Lock()
		f.ended = append(f.ended, name)
		f.mu.Unlock()
		return retention.Inventory{}, ctx.Err()
	}
}

func newFleet() *fleet { return &fleet{holding: map[string]int{}} }

// all yields runners 0 to n−1, and notes how many were taken. Its counter has no lock: one goroutine ranges over it.
func (f *fleet) all(t *testing.T, n int, taken *int) iter.Seq[*retention.Runner] {
	return func(yield func(*retention.Runner) bool) {
		for i := range n {
			*taken++
			if !yield(f.runner(t, fmt.Sprint(i))) {
				return
			}
		}
	}
}

// tally collects what each is told. It has no lock: each is never called concurrently.
type tally struct {
	outcomes map[string][]retention.Outcome
	names    []string
	stopped  map[string]string
}

func newTally() *tally {
	return &tally{outcomes: map[string][]retention.Outcome{}, stopped: map[string]string{}}
}

func (l *tally) each(r retention.Report, err error) {
	l.names = append(l.names, r.Name)
	l.stopped[r.Name] = r.Stopped
	l.outcomes[r.Name] = append(l.outcomes[r.Name], r.Outcome)
	if (err == nil) != (r.Outcome == retention.OutcomeNothingToDo) {
		l.outcomes[r.Name] = append(l.outcomes[r.Name], "an error that does not fit")
	}
}

func TestRunAll(t *testing.T) {
	for parallel, want := range map[int]struct {
		most int
		took time.Duration
	}{-1: {1, 50 * time.Second}, 0: {1, 50 * time.Second}, 1: {1, 50 * time.Second}, 4: {4, 13 * time.Second}, 50: {50, time.Second}, math.MaxInt: {50, time.Second}} {
		t.Run(fmt.Sprint("parallel ", parallel), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f, l, taken, began := newFleet(), newTally(), 0, time.Now()
				f.work = func(_ context.Context, name string) error {
					if name == "17" {
						time.Sleep(time.Second)
						return errBroken
					}
					return nil
				}
				require.NoError(t, retention.RunAll(t.Context(), f.all(t, 50, &taken), parallel, l.each))
				require.Equal(t, want.most, f.most)
				require.LessOrEqual(t, time.Since(began), want.took)
				require.Equal(t, 50, taken)
				require.Len(t, l.names, 50)
				require.Len(t, l.outcomes, 50)
				for name, outcomes := range l.outcomes {
					want := retention.OutcomeNothingToDo
					if name == "17" {
						want = retention.OutcomeFailed
					}
					require.Equal(t, []retention.Outcome{want}, outcomes, name)
				}
			})
		})
	}
}

func TestRunAllTriesHeldOnesOnceMoreAfterAllOthers(t *testing.T) {
	for _, parallel := range []int{1, 3} {
		synctest.Test(t, func(t *testing.T) {
			f, l, taken := newFleet(), newTally(), 0
			f.holding["retention/1"], f.holding["retention/2"] = 1, 2
			require.NoError(t, retention.RunAll(t.Context(), f.all(t, 6, &taken), parallel, l.each))
			require.Equal(t, []string{"0", "1", "2", "3", "4", "5"}, slices.Sorted(slices.Values(f.order[:6])))
			require.Equal(t, []string{"1", "2"}, slices.Sorted(slices.Values(f.order[6:])), "all others have ended")
			require.Equal(t, []retention.Outcome{retention.OutcomeNothingToDo}, l.outcomes["1"])
			require.Equal(t, []retention.Outcome{retention.OutcomeHeld}, l.outcomes["2"])
			require.Len(t, l.names, 6)
		})
	}
}

func TestRunAllWithoutEach(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, taken := newFleet(), 0
		require.NoError(t, retention.RunAll(t.Context(), f.all(t, 3, &taken), 2, nil))
		require.Len(t, f.order, 3)
	})
}

func TestRunAllWithoutRunners(t *testing.T) {
	require.NoError(t, retention.RunAll(t.Context(), slices.Values([]*retention.Runner{}), 2, nil))
}

func TestRunAllGoesOnBesideANilRunner(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newTally()
		runners := []*retention.Runner{newFleet().runner(t, "a"), nil, newFleet().runner(t, "b")}
		require.NoError(t, retention.RunAll(t.Context(), slices.Values(runners), 1, l.each))
		require.Equal(t, []string{"a", "", "b"}, l.names)
		require.Equal(t, []retention.Outcome{retention.OutcomeFailed}, l.outcomes[""])
		require.Equal(t, "retention: the Runner is nil", l.stopped[""])
	})
}

func TestRunAllEndsWithItsContext(t *testing.T) {
	for _, parallel := range []int{1, 2, 4} {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), 2500*time.Millisecond)
			defer cancel()
			f, l, taken := newFleet(), newTally(), 0
			f.holding["retention/0"] = 1
			err := retention.RunAll(ctx, f.all(t, 100, &taken), parallel, l.each)
			require.Equal(t, context.DeadlineExceeded, err)
			require.LessOrEqual(t, taken, 4*parallel+2, "it ranges no further")
			require.Len(t, l.names, taken, "each is called for all that were taken")
			require.Len(t, l.outcomes, taken, "and once")
			require.Len(t, f.ended, parallel)
			require.Equal(t, []retention.Outcome{retention.OutcomeHeld}, l.outcomes["0"], "the held one is not tried again")
		})
	}
	t.Run("that ended before", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		f, taken := newFleet(), 0
		require.Equal(t, context.Canceled, retention.RunAll(ctx, f.all(t, 3, &taken), 1, nil))
		require.Zero(t, taken)
	})
}

// TestRunAllPassesPanicsOn fails by itself when a goroutine is left behind: synctest waits for all.
func TestRunAllPassesPanicsOn(t *testing.T) {
	for _, parallel := range []int{1, 3} {
		t.Run(fmt.Sprint("of each, parallel ", parallel), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f, taken, told := newFleet(), 0, 0
				require.PanicsWithValue(t, errBroken, func() {
					_ = retention.RunAll(t.Context(), f.all(t, 100, &taken), parallel, func(retention.Report, error) {
						told++
						panic(errBroken)
					})
				})
				require.Equal(t, 1, told)
				require.LessOrEqual(t, taken, 2*parallel+1)
			})
		})
		t.Run(fmt.Sprint("of a store, parallel ", parallel), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f, taken := newFleet(), 0
				f.work = func(_ context.Context, name string) error {
					if name == "4" {
						panic(errBroken)
					}
					return nil
				}
				require.PanicsWithValue(t, errBroken, func() {
					_ = retention.RunAll(t.Context(), f.all(t, 100, &taken), parallel, nil)
				})
				require.LessOrEqual(t, taken, 5+2*parallel)
				require.Zero(t, f.now)
			})
		})
		t.Run(fmt.Sprint("of the sequence, parallel ", parallel), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f, taken := newFleet(), 0
				require.PanicsWithValue(t, errBroken, func() {
					_ = retention.RunAll(t.Context(), func(yield func(*retention.Runner) bool) {
						f.all(t, 3, &taken)(yield)
						time.Sleep(time.Second / 2)
						panic(errBroken)
					}, parallel, nil)
				})
				require.NotEmpty(t, f.ended, "runs in progress are cancelled")
				require.Zero(t, f.now, "and waited for")
			})
		})
		t.Run(fmt.Sprint("of a held one's second try, parallel ", parallel), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f, taken := newFleet(), 0
				f.holding["retention/1"] = 1
				f.work = func(_ context.Context, name string) error {
					if name == "1" {
						panic(errBroken)
					}
					return nil
				}
				require.PanicsWithValue(t, errBroken, func() {
					_ = retention.RunAll(t.Context(), f.all(t, 3, &taken), parallel, nil)
				})
			})
		})
		t.Run(fmt.Sprint("the end of the goroutine, parallel ", parallel), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f, taken, returned := newFleet(), 0, false
				f.work = func(context.Context, string) error {
					runtime.Goexit()
					return nil
				}
				done := make(chan struct{})
				go func() {
					defer close(done)
					_ = retention.RunAll(t.Context(), f.all(t, 100, &taken), parallel, nil)
					returned = true
				}()
				<-done
				require.False(t, returned)
				require.LessOrEqual(t, taken, 2*parallel+1)
			})
		})
	}
}
