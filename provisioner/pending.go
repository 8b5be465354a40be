package provisioner

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/mailretention/mailretention/retention"
)

const (
	pendingMaxAge = 3 * time.Second // an answer is no older than this when a batch begins
	pendingShare  = 50              // unless it is younger than this many times what the question cost, it is asked anew
)

// pending knows which messages are still to be sent. The zero pending knows of none.
type pending struct {
	ask   func(context.Context) ([]int64, error)
	ids   []int64 // ascending
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
	now := time.Now()
	q.until = now.Add(min(pendingShare*now.Sub(start), pendingMaxAge))
	return nil
}

// any reports whether one of the ids from first to last is pending.
func (q *pending) any(first, last int64) bool {
	i, _ := slices.BinarySearch(q.ids, first)
	return i < len(q.ids) && q.ids[i] <= last
}
