package integration

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
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
	orphanDay     = 200 // an operator's rows of tables that never were are of days before
)

// Creators, writers, slow writers, readers, two versions of retention with policies of their own, and an operator who drops tables and
// spoils the bookkeeping by hand, all at once: nobody fails, and nothing is lost or left behind.
func TestEverythingAtOnce(t *testing.T) {
	t.Parallel()
	m := newCrashMailbox(t)
	m.db = mysqltest.Open(t, m.name)
	m.db.SetMaxIdleConns(40)
	for back := 4; back <= oldestDay; back++ {
		m.fill(back, twoBatches, mailBytes)
	}
	queued, held, legal := m.ids(queuedDay)[7], m.ids(heldDay)[7], m.ids(legalDay)
	known := slices.Concat(m.ids(queuedDay), m.ids(heldDay), legal) // of days that the operator leaves alone
	m.queue = []int64{queued}
	m.exec("UPDATE messages SET held = 1 WHERE id = ?", held)

	ctx, stop := context.WithTimeout(t.Context(), *everything)
	defer stop()
	var stored, runs, reads, oldest atomic.Int64
	oldest.Store(oldestDay)
	unprotected := func() int { // a day that has expired, and that nothing protects
		return legalDay + 1 + rand.N(int(oldest.Load())-legalDay)
	}
	days := []retention.Hold{m.hold(legalDay, legalDay)}
	strict := retention.Policy{RawDays: new(3), MessageDays: new(4), Holds: days, AllowEmpty: true}
	roomy := retention.Policy{RawDays: new(8), RawBytes: new(int64(3 * twoBatches * mailBytes)), MessageDays: new(8), Holds: days, AllowEmpty: true}
	retain := func(policy retention.Policy, leased bool) func(w *worker) error {
		return func(w *worker) error {
			cfg := retention.Config{Name: "test", Policy: policy}
			if leased {
				cfg.Locker = w.leases
			}
			_, err := retention.Run(t.Context(), w.store, cfg)
			if errors.Is(err, retention.ErrHeld) {
				return nil
			}
			runs.Add(1)
			return err
		}
	}
	actors := map[string]struct {
		many  int
		pause time.Duration // after each time, so that the cores are retention's for the most part
		do    func(w *worker) error
	}{
		"creator": {2, clientPause, func(w *worker) error {
			_, err := w.store.EnsureDay(t.Context(), m.day(rand.N(3)-1))
			return err
		}},
		"writer": {2, clientPause, func(*worker) error {
			err := m.insert(t.Context())
			stored.Add(1)
			return err
		}},
		"slow writer": {1, clientPause, func(*worker) error { return m.deliver(t.Context(), unprotected()) }},
		"reader": {1, clientPause, func(*worker) error {
			reads.Add(1)
			return m.read(t.Context(), known[rand.N(len(known))])
		}},
		"strict retention": {2, 0, retain(strict, true)},
		"roomy retention":  {1, 0, retain(roomy, false)},
		"time":             {1, clientPause, func(*worker) error { return m.makeDay(t.Context(), int(oldest.Add(1))) }},
		"operator":         {1, operatorPause, func(*worker) error { return m.spoil(t.Context(), unprotected()) }},
	}
	var all []string
	for name, a := range actors {
		all = append(all, slices.Repeat([]string{name}, a.many)...)
	}
	workers := make([]*worker, len(all))
	for i := range workers {
		workers[i] = m.worker()
		defer workers[i].die()
	}
	errs := together(len(all), func(i int) error {
		for a := actors[all[i]]; ctx.Err() == nil; time.Sleep(a.pause) {
			if err := a.do(workers[i]); err != nil {
				stop()
				return fmt.Errorf("%s: %w", all[i], err)
			}
		}
		return nil
	})
	require.NoError(t, errors.Join(errs...))
	t.Logf("%d mails stored, %d runs, %d reads", stored.Load(), runs.Load(), reads.Load())

	w := m.worker()
	defer w.die()
	require.NoError(t, retain(strict, true)(w))
	require.Equal(t, m.days(-1, 0, 1, queuedDay, heldDay, legalDay), m.tables())
	m.requireBooksAgree()
	require.Equal(t, []int64{queued}, m.ids(queuedDay))
	require.Equal(t, []int64{held}, m.ids(heldDay))
	require.Equal(t, legal, m.ids(legalDay))
	raw := "SELECT COUNT(*) FROM " + m.store.Ident(m.table(0))
	require.EqualValues(t, 2*stored.Load(), m.count(raw))
	require.Len(t, m.ids(0), int(stored.Load()))
	require.EqualValues(t, mailBytes*stored.Load(), m.count("SELECT SUM(size) FROM raw_message_sizes WHERE table_name = ?", m.table(0)))
	require.Zero(t, m.count("SELECT COUNT(*) FROM deliveries WHERE message_id NOT IN (SELECT id FROM messages)"), "no child is left")
	require.Zero(t, m.count("SELECT COUNT(*) FROM messages WHERE id NOT IN (SELECT message_id FROM deliveries)"), "no message has lost a child")
}

// makeDay is what time brings: an old day's table, booked, with mail in it.
func (m *mailbox) makeDay(ctx context.Context, back int) error {
	raw := m.store.Ident(m.table(back))
	for _, statement := range []string{
		"CREATE TABLE IF NOT EXISTS " + raw + " (id INT AUTO_INCREMENT PRIMARY KEY, data LONGBLOB, next INT)",
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

// spoil is what an operator does by hand.
func (m *mailbox) spoil(ctx context.Context, back int) error {
	books := m.store.Ident("raw_message_sizes")
	statement := []string{
		"DROP TABLE IF EXISTS " + m.store.Ident(m.table(back)),
		fmt.Sprintf("DELETE FROM %s WHERE table_name = '%s'", books, m.table(back)),
		fmt.Sprintf("INSERT INTO %s (table_name, size) VALUES ('%s', 77)", books, m.table(back)),
		fmt.Sprintf("INSERT INTO %s (table_name, size) VALUES ('%s', %d)", books, m.table(orphanDay+back), int64(orphanBytes)),
	}[rand.N(4)]
	_, err := m.db.ExecContext(ctx, statement)
	return err
}
