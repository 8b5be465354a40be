package provisioner

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/mailretention/mailretention/retention"
)

const (
	pendingCheap  = 10 * time.Millisecond // a question that costs no more is asked before every batch
	pendingMaxAge = 3 * time.Second       // an answer is no older than this when a batch begins
	pendingShare  = 50                    // unless it is younger than this many times what the question cost, it is asked anew
)

// pending knows which messages are still to be sent. The zero pending knows of none.
type pending struct {
	ask   func(context.Context) ([]int64, error)
	ids   []int64       // ascending
	cost  time.Duration // of the question, the least that was seen: the rest was waiting for the processor
	until time.Time
}

// refresh asks again unless the answer is fresh: before every batch where asking costs little, and every few seconds otherwise.
func (q *pending) refresh(ctx context.Context) error {
	start := time.Now()
	if q.ask == nil || start.Before(q.until) {
		return nil
	}
	ids, err := q.ask(ctx)
	if err != nil {
		return fmt.Errorf("which messages are pending is unknown: %w: %w", retention.ErrRefused, err)
	}
	q.ids = slices.Sorted(slices.Values(ids))
	took := time.Since(start)
	q.cost = min(cmp.Or(q.cost, took), took)
	if q.cost > pendingCheap {
		q.until = start.Add(took + min(pendingShare*q.cost, pendingMaxAge))
	}
	return nil
}

// any reports whether one of the ids from first to last is pending.
func (q *pending) any(first, last int64) bool {
	i, _ := slices.BinarySearch(q.ids, first)
	return i < len(q.ids) && q.ids[i] <= last
}
