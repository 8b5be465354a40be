package lease

import (
	"context"
	"database/sql"
	"errors"
	"time"
)

// lookTime bounds the look at the row that tells who has a lease that is lost. Contexts end with what it finds, so it is short.
const lookTime = 100 * time.Millisecond

// lose ends the lease for good, for the reason that why finds. The first caller's reason stays; the others wait for it.
func (l *Lease) lose(ctx context.Context, why func(*Lease, context.Context) *LostError) *LostError {
	first := false
	l.losing.Do(func() {
		first = true
		l.mu.Lock()
		l.ended = true
		l.mu.Unlock()
		l.lost.Store(why(l, ctx))
		close(l.gone)
	})
	lost := l.lost.Load()
	if first && lost.Reason != LostReleased {
		l.leases.emit(Event{Kind: EventLost, Name: l.term.name, Token: l.term.token, Err: lost})
	}
	return lost
}

// expiry is the reason that this process knows by itself.
func (l *Lease) expiry(context.Context) *LostError {
	if l.overstayed() {
		return &LostError{Name: l.term.name, Reason: LostMaxHold}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return &LostError{Name: l.term.name, Reason: LostUnrenewed, Err: l.failed}
}

// given is the reason of a holder that frees its lease itself.
func (l *Lease) given(context.Context) *LostError {
	return &LostError{Name: l.term.name, Reason: LostReleased}
}

// taken is the reason of a holder that met a row which isn't its own.
func (l *Lease) taken(ctx context.Context) *LostError {
	lost, err := l.look(ctx)
	if err != nil {
		return &LostError{Name: l.term.name, Reason: LostStolen, Err: err}
	}
	return lost
}

// late is the reason of a holder that wakes up so late that its lease may have been stolen.
func (l *Lease) late(ctx context.Context) *LostError {
	if lost, err := l.look(ctx); err == nil {
		return lost
	}
	return l.expiry(ctx)
}

// look reads what became of the lease.
func (l *Lease) look(ctx context.Context) (*LostError, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), lookTime)
	defer cancel()
	r, err := l.leases.read(ctx, l.term.name)
	if errors.Is(err, sql.ErrNoRows) {
		return &LostError{Name: l.term.name, Reason: LostForced, Err: errors.New("its row was deleted")}, nil
	}
	if err != nil {
		return nil, err
	}
	return r.taken(l.term.token), nil
}
