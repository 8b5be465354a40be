package retention

import (
	"context"
	"errors"
	"iter"
	"runtime"
	"sync"
)

// RunAll runs many mail servers, parallel of them at once; less than 1 means 1. It ranges over runners in its own
// goroutine, no further once ctx ends. each, which may be nil, is called once for each runner that it took, never
// concurrently. A run that was held is tried once more after all others, and each gets that report.
//
// One run's failure is no other's. RunAll returns the context's error only, once all runs have ended. When a
// callback panics no more runs start, those in progress are cancelled, and the panic goes on to the caller.
func RunAll(ctx context.Context, runners iter.Seq[*Runner], parallel int, each func(Report, error)) error {
	running, cancel := context.WithCancel(ctx)
	f := &fleet{cancel: cancel, each: each, slots: make(chan struct{}, max(parallel, 1))}
	defer f.runs.Wait() // also when runners panics
	defer cancel()
	if ctx.Err() == nil {
		for r := range runners {
			f.start(func() { f.first(running, r) })
			if running.Err() != nil {
				break
			}
		}
	}
	f.join()
	for _, a := range f.held {
		f.start(func() { f.second(running, a) })
	}
	f.join()
	return ctx.Err()
}

type fleet struct {
	cancel context.CancelFunc
	slots  chan struct{}
	runs   sync.WaitGroup

	mu     sync.Mutex // guards what follows, and lets one call of each in
	each   func(Report, error)
	held   []attempt
	broken bool // a callback panicked with the value, or ended its goroutine where that is nil
	value  any
}

type attempt struct {
	runner *Runner
	report Report
	err    error
}

// start waits for a free slot.
func (f *fleet) start(work func()) {
	f.slots <- struct{}{}
	f.runs.Go(func() {
		returned := false
		defer func() {
			if !returned {
				f.abort(recover())
			}
			<-f.slots
		}()
		work()
		returned = true
	})
}

func (f *fleet) first(ctx context.Context, r *Runner) {
	a := try(ctx, r)
	if a.report.Outcome != OutcomeHeld {
		f.tell(a)
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.held = append(f.held, a)
}

func (f *fleet) second(ctx context.Context, a attempt) {
	if ctx.Err() == nil {
		a = try(ctx, a.runner)
	}
	f.tell(a)
}

func try(ctx context.Context, r *Runner) attempt {
	if r == nil { // as New returns beside an error: no reason for the others not to run
		err := errors.New("retention: the Runner is nil")
		return attempt{report: Report{Outcome: OutcomeFailed, Stopped: err.Error()}, err: err}
	}
	report, err := r.Run(ctx)
	return attempt{r, report, err}
}

func (f *fleet) tell(a attempt) {
	f.mu.Lock()
	defer f.mu.Unlock()
	each := f.each
	if each == nil || f.broken {
		return
	}
	f.each = nil // unless it returns: a run that ends before the panic is noted calls it no more
	each(a.report, a.err)
	f.each = each
}

func (f *fleet) abort(value any) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.broken {
		f.broken, f.value = true, value
	}
	f.cancel()
}

// join waits for all runs and passes on how a callback ended its goroutine.
func (f *fleet) join() {
	f.runs.Wait()
	switch {
	case f.broken && f.value != nil:
		panic(f.value)
	case f.broken:
		runtime.Goexit()
	}
}
