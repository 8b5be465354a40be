package lease_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mailretention/mailretention/lease"
)

// The suite asks of any lock what a lease promises. The lease must pass every case, and the naive twin must fail every one:
// a case that the twin passes would ask nothing.

const (
	suiteTTL  = 60 * time.Second
	suiteName = "retention/mail"
)

// lock is a way to keep work from running twice: the lease or its naive twin.
type lock interface {
	// run does the work while it holds the lock, or returns an error at once if another has it. The work calls cycle now and then,
	// and commit to write a row.
	run(ctx context.Context, work func(ctx context.Context, s stay) error) error
}

type stay interface {
	cycle(ctx context.Context) error
	commit(ctx context.Context) error
}

// world is one case: a server, its workers and what they did.
type world struct {
	t       *testing.T
	server  *fakeServer
	history history
	worker  func(owner string) lock
}

// suite has the cases by name. Each returns the violation it saw.
func suite() map[string]func(*world) error {
	return map[string]func(*world) error{
		"work of three TTLs under constant polling by eight others": (*world).longWork,
		"renewals that never return":                                (*world).hungRenewals,
		"a write by a holder that was asleep while it was stolen":   (*world).zombieWrite,
		"the server's clock jumps ten minutes ahead":                (*world).jumpAhead,
		"the server's clock jumps back and ahead again":             (*world).jumpBackAndAhead,
	}
}

func TestLeasePassesTheSuite(t *testing.T) {
	for name, violation := range suite() {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := &world{t: t, server: newFakeServer()}
				w.worker = func(owner string) lock {
					return &leaseLock{history: &w.history, owner: owner, db: w.server.pool(t), leases: w.server.leases(t, owner, lease.Config{TTL: suiteTTL})}
				}
				require.NoError(t, violation(w))
				require.NoError(t, w.history.check(w.server.writes()))
			})
		})
	}
}

func TestNaiveTwinFailsTheSuite(t *testing.T) {
	for name, violation := range suite() {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := &world{t: t, server: newFakeServer()}
				w.worker = func(owner string) lock {
					return &naiveLock{history: &w.history, naive: &naiveLease{db: w.server.pool(t), owner: owner, ttl: suiteTTL}}
				}
				err := errors.Join(violation(w), w.history.check(w.server.writes()))
				t.Log(err)
				require.Error(t, err)
			})
		})
	}
}

type leaseLock struct {
	history *history
	owner   string
	db      *sql.DB // the work's
	leases  *lease.Leases
}

func (l *leaseLock) run(ctx context.Context, work func(context.Context, stay) error) error {
	return l.leases.Do(ctx, suiteName, func(ctx context.Context) error {
		held, _ := lease.FromContext(ctx)
		leave := l.history.enter(suiteName, l.owner, held.Token())
		defer leave()
		context.AfterFunc(ctx, leave)
		return work(ctx, &leaseStay{l, held.Token()})
	})
}

type leaseStay struct {
	*leaseLock
	token uint64
}

func (s *leaseStay) cycle(context.Context) error { return nil }

func (s *leaseStay) commit(ctx context.Context) error {
	return guarded(ctx, s.db, s.token, s.leases.Guard)
}

// guarded writes a row in a transaction of its own.
func guarded(ctx context.Context, db *sql.DB, token uint64, guard func(context.Context, *sql.Tx) error) error {
	tx, err := db.BeginTx(context.WithoutCancel(ctx), nil) // only the guard decides
	if err != nil {
		return err
	}
	_, err = tx.ExecContext(context.WithoutCancel(ctx), writeStatement(token))
	if err == nil {
		err = guard(ctx, tx)
	}
	if err != nil {
		_ = tx.Rollback() // a guard that failed has done it
		return err
	}
	return tx.Commit()
}

type naiveLock struct {
	history *history
	naive   *naiveLease
}

func (l *naiveLock) run(ctx context.Context, work func(context.Context, stay) error) (err error) {
	if err := l.naive.acquire(ctx, suiteName); err != nil {
		return err
	}
	token := uint64(time.Now().UnixNano()) // it has none of its own
	leave := l.history.enter(suiteName, l.naive.owner, token)
	defer func() {
		leave()
		err = errors.Join(err, l.naive.release(ctx, suiteName))
	}()
	return work(ctx, &naiveStay{l, token})
}

type naiveStay struct {
	*naiveLock
	token uint64
}

func (s *naiveStay) cycle(ctx context.Context) error { return s.naive.acquire(ctx, suiteName) }

func (s *naiveStay) commit(ctx context.Context) error {
	return guarded(ctx, s.naive.db, s.token, func(context.Context, *sql.Tx) error { return nil })
}

// rivals starts workers that try all the time, until stop. Their work is short.
func (w *world) rivals(count int, every time.Duration) (stop func()) {
	ctx, cancel := context.WithCancel(w.t.Context())
	var running sync.WaitGroup
	for i := range count {
		rival := w.worker(fmt.Sprint("rival ", i))
		running.Go(func() {
			for ctx.Err() == nil {
				_ = rival.run(ctx, func(ctx context.Context, s stay) error { return s.commit(ctx) }) // mostly held
				pause(ctx, every)
			}
		})
	}
	return func() {
		cancel()
		running.Wait()
	}
}

// pause is work that heeds its context.
func pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}

func (w *world) longWork() error {
	return w.worker("holder").run(w.t.Context(), func(ctx context.Context, s stay) error {
		defer w.rivals(8, time.Second)()
		pause(ctx, 3*suiteTTL)
		return errors.Join(context.Cause(ctx), s.commit(ctx), w.sole())
	})
}

// sole is an error if anybody else has had the lock.
func (w *world) sole() error {
	if n := w.history.terms(); n != 1 {
		return fmt.Errorf("%d terms began while one holder lived", n)
	}
	return nil
}

func (w *world) hungRenewals() error {
	stop := func() {}
	err := notLost(w.worker("holder").run(w.t.Context(), func(ctx context.Context, s stay) error {
		stop = w.rivals(3, time.Second)
		w.server.setFault(hang("renew", "naive update"))
		go func() { _ = s.cycle(ctx) }() // the twin's renewal, which never returns either
		pause(ctx, 2*suiteTTL+time.Second)
		w.server.setFault(nil)
		return nil
	}))
	pause(w.t.Context(), suiteTTL)
	stop()
	if w.history.terms() < 2 {
		return errors.New("nobody took over")
	}
	return err
}

// hang lets the holder's statements of some kinds hang for ever.
func hang(kinds ...string) func(statement) fault {
	return on(fault{never: true, silent: true}, kinds...)
}

// on gives the fault to the holder's statements of some kinds.
func on(f fault, kinds ...string) func(statement) fault {
	return func(s statement) fault {
		if slices.Contains(kinds, s.kind) && (s.Owner == "" || s.Owner == "holder") {
			return f
		}
		return fault{}
	}
}

// notLost drops the error that a worker must get here.
func notLost(err error) error {
	if errors.Is(err, lease.ErrLost) {
		return nil
	}
	return err
}

func (w *world) zombieWrite() error {
	return notLost(w.worker("holder").run(w.t.Context(), func(ctx context.Context, s stay) error {
		w.server.setFault(hang("renew"))
		time.Sleep(suiteTTL + time.Second) // asleep: it doesn't see its context end
		w.server.setFault(nil)
		successor := w.worker("successor")
		for {
			err := successor.run(w.t.Context(), func(ctx context.Context, theirs stay) error {
				if err := theirs.commit(ctx); err != nil {
					return err
				}
				if err := s.commit(ctx); err == nil {
					return errors.New("the zombie's write was committed")
				}
				return theirs.commit(ctx)
			})
			if !errors.Is(err, lease.ErrHeld) && !errors.Is(err, errNaiveHeld) {
				return err
			}
			time.Sleep(time.Second)
		}
	}))
}

func (w *world) jumpAhead() error {
	return w.jumps(10 * time.Minute)
}

func (w *world) jumpBackAndAhead() error {
	return w.jumps(-10*time.Minute, 10*time.Minute, 10*time.Minute)
}

// jumps moves the clock while the holder works and its renewals are lost for as long as it is still trusted.
func (w *world) jumps(by ...time.Duration) error {
	return w.worker("holder").run(w.t.Context(), func(ctx context.Context, s stay) error {
		defer w.rivals(3, time.Second)()
		for _, d := range by {
			pause(ctx, suiteTTL/3)
			w.server.setFault(hang("renew"))
			w.server.jump(d)
			pause(ctx, suiteTTL/3)
			w.server.setFault(nil)
			pause(ctx, suiteTTL/3)
		}
		return errors.Join(context.Cause(ctx), w.sole())
	})
}
