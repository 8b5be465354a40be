package retentiontest

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mailretention/mailretention/retention"
	"github.com/stretchr/testify/require"
)

// locker is a Locker made of its method.
type locker func(ctx context.Context, name string, fn func(context.Context) error) error

func (l locker) Do(ctx context.Context, name string, fn func(context.Context) error) error {
	return l(ctx, name, fn)
}

func TestLockerCatches(t *testing.T) {
	type work = func(context.Context) error
	faults := map[string]func(l *Locker) locker{
		"does not lock": func(*Locker) locker {
			return func(ctx context.Context, _ string, fn work) error {
				if ctx.Err() != nil {
					return ctx.Err()
				}
				return fn(ctx)
			}
		},
		"waits for the holder": func(l *Locker) locker {
			return func(ctx context.Context, name string, fn work) error {
				err := l.Do(ctx, name, fn)
				for errors.Is(err, retention.ErrHeld) {
					time.Sleep(time.Second)
					err = l.Do(ctx, name, fn)
				}
				return err
			}
		},
		"does not say that it is held": func(l *Locker) locker {
			return func(ctx context.Context, name string, fn work) error {
				if err := l.Do(ctx, name, fn); !errors.Is(err, retention.ErrHeld) {
					return err
				}
				return errGone
			}
		},
		"says nothing when it is held": func(l *Locker) locker {
			return func(ctx context.Context, name string, fn work) error {
				if err := l.Do(ctx, name, fn); !errors.Is(err, retention.ErrHeld) {
					return err
				}
				return nil
			}
		},
		"ignores case": func(l *Locker) locker {
			return func(ctx context.Context, name string, fn work) error { return l.Do(ctx, strings.ToLower(name), fn) }
		},
		"ignores a space at the end": func(l *Locker) locker {
			return func(ctx context.Context, name string, fn work) error { return l.Do(ctx, strings.TrimSpace(name), fn) }
		},
		"has one lock for all": func(l *Locker) locker {
			return func(ctx context.Context, _ string, fn work) error { return l.Do(ctx, "", fn) }
		},
		"keeps it after an error": func(l *Locker) locker {
			return func(ctx context.Context, name string, fn work) error {
				err := l.Do(ctx, name, fn)
				if err != nil {
					l.acquire(name)
				}
				return err
			}
		},
		"keeps it after success": func(l *Locker) locker {
			return func(ctx context.Context, name string, fn work) error {
				err := l.Do(ctx, name, fn)
				if err == nil {
					l.acquire(name)
				}
				return err
			}
		},
		"swallows the work's error": func(l *Locker) locker {
			return func(ctx context.Context, name string, fn work) error {
				return l.Do(ctx, name, func(ctx context.Context) error {
					_ = fn(ctx)
					return nil
				})
			}
		},
		"swallows a panic": func(l *Locker) locker {
			return func(ctx context.Context, name string, fn work) (err error) {
				defer func() { _ = recover() }()
				return l.Do(ctx, name, fn)
			}
		},
		"runs the work twice": func(l *Locker) locker {
			return func(ctx context.Context, name string, fn work) error {
				return errors.Join(l.Do(ctx, name, fn), l.Do(ctx, name, fn))
			}
		},
		"does not run it": func(*Locker) locker {
			return func(context.Context, string, work) error { return nil }
		},
		"gives the work another context": func(l *Locker) locker {
			return func(ctx context.Context, name string, fn work) error {
				return l.Do(ctx, name, func(context.Context) error { return fn(context.Background()) })
			}
		},
		"hides the end of the context": func(l *Locker) locker {
			return func(ctx context.Context, name string, fn work) error {
				return l.Do(context.WithoutCancel(ctx), name, fn)
			}
		},
		"does not wait for the work": func(l *Locker) locker {
			return func(ctx context.Context, name string, fn work) error {
				done := make(chan error, 1)
				go func() {
					defer func() { _ = recover() }()
					done <- l.Do(ctx, name, fn)
				}()
				select {
				case err := <-done:
					return err
				case <-ctx.Done():
					return ctx.Err()
				}
			}
		},
		"begins after the end": func(l *Locker) locker {
			return func(ctx context.Context, name string, fn work) error {
				err := l.Do(context.WithoutCancel(ctx), name, func(context.Context) error { return fn(ctx) })
				return errors.Join(err, ctx.Err())
			}
		},
	}
	for name, fault := range faults {
		t.Run(name, func(t *testing.T) {
			caught := false
			for _, c := range lockerChecks {
				synctest.Test(t, func(t *testing.T) {
					ctx, cancel := context.WithTimeout(t.Context(), patience)
					defer cancel()
					caught = c.check(ctx, fault(NewLocker())) != nil || caught
					time.Sleep(patience) // what a fault left running ends
				})
			}
			require.True(t, caught)
		})
	}
}
