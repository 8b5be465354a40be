package main

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"sync"

	"github.com/mailretention/mailretention/lease"
	"github.com/mailretention/mailretention/provisioner"
	"github.com/mailretention/mailretention/retention"
)

const (
	rawDays     = 30
	rawBytes    = 1 << 30
	messageDays = 40
)

func policy() retention.Policy {
	return retention.Policy{RawDays: new(rawDays), RawBytes: new(int64(rawBytes)), MessageDays: new(messageDays)}
}

// preview shows what a run would do; it only reads.
func (s *mailServer) preview(ctx context.Context, show *screen) error {
	runner, err := retention.New(s.store, retention.Config{Name: "quickstart", Policy: policy()})
	if err != nil {
		return err
	}
	plan, err := runner.Plan(ctx)
	if err != nil {
		return err
	}
	show.plan(plan.String())
	return nil
}

// worker is one of the processes that do the night's work: a pool for the work, and another for its leases.
type worker struct {
	name   string
	config retention.Config
	store  *provisioner.Provisioner
	pools  []*sql.DB
}

func newWorker(ctx context.Context, name, dsn string) (*worker, error) {
	work, errWork := open(dsn, database)
	own, errOwn := open(dsn, database)
	if err := errors.Join(errWork, errOwn); err != nil {
		return nil, err
	}
	w := &worker{name: name, pools: []*sql.DB{work, own}}
	leases, err := lease.New(own, lease.Config{Owner: name})
	if err != nil {
		return nil, err
	}
	if err := leases.Provision(ctx); err != nil {
		return nil, err
	}
	w.store, err = provisioner.New(work, provisioner.Config{Database: database, Pending: pending(work), Guard: leases.Guard})
	w.config = retention.Config{Name: "quickstart", Policy: policy(), Locker: leases}
	return w, err
}

func (w *worker) close() {
	for _, pool := range w.pools {
		pool.Close()
	}
}

// race lets two workers run at once. The second starts when the first has its plan, and the first goes on when the
// second has its answer: so they meet, whatever the machine's speed.
func (s *mailServer) race(ctx context.Context, show *screen, dsn string) (retention.Report, error) {
	first, err := newWorker(ctx, "worker-1", dsn)
	if err != nil {
		return retention.Report{}, err
	}
	defer first.close()
	second, err := newWorker(ctx, "worker-2", dsn)
	if err != nil {
		return retention.Report{}, err
	}
	defer second.close()

	var meeting sync.Once
	var errSecond error
	progress := first.progress(show)
	first.config.OnEvent = func(e retention.Event) {
		progress(e)
		if e.Kind == retention.EventPlanned {
			meeting.Do(func() { errSecond = second.expectHeld(ctx, show) })
		}
	}
	report, err := retention.Run(ctx, first.store, first.config)
	show.linef("  worker-1: %s", report)
	if err == nil && report.Outcome != retention.OutcomeDone {
		err = fmt.Errorf("worker-1 ended as %q, expected %q", report.Outcome, retention.OutcomeDone)
	}
	return report, errors.Join(err, errSecond)
}

// expectHeld runs the same retention and wants to be told that somebody else is at it.
func (w *worker) expectHeld(ctx context.Context, show *screen) error {
	report, err := retention.Run(ctx, w.store, w.config)
	held, ok := errors.AsType[*lease.HeldError](err)
	if !ok || report.Outcome != retention.OutcomeHeld {
		return fmt.Errorf("%s ended as %q (%w), expected to find the lease held", w.name, report.Outcome, err)
	}
	show.linef("  %s: the lease %s is held by %s, nothing done", w.name, held.Name, held.Owner)
	return nil
}

// progress shows a run as it goes on.
func (w *worker) progress(show *screen) func(retention.Event) {
	var rows int64
	return func(e retention.Event) {
		switch e.Kind {
		case retention.EventPlanned:
			show.linef("  %s: has the lease, %d tables to drop", w.name, len(e.Report.Plan.Drops))
		case retention.EventBatch:
			rows += e.Rows
			show.livef("  %s: %s, %d rows so far", w.name, cmp.Or(e.Table, "messages"), rows)
		case retention.EventDropped:
			show.livef("  %s: dropped %s, %d of %d tables", w.name, e.Table, len(e.Report.Tables), len(e.Report.Plan.Drops))
		case retention.EventKept, retention.EventFailed:
			show.linef("  %s: %s stays: %v", w.name, e.Table, e.Err)
		}
	}
}

// again runs once more and wants nothing to be left to do.
func (s *mailServer) again(ctx context.Context, show *screen, dsn string) error {
	w, err := newWorker(ctx, "worker-2", dsn)
	if err != nil {
		return err
	}
	defer w.close()
	report, err := retention.Run(ctx, w.store, w.config)
	show.linef("  %s: %s", w.name, report)
	if err == nil && report.Outcome != retention.OutcomeNothingToDo {
		err = fmt.Errorf("the second run ended as %q, expected %q", report.Outcome, retention.OutcomeNothingToDo)
	}
	return err
}

func dropped(report retention.Report) int {
	n := 0
	for _, t := range report.Tables {
		if t.Verdict == retention.VerdictDropped {
			n++
		}
	}
	return n
}
