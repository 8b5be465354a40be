package lease

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/mailretention/mailretention/internal/mysqlerr"
)

// acquisition is one attempt to get a lease, under one holder value from its first statement until it gives up. So what
// an earlier statement got without our learning of it is recognised later.
type acquisition struct {
	*Leases
	name   string
	holder holder
	looks  bool // the row was somebody else's: look before trying, since a try makes its holder's statements queue for the row
	unsure bool // a statement may have run, or may still run
}

// acquire tries until the lease is had or goOn says no to an error of a round. Between rounds it waits: soon again at first.
func (l *Leases) acquire(ctx context.Context, name string, goOn func(error) bool) (*Lease, error) {
	if err := checkName(name); err != nil {
		return nil, err
	}
	a := &acquisition{Leases: l, name: name, holder: newHolder()}
	_, a.looks = l.memory.recall(name)
	var seen error // the last one that tells most
	for pause := firstPause; ; pause = min(2*pause, l.poll) {
		lease, err := a.round(ctx)
		if err == nil {
			return lease, nil
		}
		if seen == nil || errors.Is(err, ErrHeld) || ctx.Err() == nil {
			seen = err
		}
		if !goOn(err) {
			a.giveUp(ctx)
			return nil, err
		}
		if ended := sleep(ctx, untilRetry(err, jitter(pause))); ended != nil {
			a.giveUp(ctx)
			return nil, fmt.Errorf("lease: waiting for %q: %w; last seen: %w", name, ended, seen)
		}
	}
}

// untilRetry is the pause before the next look: no longer than until the lease can be had.
func untilRetry(err error, pause time.Duration) time.Duration {
	if held, ok := errors.AsType[*HeldError](err); ok {
		return max(min(pause, time.Until(held.Retry)), firstPause/2)
	}
	return pause
}

// round tries until there is a verdict.
func (a *acquisition) round(ctx context.Context) (*Lease, error) {
	begin := time.Now()
	var lease *Lease
	err := a.persist(ctx, func(ctx context.Context) (err error) {
		lease, err = a.step(ctx)
		return err
	})
	if err != nil {
		return nil, err
	}
	kind := EventAcquired
	if lease.stolenFrom != "" {
		kind = EventStolen
	}
	a.memory.forget(a.name)
	a.emit(Event{Kind: kind, Name: a.name, Token: lease.term.token, Took: time.Since(begin)})
	return lease, nil
}

// errRaced means that the row changed between two statements: the next look tells how.
var errRaced = errors.New("lease: another was faster")

// step tries, looks, and tries what the look suggests.
func (a *acquisition) step(ctx context.Context) (*Lease, error) {
	if !a.looks {
		a.looks = true
		first := table.acquire
		if a.cfg.MinHold > 0 { // the last one's rest may be over
			first = table.seize
		}
		if lease, err := a.claim(ctx, first); !errors.Is(err, errRaced) {
			return lease, err
		}
	}
	r, err := a.read(ctx, a.name)
	arrived := time.Now()
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return a.claim(ctx, table.insert)
	case err != nil:
		return nil, err
	case r.Active && r.holder == a.holder: // of an earlier statement whose answer was lost
		return a.confirm(ctx, a.grant(r.Token, r.StolenFrom))
	}
	if err := a.judge(&r, arrived); err != nil {
		return nil, err
	}
	return a.claim(ctx, table.seize)
}

// claim runs a statement that acquires.
func (a *acquisition) claim(ctx context.Context, statement func(table, claim) string) (*Lease, error) {
	stale, seen := a.stale(a.name)
	c := claim{name: a.name, holder: a.holder, terms: a.terms, stale: stale}
	asked := false
	sent := time.Now()
	n, number, err := a.exec(ctx, a.attempt, func(t table) string {
		asked = true
		return statement(t, c)
	})
	switch {
	case mysqlerr.Is(err, mysqlerr.Duplicate):
		return nil, errRaced
	case err != nil:
		a.unsure = a.unsure || asked && (mysqlerr.Number(err) == 0 || mysqlerr.Classify(err) == mysqlerr.Ambiguous)
		return nil, err
	case n == 0:
		return nil, errRaced
	}
	a.unsure = true // it must be freed unless it is returned
	token, stolenFrom := uint64(number)>>codeBits, ""
	if token > maxToken {
		return nil, fmt.Errorf("lease: the token of %q has reached 2^61: lower it by hand once nothing uses it any more", a.name)
	}
	if uint64(number)&(1<<codeBits-1) == stolen {
		stolenFrom = seen.owner
	}
	lease := a.grant(token, stolenFrom)
	lease.extend(sent)
	return a.confirm(ctx, lease)
}

func (a *acquisition) grant(token uint64, stolenFrom string) *Lease {
	m := term{name: a.name, holder: a.holder, token: token}
	return &Lease{
		leases: a.Leases, term: m, stolenFrom: stolenFrom, renewal: a.known.Load().table.renew(m),
		acquired: time.Now(), gone: make(chan struct{}),
	}
}

// confirm renews a lease that can't be trusted yet: how old its row is isn't known, or the answer came late.
func (a *acquisition) confirm(ctx context.Context, lease *Lease) (*Lease, error) {
	if lease.left() > 0 {
		return lease, nil
	}
	if err := lease.renew(ctx); err != nil {
		return nil, err
	}
	return lease, nil
}

// judge says why the lease can't be had now; nil: it can.
func (a *acquisition) judge(r *row, arrived time.Time) error {
	a.watchClock(r, arrived)
	held := &HeldError{Info: r.Info, seq: r.seq}
	var left time.Duration
	if r.Active {
		expires := r.Expires.Sub(r.now)
		held.dead = expires <= 0 || r.wrongClock() || r.revoked()
		s := a.memory.observe(r, arrived)
		still := s.since.Add(a.patience(s)).Sub(arrived)
		left = min(max(still, expires), still+(wrongClockFactor-1)*a.patience(s))
		if !held.dead {
			left = min(left, a.cfg.Interval)
		}
	} else {
		a.memory.forget(a.name)
		left = r.resting()
	}
	if left <= 0 {
		return nil
	}
	held.Retry = local(arrived.Add(left))
	return held
}

// rateTolerance: clocks whose rates differ by less than the part over this are no anomaly, however long ago the last look was.
const rateTolerance = 100

// watchClock reports what shows that the server's clock is or was wrong.
func (a *acquisition) watchClock(r *row, arrived time.Time) {
	report := func(format string, args ...any) {
		a.emit(Event{Kind: EventClockAnomaly, Name: a.name, Token: r.Token, Err: fmt.Errorf("lease: "+format, args...)})
	}
	if d, since := a.memory.drift(r.now, arrived, a.cfg.TTL); d.Abs() > a.cfg.Margin+since/rateTolerance {
		report("the server's clock moved by %s against the local one in %s", d, since)
	}
	if s, ok := a.memory.recall(a.name); r.wrongClock() && !(ok && s.seq == r.seq) {
		report("the row of %q was renewed at %s and expires at %s, but the server's clock says %s", a.name, r.Renewed, r.Expires, r.now)
	}
}

// local drops what only this process can read from a time.
func local(t time.Time) time.Time {
	return t.Round(0).UTC()
}

// giveUp frees what a statement may have acquired, or may still acquire. Best effort: else it expires by itself. Its
// holder value is never used again.
func (a *acquisition) giveUp(ctx context.Context) {
	if !a.unsure {
		return
	}
	err := a.persist(context.WithoutCancel(ctx), func(ctx context.Context) error {
		_, _, err := a.exec(ctx, a.attempt, func(t table) string { return t.abandon(a.name, a.holder) })
		return err
	})
	if err != nil {
		a.emit(Event{Kind: EventReleased, Name: a.name, Err: err})
	}
}
