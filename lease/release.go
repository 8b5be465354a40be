package lease

import (
	"context"
	"time"
)

// Release frees the lease for the next one. Call it after the work has ended. Twice is fine, and it never frees somebody else's: if the
// lease was taken by another, the error matches [ErrLost]. It goes on when ctx has ended, within a bound of its own, about a third
// of the TTL. A lease whose release fails expires by itself.
func (l *Lease) Release(ctx context.Context) error {
	return l.release(ctx, 0)
}

func (l *Lease) release(ctx context.Context, rest time.Duration) error {
	switch lost := l.lose(ctx, (*Lease).given); {
	case lost.Reason == LostStolen || lost.Reason == LostForced:
		return lost
	case l.released.Load():
		return nil
	}
	begin, unsure := time.Now(), false
	err := l.leases.persist(context.WithoutCancel(ctx), func(ctx context.Context) error {
		n, _, err := l.leases.exec(ctx, l.leases.attempt, func(t table) string { return t.release(l.term, rest) })
		if err == nil && n == 0 && !unsure {
			err = l.unlessFree(ctx)
		}
		unsure = unsure || err != nil // the next try may find what this one did
		return err
	})
	if err == nil {
		l.leases.memory.forget(l.term.name) // what others were told of it is over
		l.released.Store(true)
	}
	l.leases.emit(Event{Kind: EventReleased, Name: l.term.name, Token: l.term.token, Took: time.Since(begin), Err: err})
	return err
}

// unlessFree says who has the lease, after a release that affected no row.
func (l *Lease) unlessFree(ctx context.Context) error {
	lost, err := l.look(ctx)
	if err != nil {
		return err
	}
	if lost.Reason == LostReleased {
		return nil
	}
	return lost
}
