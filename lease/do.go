package lease

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Acquire gets the lease at once, or returns a [*HeldError], whose Retry says when to come back. It tries again after errors that may
// pass, for about a third of the TTL. An Acquire that gives up without knowing what became of its statement frees
// what that may have acquired.
func (l *Leases) Acquire(ctx context.Context, name string) (*Lease, error) {
	return l.acquire(ctx, name, func(error) bool { return false })
}

// Wait gets the lease as soon as it is free or may be stolen. It returns an error when ctx ends, which matches [ErrHeld] too
// if that was why, and at once for one that doesn't pass. Who waits longest is not served first.
func (l *Leases) Wait(ctx context.Context, name string) (*Lease, error) {
	return l.acquire(ctx, name, func(err error) bool { return errors.Is(err, ErrHeld) || transient(err) })
}

// Do runs fn while it holds the lease, renewing it. It returns a [*HeldError] at once, without calling fn, if another holds
// the lease and is alive, or if it rests; the lease of a holder that seems dead is waited for as long as it must be
// observed before it may be stolen, at most twice max(Observe, its TTL).
//
// fn's context ends with a [*LostError] as its cause as soon as the lease can't be trusted any more; fn must return then.
// Do waits for fn, and then frees the lease, also if fn panics. If fn returns so late that the lease may be somebody else's,
// nothing is freed. The error joins fn's, that of a lost lease, and that of the release.
func (l *Leases) Do(ctx context.Context, name string, fn func(context.Context) error) (err error) {
	lease, err := l.acquire(ctx, name, seemsDead())
	if err != nil {
		return err
	}
	work, cancel := lease.Heartbeat(ctx)
	returned := false // else it panics
	defer func() {
		if lost := context.Cause(work); errors.Is(lost, ErrLost) {
			err = joinNew(err, lost)
		}
		cancel()
		if late := lease.overdue(); late > 0 {
			err = errors.Join(joinNew(err, lease.lose(ctx, (*Lease).expiry)), fmt.Errorf("lease %q: the work returned %s after "+
				"its lease could be stolen, as if it ignored its context: nothing is released, it expires by itself", name, late))
			return
		}
		var rest time.Duration
		if returned && err == nil {
			rest = l.cfg.MinHold
		}
		err = joinNew(err, lease.release(ctx, rest))
	}()
	err = fn(work)
	returned = true
	return err
}

// joinNew joins more to err unless err has it already.
func joinNew(err, more error) error {
	if more == nil || errors.Is(err, more) {
		return err
	}
	return errors.Join(err, more)
}

// seemsDead says how long to go on: while the row looks abandoned, and shows no sign of life.
func seemsDead() func(error) bool {
	var first *HeldError
	return func(err error) bool {
		held, ok := errors.AsType[*HeldError](err)
		if !ok || !held.dead {
			return false
		}
		if first == nil {
			first = held
		}
		return held.Token == first.Token && held.seq == first.seq
	}
}
