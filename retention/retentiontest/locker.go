package retentiontest

import (
	"context"
	"fmt"
	"sync"

	"github.com/mailretention/mailretention/retention"
)

var _ retention.Locker = (*Locker)(nil)

// Locker has leases in memory, for the Runners of one process. They are never lost. It may be used by several goroutines.
type Locker struct {
	mu   sync.Mutex
	held map[string]bool
}

// NewLocker returns a Locker of which nothing is held.
func NewLocker() *Locker { return &Locker{held: map[string]bool{}} }

// Do runs fn unless the name is held: then its error matches [retention.ErrHeld].
func (l *Locker) Do(ctx context.Context, name string, fn func(context.Context) error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if !l.acquire(name) {
		return fmt.Errorf("%w: %s", retention.ErrHeld, name)
	}
	defer l.release(name)
	return fn(ctx)
}

func (l *Locker) acquire(name string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.held[name] {
		return false
	}
	l.held[name] = true
	return true
}

func (l *Locker) release(name string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.held, name)
}
