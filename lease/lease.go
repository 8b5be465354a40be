package lease

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"
)

// Leases acquires and inspects the leases of one table. It may be shared by goroutines.
type Leases struct {
	db      *sql.DB
	cfg     Config
	attempt time.Duration // bounds one attempt at a statement
	poll    time.Duration // the longest pause between two looks
	terms   string        // what each acquire writes
	known   atomic.Pointer[session]
	memory  memory
}

// Lease is a lease that was acquired. It may be shared by goroutines.
type Lease struct {
	leases     *Leases
	term       term
	stolenFrom string
	renewal    string // the statement
	acquired   time.Time
	lost       atomic.Pointer[LostError]
	losing     sync.Once
	released   atomic.Bool   // the row says so
	gone       chan struct{} // closed once lost is set

	mu     sync.Mutex
	trust  trust
	ended  bool  // not trusted any more, though why may still be looked for
	failed error // the last renewal's, if it failed
}

// trust is when a lease stops being trusted, by both local clocks: the monotonic one stands still while a machine
// sleeps, the wall clock may be set back.
type trust struct {
	monotonic time.Time
	wall      time.Time
}

func trustUntil(t time.Time) trust {
	return trust{monotonic: t, wall: t.Round(0)}
}

// left is how long the stricter clock still trusts.
func (t trust) left(now time.Time) time.Duration {
	return min(t.monotonic.Sub(now), t.wall.Sub(now.Round(0)))
}

// Name is the lease's name.
func (l *Lease) Name() string { return l.term.name }

// Token is the fencing token. It grows with each acquisition of the name, also across a restored table, and stays below 2^61.
func (l *Lease) Token() uint64 { return l.term.token }

// StolenFrom is the owner that the lease was stolen from: it had died, or lost its connection, and left work undone. "" unless stolen.
func (l *Lease) StolenFrom() string { return l.stolenFrom }

// TrustedUntil is until when the lease can be trusted if it isn't renewed, in UTC by the local clock; the zero time once
// it is lost.
func (l *Lease) TrustedUntil() time.Time {
	left := l.left()
	if left <= 0 {
		return time.Time{}
	}
	return local(time.Now().Add(left))
}

// Check says whether the lease stays trusted for as long as what comes next needs, without I/O. Its error matches [ErrLost].
func (l *Lease) Check(need time.Duration) error {
	if lost := l.lost.Load(); lost != nil {
		return lost
	}
	left := l.left()
	if left > 0 && left >= need {
		return nil
	}
	e := l.expiry(context.Background())
	e.Err = fmt.Errorf("%s are needed, but it is trusted for %s", need, max(left, 0))
	return e
}

// left is how long the lease is still trusted, by now, and within MaxHold.
func (l *Lease) left() time.Duration {
	now := time.Now()
	l.mu.Lock()
	left := l.trust.left(now)
	if l.ended {
		left = 0
	}
	l.mu.Unlock()
	if maxHold := l.leases.cfg.MaxHold; maxHold > 0 {
		left = min(left, maxHold-now.Sub(l.acquired))
	}
	return left
}

// overstayed reports whether the work has taken longer than it may.
func (l *Lease) overstayed() bool {
	maxHold := l.leases.cfg.MaxHold
	return maxHold > 0 && time.Since(l.acquired) >= maxHold
}

// overdue is for how long the lease may have been somebody else's, by what is known here.
func (l *Lease) overdue() time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	return -l.trust.left(time.Now()) - l.leases.cfg.Margin
}

// extend trusts the lease from before the request whose answer proved it. Trust never shrinks by a late answer.
func (l *Lease) extend(sent time.Time) {
	cfg := &l.leases.cfg
	l.mu.Lock()
	defer l.mu.Unlock()
	l.failed = nil
	if until := trustUntil(sent.Add(cfg.TTL - cfg.Margin)); until.left(sent) > l.trust.left(sent) {
		l.trust = until
	}
}

// Renew extends the lease by its TTL from now. It tries again after errors that may pass, until the lease can't be trusted any
// more, and at least for a sixth of the TTL. The lease is lost if its error matches [ErrLost], and may still be trusted after any other.
// A renewal after the lease expired succeeds if nobody acquired it in between.
func (l *Lease) Renew(ctx context.Context) error {
	return l.leases.retry(ctx, max(l.left(), l.leases.attempt), l.renew)
}

// renew makes one attempt.
func (l *Lease) renew(ctx context.Context) error {
	if lost := l.lost.Load(); lost != nil {
		return lost
	}
	if l.overstayed() {
		return l.lose(ctx, (*Lease).expiry)
	}
	begin, within := time.Now(), l.leases.attempt
	if left := l.left(); left > 0 {
		within = min(within, left)
	}
	n, _, err := l.leases.exec(ctx, within, func(table) string { return l.renewal })
	event := Event{Kind: EventRenewed, Name: l.term.name, Token: l.term.token, Took: time.Since(begin), Err: err}
	switch {
	case err != nil && errors.Is(ctx.Err(), context.Canceled): // nobody waits for it any more
		return err
	case err != nil:
		l.mu.Lock()
		l.failed = err
		l.mu.Unlock()
		event.Kind = EventRenewFailed
	case n == 0:
		return l.lose(ctx, (*Lease).taken)
	default:
		l.extend(begin)
	}
	l.leases.emit(event)
	return err
}
