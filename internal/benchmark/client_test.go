package benchmark

import (
	"context"
	"database/sql"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

const (
	insertEvery = 2 * time.Millisecond
	updateEvery = 20 * time.Millisecond
	samplesMade = 1 << 16 // room, so that recording doesn't grow it
)

// sample is one statement of the client.
type sample struct {
	began time.Time
	took  time.Duration
	err   error
}

// client is what goes on in a mail server meanwhile: messages come, and opened ones are marked, each kind on a connection of its own.
// A statement that takes long delays the next of its kind.
type client struct {
	stopped context.CancelFunc
	work    sync.WaitGroup
	kinds   [2][]sample
}

// startClient starts one that works until it is stopped.
func (m *mailbox) startClient() *client {
	ctx, cancel := context.WithCancel(context.Background()) // a statement is not cut off: its whole wait counts
	c := &client{stopped: cancel}
	db := m.server.open(m.t, m.name)
	insert, err := db.PrepareContext(ctx, insertMessage)
	require.NoError(m.t, err)
	update, err := db.PrepareContext(ctx, trackOpen)
	require.NoError(m.t, err)
	today := m.table(0)
	run := func(statement *sql.Stmt, arg any) error {
		_, err := statement.Exec(arg)
		return err
	}
	c.every(ctx, insertEvery, &c.kinds[0], func() error { return run(insert, today) })
	c.every(ctx, updateEvery, &c.kinds[1], func() error { return run(update, 1+rand.IntN(m.rows)) })
	return c
}

func (c *client) every(ctx context.Context, interval time.Duration, samples *[]sample, do func() error) {
	*samples = make([]sample, 0, samplesMade)
	c.work.Go(func() {
		ticker := time.NewTicker(interval)
		defer ticker.Stop()
		for ctx.Err() == nil {
			s := sample{began: time.Now()}
			s.err = do()
			s.took = time.Since(s.began)
			*samples = append(*samples, s)
			select {
			case <-ticker.C:
			case <-ctx.Done():
			}
		}
	})
}

// stop ends the client and returns its statements in the order in which they began.
func (c *client) stop() []sample {
	c.stopped()
	c.work.Wait()
	all := slices.Concat(c.kinds[0], c.kinds[1])
	slices.SortFunc(all, func(a, b sample) int { return a.began.Compare(b.began) })
	return all
}

// waits are the statements of a span of time.
type waits []sample

// during returns the statements that were under way between two moments.
func during(samples []sample, from, to time.Time) waits {
	return slices.DeleteFunc(slices.Clone(samples), func(s sample) bool {
		return s.began.After(to) || s.began.Add(s.took).Before(from)
	})
}

func (w waits) longest() (d time.Duration) {
	for _, s := range w {
		d = max(d, s.took)
	}
	return d
}

// p99 is what 99 of 100 statements take at most.
func (w waits) p99() time.Duration {
	took := make([]time.Duration, len(w))
	for i, s := range w {
		took[i] = s.took
	}
	slices.Sort(took)
	return took[len(took)*99/100]
}

func (w waits) errors() (errs []error) {
	for _, s := range w {
		if s.err != nil {
			errs = append(errs, s.err)
		}
	}
	return errs
}

func TestWaits(t *testing.T) {
	at := func(ms int) time.Time { return time.UnixMilli(int64(ms)) }
	var samples []sample
	for ms := range 100 {
		samples = append(samples, sample{began: at(10 * ms), took: time.Duration(ms) * time.Millisecond})
	}
	require.Len(t, during(samples, at(0), at(990)), 100)
	w := during(samples, at(500), at(600))
	require.Equal(t, at(460), w[0].began, "it was under way")
	require.Equal(t, at(600), w[len(w)-1].began)
	require.Equal(t, 60*time.Millisecond, w.longest())
	require.Equal(t, 99*time.Millisecond, waits(samples).p99())
	require.Equal(t, 98*time.Millisecond, waits(samples[:99]).p99())
}
