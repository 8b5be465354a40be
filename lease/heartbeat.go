package lease

import (
	"context"
	"math/rand/v2"
	"sync"
	"time"
)

// leaseKey is the context key of the innermost lease.
type leaseKey struct{}

// link is a lease in a context, and the one around it.
type link struct {
	lease *Lease
	outer *link
}

func innermost(ctx context.Context) *link {
	l, _ := ctx.Value(leaseKey{}).(*link)
	return l
}

// FromContext returns the innermost lease of a context that [Lease.Heartbeat] or [Leases.Do] made, or that was derived from one.
func FromContext(ctx context.Context) (*Lease, bool) {
	l := innermost(ctx)
	if l == nil {
		return nil, false
	}
	return l.lease, true
}

// Heartbeat renews the lease until ctx ends, cancel is called or the lease is lost. Work must run under the returned context, which
// ends with a [*LostError] as its cause ([context.Cause]) as soon as the lease can't be trusted any more, also while a
// renewal hangs. cancel returns when nothing that Heartbeat started runs any more; it doesn't release the lease.
func (l *Lease) Heartbeat(ctx context.Context) (work context.Context, cancel context.CancelFunc) {
	work, end := context.WithCancelCause(context.WithValue(ctx, leaseKey{}, &link{lease: l, outer: innermost(ctx)}))
	var running sync.WaitGroup
	running.Go(func() { l.watch(work, end) })
	running.Go(func() { l.beat(work) })
	return work, func() {
		end(context.Canceled)
		running.Wait()
	}
}

// beat renews at intervals. The errors are events; whether work may go on is for watch to say.
func (l *Lease) beat(work context.Context) {
	for sleep(work, l.leases.interval()) == nil {
		_ = l.Renew(work)
	}
}

// interval varies by a tenth, so that many workers don't renew in step.
func (l *Leases) interval() time.Duration {
	d := l.cfg.Interval
	return d - d/jitterShare + rand.N(2*d/jitterShare+1)
}

// watchesPerMargin is how often the clocks are read within Margin: the timer follows the monotonic clock, which stands still
// while a machine sleeps, so the wall clock must be looked at now and then.
const watchesPerMargin = 8

// watch ends the work when the lease can't be trusted any more.
func (l *Lease) watch(work context.Context, end context.CancelCauseFunc) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-work.Done():
			return
		case <-l.gone:
			end(l.lost.Load())
			return
		case <-timer.C:
		}
		left := l.left()
		if left <= 0 {
			why := (*Lease).expiry
			if l.overdue() > 0 {
				why = (*Lease).late
			}
			end(l.lose(work, why))
			return
		}
		timer.Reset(min(left, l.leases.cfg.Margin/watchesPerMargin))
	}
}
