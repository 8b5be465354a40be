package provisioner

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/mailretention/mailretention/internal/mysqlerr"
	"github.com/mailretention/mailretention/retention"
)

const (
	minBatch      = 100
	maxBatch      = 20_000
	batchGrowth   = 4           // most by which the next batch is larger
	batchShrink   = 2           // bits by which a batch is smaller after each failure but the first
	batchLockWait = time.Second // a batch that meets a lock lets go of its own and comes back

	maxRetries = 10 // of a batch that lost a deadlock or met a lock, one after another
	maxLost    = 3  // of a batch whose connection broke
	firstDelay = 10 * time.Millisecond
	maxDelay   = time.Second
)

var (
	// errDecideAgain says that a transaction came to nothing, or that it isn't known what it came to: the rows are read anew.
	errDecideAgain = errors.New("rows have changed since they were read")
	errUnsettled   = errors.New("rows changed each time between being read and being deleted")
)

// batches runs the transactions of one call: it sizes them by time, retries them, and waits between them.
type batches struct {
	p        *Provisioner
	progress func(rows int64) error
	pending  pending
	rows     int   // how many the next batch should have
	first    int64 // id of the batch at hand
	failures int   // of the batch at hand
}

func (p *Provisioner) newBatches(progress func(rows int64) error) *batches {
	return &batches{p: p, progress: progress, pending: pending{ask: p.cfg.Pending}, rows: minBatch}
}

// ready waits until a batch may begin, and then makes sure that it is known which messages are pending.
func (b *batches) ready(ctx context.Context) error {
	if throttle := b.p.cfg.Throttle; throttle != nil {
		if err := throttle(ctx); err != nil {
			return fmt.Errorf("throttle: %w", err)
		}
	}
	return b.pending.refresh(ctx)
}

// begin says with which id the next batch begins. As long as that changes there is progress, if only by others at the same work.
func (b *batches) begin(id int64) {
	if id != b.first {
		b.first, b.failures = id, 0
	}
}

// run runs fn, which returns how many rows it changed or removed, as one batch of a size. After errDecideAgain it may be called again.
func (b *batches) run(ctx context.Context, size int, fn func(*sql.Tx) (rows int64, err error)) error {
	start := time.Now()
	var rows int64
	err := b.p.transact(ctx, func(tx *sql.Tx) (err error) {
		rows, err = fn(tx)
		return err
	})
	if err != nil {
		return b.retry(ctx, err)
	}
	took := time.Since(start)
	b.failures = 0
	b.rows = nextBatch(b.rows, size, took, b.p.cfg.BatchTime)
	if b.progress != nil {
		if err := b.progress(rows); err != nil {
			return err
		}
	}
	return sleep(ctx, time.Duration(float64(took)*b.p.cfg.Pause))
}

// retry returns errDecideAgain, after a while, if the batch that failed with err may be tried again, else err.
func (b *batches) retry(ctx context.Context, err error) error {
	if ctx.Err() != nil || errors.Is(err, retention.ErrStop) {
		return err
	}
	limit := 0
	switch {
	case passing(err):
		limit = maxRetries
	case mysqlerr.Classify(err) == mysqlerr.Ambiguous:
		limit = maxLost
	}
	if b.failures++; b.failures <= limit {
		return cmp.Or(backOff(ctx, b.failures), errDecideAgain)
	}
	if errors.Is(err, errDecideAgain) {
		return errUnsettled
	}
	return err
}

// backOff waits, longer after each failure in a row, and not as long as others that met the same.
func backOff(ctx context.Context, failures int) error {
	delay := min(firstDelay<<(failures-1), maxDelay)
	return sleep(ctx, delay/2+rand.N(delay))
}

// nextBatch returns how many rows the next batch should have, to take about target, when one of size took took.
// One that was smaller than rows says when that is too much, not when it is too little.
func nextBatch(rows, size int, took, target time.Duration) int {
	if size < rows && took <= target {
		return rows
	}
	fit := float64(size) * float64(target) / float64(max(took, 1))
	return int(max(minBatch, min(fit, float64(rows*batchGrowth), maxBatch)))
}

// sleep waits for d, or until ctx ends: then it returns its error.
func sleep(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return ctx.Err()
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
