package integration

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mailretention/mailretention/internal/mysqltest"
	"github.com/mailretention/mailretention/retention"
)

// The suite has 20 s for it; go test ./internal/integration -run Everything -everything 2m takes longer.
var everything = flag.Duration("everything", 20*time.Second, "how long everything goes on at once")

// Days of TestEverythingAtOnce whose mail must be there at the end, by what protects it.
const (
	queuedDay = 5
	heldDay   = 6
	legalDay  = 7
	oldestDay = 12 // at the beginning

	clientPause   = 2 * time.Millisecond
	operatorPause = 20 * time.Millisecond
	pile          = 20  // rows of one name that an operator makes at once
	orphanDay     = 200 // an operator's rows of tables that never were are of days before
)

// crowd is a mailbox on which everybody works, and what they have done.
type crowd struct {
	*mailbox
	queued, held        int64   // messages
	legal               []int64 // the messages of legalDay
	known               []int64 // messages of days that the operator leaves alone
	oldest              atomic.Int64
	stored, runs, reads atomic.Int64
}

// actor is one of the crowd, many times over. It does the same again and again until somebody fails or the time is up.
type actor struct {
	name  string
	many  int
	pause time.Duration // after each time, so that the cores are retention's for the most part
	do    func(w *worker) error
}

// Creators, writers, slow writers, readers, two versions of retention with policies of their own, and an operator who drops tables and
// spoils the bookkeeping by hand, all at once: nobody fails, and nothing is lost or left behind.
func TestEverythingAtOnce(t *testing.T) {
	t.Parallel()
	c := newCrowd(t)
	strict := c.retain(retention.Policy{RawDays: new(3), MessageDays: new(4)}, leased)
	roomy := c.retain(retention.Policy{RawDays: new(8), RawBytes: new(int64(3 * twoBatches * mailBytes)), MessageDays: new(8)}, unleased)
	c.work([]actor{
		{"strict retention", 2, 0, strict},
		{"roomy retention", 1, 0, roomy},
		{"creator", 2, clientPause, func(w *worker) error {
			_, err := w.store.EnsureDay(t.Context(), c.day(rand.N(3)-1))
			return err
		}},
		{"writer", 2, clientPause, func(*worker) error {
			c.stored.Add(1)
			return c.insert(t.Context())
		}},
		{"slow writer", 1, clientPause, func(*worker) error { return c.deliver(t.Context(), c.unprotected()) }},
		{"reader", 1, clientPause, func(*worker) error {
			c.reads.Add(1)
			return c.read(t.Context(), c.known[rand.N(len(c.known))])
		}},
		{"time", 1, clientPause, func(*worker) error {
			defer c.oldest.Add(1)
			return c.makeDay(t.Context(), int(c.oldest.Load())+1)
		}},
		{"operator", 1, operatorPause, func(*worker) error { return c.spoil(t.Context(), c.unprotected()) }},
	})
	t.Logf("%d mails stored, %d runs, %d reads", c.stored.Load(), c.runs.Load(), c.reads.Load())
	w := c.worker()
	defer w.die()
	require.NoError(t, strict(w))
	c.requireAllIsWell()
}

func newCrowd(t *testing.T) *crowd {
	t.Helper()
	c := &crowd{mailbox: newCrashMailbox(t)}
	c.db = mysqltest.Open(t, c.name)
	c.db.SetMaxIdleConns(40)
	for back := 4; back <= oldestDay; back++ {
		c.fill(back, twoBatches, mailBytes)
	}
	c.oldest.Store(oldestDay)
	c.queued, c.held, c.legal = c.ids(queuedDay)[7], c.ids(heldDay)[7], c.ids(legalDay)
	c.known = slices.Concat(c.ids(queuedDay), c.ids(heldDay), c.legal)
	c.queue = []int64{c.queued}
	c.exec("UPDATE messages SET held = 1 WHERE id = ?", c.held)
	return c
}

// work lets all actors work at once, each on pools of its own.
func (c *crowd) work(actors []actor) {
	c.t.Helper()
	var all []actor
	for _, a := range actors {
		all = append(all, slices.Repeat([]actor{a}, a.many)...)
	}
	workers := make([]*worker, len(all))
	for i := range workers {
		workers[i] = c.worker()
		defer workers[i].die()
	}
	ctx, stop := context.WithTimeout(c.t.Context(), *everything)
	defer stop()
	errs := together(len(all), func(i int) error {
		for a := all[i]; ctx.Err() == nil; time.Sleep(a.pause) {
			if err := a.do(workers[i]); err != nil {
				stop()
				return fmt.Errorf("%s: %w", a.name, err)
			}
		}
		return nil
	})
	require.NoError(c.t, errors.Join(errs...))
}

// unprotected is a day that has expired, and that nothing protects.
func (c *crowd) unprotected() int {
	return legalDay + 1 + rand.N(int(c.oldest.Load())-legalDay)
}

// Whether a retention takes a lease. One without it is not fenced.
type locking string

const (
	leased   locking = "leased"
	unleased locking = "unleased"
)

func (c *crowd) retain(policy retention.Policy, locking locking) func(w *worker) error {
	policy.Holds, policy.AllowEmpty = []retention.Hold{c.hold(legalDay, legalDay)}, true
	return func(w *worker) error {
		cfg := retention.Config{Name: "test", Policy: policy}
		if locking == leased {
			cfg.Locker = w.leases
		}
		_, err := retention.Run(c.t.Context(), w.store, cfg)
		if errors.Is(err, retention.ErrHeld) {
			return nil
		}
		c.runs.Add(1)
		return err
	}
}

// requireAllIsWell wants all that is protected and all that was stored, and nothing else.
func (c *crowd) requireAllIsWell() {
	c.t.Helper()
	t, stored := c.t, c.stored.Load()
	require.Equal(t, c.days(-1, 0, 1, queuedDay, heldDay, legalDay), c.tables())
	c.requireBooksAgree()
	require.Equal(t, []int64{c.queued}, c.ids(queuedDay))
	require.Equal(t, []int64{c.held}, c.ids(heldDay))
	require.Equal(t, c.legal, c.ids(legalDay))
	require.EqualValues(t, 2*stored, c.count("SELECT COUNT(*) FROM "+c.store.Ident(c.table(0))))
	require.Len(t, c.ids(0), int(stored))
	require.EqualValues(t, mailBytes*stored, c.count("SELECT SUM(size) FROM raw_message_sizes WHERE table_name = ?", c.table(0)))
	require.Zero(t, c.count("SELECT COUNT(*) FROM deliveries WHERE message_id NOT IN (SELECT id FROM messages)"), "no child is left")
	require.Zero(t, c.count("SELECT COUNT(*) FROM messages WHERE id NOT IN (SELECT message_id FROM deliveries)"), "no message has lost a child")
}

// makeDay is what time brings: an old day's table, booked, with mail in it.
func (m *mailbox) makeDay(ctx context.Context, back int) error {
	raw := m.store.Ident(m.table(back))
	for _, statement := range []string{
		"CREATE TABLE " + raw + " (id INT AUTO_INCREMENT PRIMARY KEY, data LONGBLOB, next INT)",
		fmt.Sprintf("INSERT INTO %s (table_name, size) VALUES ('%s', %d)", m.store.Ident("raw_message_sizes"), m.table(back), mailBytes),
	} {
		if _, err := m.db.ExecContext(ctx, statement); err != nil {
			return err
		}
	}
	for range twoBatches {
		if err := m.deliver(ctx, back); err != nil {
			return err
		}
	}
	return nil
}

// spoil is what an operator does by hand. Rows of one name pile up.
func (c *crowd) spoil(ctx context.Context, back int) error {
	books := c.store.Ident("raw_message_sizes")
	row := fmt.Sprintf("('%s', 77)", c.table(back))
	statement := []string{
		"DROP TABLE IF EXISTS " + c.store.Ident(c.table(back)),
		fmt.Sprintf("DELETE FROM %s WHERE table_name = '%s'", books, c.table(back)),
		"INSERT INTO " + books + " (table_name, size) VALUES " + strings.Repeat(row+", ", pile-1) + row,
		fmt.Sprintf("INSERT INTO %s (table_name, size) VALUES ('%s', %d)", books, c.table(orphanDay+back), int64(orphanBytes)),
	}[rand.N(4)]
	_, err := c.db.ExecContext(ctx, statement)
	return err
}
