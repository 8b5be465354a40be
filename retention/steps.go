package retention

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"
)

// dropAll reports whether the run goes on.
func (x *run) dropAll(ctx context.Context) bool {
	failures := 0 // in a row
	for i, d := range x.report.Plan.Drops {
		if x.cfg.MaxDrops > 0 && x.dropped == x.cfg.MaxDrops {
			x.report.Stopped = fmt.Sprintf("MaxDrops is %d: %s left for the next run", x.cfg.MaxDrops, count(len(x.report.Plan.Drops)-i, "table"))
			return true
		}
		if !x.alive(ctx) {
			return false
		}
		t := x.drop(ctx, d)
		failures++
		if t.Verdict != VerdictFailed {
			failures = 0
		}
		switch {
		case ends(t.Err):
			x.stop(t.Err)
			return false
		case failures == mostFailures:
			x.report.Stopped = fmt.Sprintf("%d tables failed in a row", failures)
			return false
		}
	}
	return true
}

// ends reports whether err ends the run and not just one step.
func ends(err error) bool { return errors.Is(err, ErrStop) || errors.Is(err, ErrRefused) }

func (x *run) drop(ctx context.Context, d Drop) TableReport {
	began := time.Now()
	t := TableReport{Table: d.Table, Reason: d.Reason}
	name := d.Table.Name
	mayGo := func() error { return x.notHeld(ctx, dayOf(d.Table.Day)) }
	t.Err = mayGo()
	if t.Err == nil {
		x.emit(Event{Kind: EventDropping, Table: name})
		t.Err = x.store.DropTable(ctx, name, x.progress(ctx, name, mayGo, &t.Rows, &x.report.RowsDetached))
	}
	kind := EventFailed
	switch {
	case t.Err == nil:
		kind, t.Verdict = EventDropped, VerdictDropped
		x.dropped++
		if d.Table.sized() {
			x.report.BytesFreed = add(x.report.BytesFreed, d.Table.Bytes)
		}
	case errors.Is(t.Err, ErrInUse), errors.Is(t.Err, ErrRefused):
		kind, t.Verdict = EventKept, VerdictKept
	default:
		t.Verdict = VerdictFailed
		x.fail(&TableError{Table: name, Err: t.Err})
	}
	t.Detached = t.Rows > 0 && t.Verdict != VerdictDropped
	t.Took = time.Since(began)
	x.report.Tables = append(x.report.Tables, t)
	x.emit(Event{Kind: kind, Table: name, Rows: t.Rows, Took: t.Took, Err: t.Err})
	return t
}

// notHeld asks for the holds that were given since the plan.
func (x *run) notHeld(ctx context.Context, d day) error {
	holds, err := x.holds(ctx)
	if err != nil {
		return err
	}
	for _, h := range holds {
		if h.covers(d) {
			return fmt.Errorf("%w: legal hold: %s", ErrInUse, h.Reason)
		}
	}
	return nil
}

// progress counts and tells the rows of each batch, and says whether the next one may run.
func (x *run) progress(ctx context.Context, table string, mayGoOn func() error, counters ...*int64) func(int64) error {
	began := time.Now()
	return func(rows int64) error {
		for _, c := range counters {
			*c += rows
		}
		x.emit(Event{Kind: EventBatch, Table: table, Rows: rows, Took: time.Since(began)})
		began = time.Now()
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		return mayGoOn()
	}
}

// prune reports whether the run goes on.
func (x *run) prune(ctx context.Context) bool {
	if x.report.Plan.MessageCut == nil {
		return true
	}
	if !x.alive(ctx) {
		return false
	}
	began := time.Now()
	err := x.pruneMessages(ctx, *x.report.Plan.MessageCut)
	step := Event{Kind: EventPruned, Rows: x.report.RowsPruned, Took: time.Since(began)}
	if err == nil {
		x.emit(step)
		return true
	}
	err = fmt.Errorf("retention: prune messages: %w", err)
	x.fail(err)
	step.Kind, step.Err = EventFailed, err
	x.emit(step)
	if ends(err) {
		x.stop(err)
	}
	return !ends(err)
}

// pruneMessages begins again with a narrower cut when a hold is given meanwhile. Each time at least one batch is
// done, so it ends.
func (x *run) pruneMessages(ctx context.Context, cut Cut) error {
	for {
		more, err := x.newHolds(ctx, cut)
		if err != nil {
			return err
		}
		cut.Except = slices.Concat(cut.Except, more)
		err = x.store.PruneMessages(ctx, cut, x.progress(ctx, "", func() error {
			more, err := x.newHolds(ctx, cut)
			if len(more) > 0 && err == nil {
				err = errNewHold
			}
			return err
		}, &x.report.RowsPruned))
		if !errors.Is(err, errNewHold) {
			return err
		}
	}
}

// newHolds returns the holds that the cut does not except yet.
func (x *run) newHolds(ctx context.Context, cut Cut) ([]Hold, error) {
	holds, err := x.holds(ctx)
	return slices.DeleteFunc(slices.Clone(holds), func(h Hold) bool {
		return slices.ContainsFunc(cut.Except, h.sameDays)
	}), err
}
