package retention

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"
)

// mostFailures in a row end a run: it is then the database that fails, not the tables.
const mostFailures = 3

var (
	errPanicked = errors.New("retention: the run panicked")
	errNewHold  = errors.New("retention: a legal hold was given during pruning")
)

// Run does one run: lease, inventory, reconciliation if there is drift, clock, plan, drops from the oldest,
// pruning, reconciliation if anything was dropped. The Report is valid beside an error.
//
// The failure of one table is recorded and the next is tried. Three failures in a row, an error that matches
// [ErrStop] or [ErrRefused], a lost lease or the end of ctx end the run; so does a panic of the Store, which goes on
// to the caller. When ctx has ended the error matches both its error and its cause.
//
// Holds given while it runs are heeded from the next table or batch on.
func (r *Runner) Run(ctx context.Context) (report Report, err error) {
	x := newRun(r)
	err = errPanicked // stands unless the work returns
	defer func() { report = x.finish(err) }()
	err = ended(ctx, x.underLease(ctx))
	return report, err
}

// ended adds the end of ctx to an error, so that both its error and its cause match.
func ended(ctx context.Context, err error) error {
	for _, end := range []error{context.Cause(ctx), ctx.Err()} {
		if err != nil && end != nil && !errors.Is(err, end) {
			err = errors.Join(err, end)
		}
	}
	return err
}

// run is one run in progress.
type run struct {
	*Runner
	began       time.Time
	report      Report
	errs        []error
	dropped     int
	held        bool // by another
	interrupted bool // by the end of its context
}

func newRun(r *Runner) *run {
	began := time.Now()
	return &run{Runner: r, began: began, report: Report{Name: r.cfg.Name, Started: began.UTC()}}
}

func (x *run) underLease(ctx context.Context) error {
	if x.cfg.Locker == nil {
		return x.work(ctx)
	}
	called, worked := false, error(nil)
	err := x.cfg.Locker.Do(ctx, leasePrefix+x.cfg.Name, func(ctx context.Context) error {
		called = true
		worked = x.work(ctx)
		return worked
	})
	switch {
	case called && worked != nil && !errors.Is(err, worked):
		return errors.Join(worked, err)
	case called:
		return err
	case err == nil:
		return errors.New("retention: the Locker did not run it and gives no error")
	case isHeld(err):
		x.held = true
		if !errors.Is(err, ErrHeld) {
			err = fmt.Errorf("%w: %w", ErrHeld, err)
		}
		return err
	}
	return fmt.Errorf("retention: lease: %w", err)
}

// isHeld recognises a live holder by a method, so that a Locker needs nothing of this package.
func isHeld(err error) bool {
	type holder interface {
		error
		Held() bool
	}
	h, ok := errors.AsType[holder](err)
	return errors.Is(err, ErrHeld) || ok && h.Held()
}

// work is what runs under the lease; ctx ends with it.
func (x *run) work(ctx context.Context) error {
	if x.alive(ctx) {
		x.steps(ctx)
	}
	if len(x.errs) > 0 {
		x.alive(ctx) // what failed may have failed because ctx ended
	}
	return errors.Join(x.errs...)
}

func (x *run) steps(ctx context.Context) {
	inv, skew, err := x.inventory(ctx)
	if err != nil {
		x.stop(err)
		return
	}
	x.report.Plan, err = x.plan(ctx, inv, skew)
	x.emit(Event{Kind: EventPlanned, Err: err})
	if err != nil {
		x.stop(err)
		return
	}
	if x.dropAll(ctx) && x.prune(ctx) && x.dropped > 0 && x.alive(ctx) {
		if err := x.reconcile(ctx); err != nil {
			x.stop(err)
		}
	}
}

// alive reports whether ctx has not ended; if it has, that is what stops the run.
func (x *run) alive(ctx context.Context) bool {
	if ctx.Err() == nil {
		return true
	}
	x.interrupted = true
	x.stop(context.Cause(ctx))
	return false
}

// stop notes what ends the run early.
func (x *run) stop(err error) {
	x.report.Stopped = err.Error()
	x.fail(err)
}

// fail adds err to the run's errors, unless one of them is it already.
func (x *run) fail(err error) {
	if !slices.ContainsFunc(x.errs, func(e error) bool { return errors.Is(e, err) }) {
		x.errs = append(x.errs, err)
	}
}

// inventory reads, and where it shows drift reconciles and reads again. Under a clock that can't be trusted it
// touches nothing.
func (x *run) inventory(ctx context.Context) (Inventory, time.Duration, error) {
	inv, skew, err := x.read(ctx)
	if err != nil || len(inv.Drift) == 0 || skew > x.cfg.MaxSkew {
		return inv, skew, err
	}
	if err := x.reconcile(ctx); err != nil {
		return Inventory{}, 0, err
	}
	return x.read(ctx)
}

func (x *run) reconcile(ctx context.Context) error {
	repaired, err := x.store.Reconcile(ctx)
	x.report.Repaired += repaired
	if err != nil {
		return fmt.Errorf("retention: reconcile: %w", err)
	}
	return nil
}

// finish is the last step of every run. It is called once.
func (x *run) finish(err error) Report {
	x.report.Outcome = x.outcome(err)
	if err == errPanicked || err != nil && len(x.errs) == 0 {
		x.report.Stopped = err.Error()
	}
	x.emit(Event{Kind: EventFinished, Took: time.Since(x.began), Err: err})
	return x.report
}

func (x *run) outcome(err error) Outcome {
	r := &x.report
	changed := x.dropped > 0 || r.RowsDetached > 0 || r.RowsPruned > 0 || r.Repaired > 0
	switch {
	case x.held:
		return OutcomeHeld
	case errors.Is(err, ErrRefused) && !x.interrupted:
		return OutcomeRefused
	case (err != nil || r.Stopped != "") && (changed || len(r.Tables) > 0): // a table that failed may have changed
		return OutcomePartial
	case err != nil:
		return OutcomeFailed
	case changed:
		return OutcomeDone
	}
	return OutcomeNothingToDo
}
