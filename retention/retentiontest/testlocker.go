package retentiontest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mailretention/mailretention/retention"
)

// patience ends a check whose Locker waits where it should not.
const patience = 30 * time.Second

// stragglers is how long work goes on after its context has ended.
const stragglers = 10 * time.Millisecond

// TestLocker checks what [retention.Locker] promises. open is called for each check, and returns a Locker of which
// nothing is held; whatever it does between two holders of one name must be off.
func TestLocker(t *testing.T, open func(*testing.T) retention.Locker) {
	for _, c := range lockerChecks {
		t.Run(c.name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			if err := c.check(ctx, open(t)); err != nil {
				t.Error(err)
			}
		})
	}
}

// lockerChecks are functions of their own, so that they can be tried on Lockers that break a rule.
var lockerChecks = []struct {
	name  string
	check func(context.Context, retention.Locker) error
}{
	{"work runs and its error comes back", checkWork},
	{"a held name is refused at once", checkHeld},
	{"names are told apart byte by byte", checkNames},
	{"a name is free after its work, however that ended", checkFree},
	{"a panic goes on", checkPanic},
	{"the end of the context reaches the work and is waited for", checkWaits},
	{"nothing begins after the end of its context", checkLockerEnded},
	{"never two at once", checkExclusive},
}

type contextKey struct{}

func checkWork(ctx context.Context, l retention.Locker) error {
	calls := 0
	err := l.Do(context.WithValue(ctx, contextKey{}, "value"), "a", func(ctx context.Context) error {
		calls++
		if ctx.Value(contextKey{}) != "value" || ctx.Err() != nil {
			return errors.New("the work's context is not made from the caller's")
		}
		return errStopHere
	})
	if calls != 1 {
		return fmt.Errorf("the work ran %d times, want once", calls)
	}
	return wants("Do", err, errStopHere)
}

func checkHeld(ctx context.Context, l retention.Locker) error {
	return l.Do(ctx, "a", func(ctx context.Context) error {
		ran := false
		err := l.Do(ctx, "a", func(context.Context) error {
			ran = true
			return nil
		})
		var held interface{ Held() bool }
		switch {
		case ran:
			return errors.New("work ran under a name that is held")
		case errors.Is(err, retention.ErrHeld), errors.As(err, &held) && held.Held():
			return nil
		}
		return fmt.Errorf("Do of a held name returned %v, want an error that matches ErrHeld or says Held", err)
	})
}

func checkNames(ctx context.Context, l retention.Locker) error {
	return within(ctx, l, []string{"retention/a", "retention/A", "retention/a ", "retention/ä", "retention/a%"})
}

// within holds the names all at once.
func within(ctx context.Context, l retention.Locker, names []string) error {
	if len(names) == 0 {
		return nil
	}
	err := l.Do(ctx, names[0], func(ctx context.Context) error { return within(ctx, l, names[1:]) })
	if err != nil {
		return fmt.Errorf("Do of %q: %w", names[0], err)
	}
	return nil
}

func checkFree(ctx context.Context, l retention.Locker) error {
	for _, result := range []error{nil, errStopHere, nil, nil} {
		if err := l.Do(ctx, "a", func(context.Context) error { return result }); !errors.Is(err, result) {
			return fmt.Errorf("Do returned %v, want %v", err, result)
		}
	}
	return nil
}

func checkPanic(ctx context.Context, l retention.Locker) (err error) {
	defer func() {
		if v := recover(); v != errStopHere {
			err = fmt.Errorf("the work panicked with %v, and the caller sees %v", errStopHere, v)
		}
	}()
	return l.Do(ctx, "a", func(context.Context) error { panic(errStopHere) })
}

func checkWaits(ctx context.Context, l retention.Locker) error {
	outer, cancel := context.WithCancel(ctx)
	defer cancel()
	var returned atomic.Bool
	err := l.Do(outer, "a", func(inner context.Context) error {
		cancel()
		select {
		case <-inner.Done():
		case <-ctx.Done():
			return errors.New("the end of the caller's context did not reach the work")
		}
		time.Sleep(stragglers) // for a Locker that does not wait to return
		returned.Store(true)
		return context.Cause(inner)
	})
	if !returned.Load() {
		return errors.New("Do returned before its work")
	}
	return wants("Do whose context ends", err, context.Canceled)
}

func checkLockerEnded(ctx context.Context, l retention.Locker) error {
	ended, cancel := context.WithCancel(ctx)
	cancel()
	ran := false
	err := l.Do(ended, "a", func(context.Context) error {
		ran = true
		return nil
	})
	if ran {
		return errors.New("work began after the end of its context")
	}
	return wants("Do", err, context.Canceled)
}

// checkExclusive keeps the name held until all others have been refused.
func checkExclusive(ctx context.Context, l retention.Locker) error {
	const contenders = 16
	var ran atomic.Int32
	var wg sync.WaitGroup
	returned := make(chan struct{}, contenders)
	for range contenders {
		wg.Go(func() {
			_ = l.Do(ctx, "a", func(ctx context.Context) error {
				if ran.Add(1) > 1 {
					return nil
				}
				for range contenders - 1 {
					select {
					case <-returned:
					case <-ctx.Done():
						return context.Cause(ctx)
					}
				}
				return nil
			})
			returned <- struct{}{}
		})
	}
	wg.Wait()
	if ran.Load() != 1 {
		return fmt.Errorf("of %d at once %d ran, want one", contenders, ran.Load())
	}
	return nil
}
