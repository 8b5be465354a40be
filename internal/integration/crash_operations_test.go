package integration

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mailretention/mailretention/provisioner"
	"github.com/mailretention/mailretention/retention"
)

const (
	twoBatches = 150 // messages: the first batch has 100
	idsPerDay  = 1000
	mostDays   = 100 // back
	mailBytes  = 10
)

// newCrashMailbox is a mailbox whose bookkeeping has no unique key, as in existing installations, and a lease table.
func newCrashMailbox(t *testing.T) *mailbox {
	t.Helper()
	m := newMailbox(t)
	m.ready()
	return m
}

// ready makes the mailbox one for crashes.
func (m *mailbox) ready() {
	m.t.Helper()
	m.exec("DROP TABLE raw_message_sizes")
	m.exec("CREATE TABLE raw_message_sizes (id INT AUTO_INCREMENT PRIMARY KEY, table_name VARCHAR(255), size BIGINT, KEY on_table_name (table_name(14)))")
	m.db = sql.OpenDB(m.connector("multiStatements=true", "autocommit=1"))
	m.t.Cleanup(func() { require.NoError(m.t, m.db.Close()) })
	w := m.worker()
	defer w.die()
	require.NoError(m.t, w.leases.Provision(m.t.Context()))
}

// crashDay is what a day of a crash test has.
type crashDay struct {
	back     int
	messages int
	held     bool
	noTable  bool
	booked   []int64 // a row of the bookkeeping each
}

// firstID is the id of the day's first message. They grow with time, as in a mail server.
func firstID(back int) int64 { return int64(mostDays-back) * idsPerDay }

// refill puts these days, and nothing else, into the database.
func (m *mailbox) refill(days ...crashDay) {
	m.t.Helper()
	var script strings.Builder
	say := func(format string, args ...any) { fmt.Fprintf(&script, format+";\n", args...) }
	for _, table := range []string{"messages", "deliveries", "links", "raw_message_sizes", leaseTable} {
		say("DELETE FROM %s", m.store.Ident(table))
	}
	for _, d := range days {
		table := m.table(d.back)
		if !d.noTable {
			raw := m.store.Ident(table)
			say("CREATE TABLE IF NOT EXISTS %s (%s)", raw, provisioner.PostalSchema().RawColumns)
			say("REPLACE INTO %s VALUES (1, 'headers', 2), (2, 'body of %s', NULL)", raw, table)
		}
		for _, bytes := range d.booked {
			say("INSERT INTO %s (table_name, size) VALUES ('%s', %d)", m.store.Ident("raw_message_sizes"), table, bytes)
		}
		var rows []string
		for i := range d.messages {
			rows = append(rows, fmt.Sprintf("(%d, 'incoming', %d.%06d, %t, '%s', 1, 2, %d)",
				firstID(d.back)+int64(i), m.day(d.back).Unix()+int64(i), i, d.held, table, mailBytes))
		}
		if len(rows) > 0 {
			say("INSERT INTO %s (id, scope, timestamp, held, raw_table, raw_headers_id, raw_body_id, size) VALUES %s",
				m.store.Ident("messages"), strings.Join(rows, ", "))
		}
	}
	for _, table := range []string{"deliveries", "links"} {
		say("INSERT INTO %s (id, message_id) SELECT id, id FROM %s", m.store.Ident(table), m.store.Ident("messages"))
		say("INSERT INTO %s (id, message_id) VALUES (1, 1), (2, %d)", m.store.Ident(table), firstID(8)-1) // of messages that are gone
	}
	m.exec(script.String())
}

func TestCrashInProvision(t *testing.T) {
	crashEverywhere(t, operation{
		fill: func(m *mailbox) { m.exec("DROP DATABASE IF EXISTS `" + m.name + "`") },
		do: func(ctx context.Context, w *worker) error {
			schema := provisioner.PostalSchema()
			schema.Base, schema.Children = schema.Base[:2], schema.Children[2:3] // messages and deliveries: each table is made alike
			return w.m.provisioner(w.db, provisioner.Config{Schema: schema}).Provision(ctx)
		},
	})
}

// The bookkeeping has a row of a table that was never made.
func TestCrashInEnsureDay(t *testing.T) {
	crashEverywhere(t, operation{
		fill: func(m *mailbox) {
			m.refill(crashDay{back: 0, noTable: true, booked: []int64{70}})
			m.exec("DROP TABLE IF EXISTS " + m.store.Ident(m.table(0)))
		},
		do: func(ctx context.Context, w *worker) error {
			_, err := w.store.EnsureDay(ctx, w.m.today)
			return err
		},
	})
}

func TestCrashInInsertInto(t *testing.T) {
	insert := func(ctx context.Context, w *worker) error {
		return w.store.InsertInto(ctx, w.m.today, func(ctx context.Context, table string) (int64, error) {
			tx, err := w.db.BeginTx(ctx, nil)
			if err != nil {
				return 0, err
			}
			defer tx.Rollback() // after Commit it does nothing
			if _, err := tx.ExecContext(ctx, "REPLACE INTO "+w.store.Ident(table)+" VALUES (1, 'mail', NULL)"); err != nil {
				return 0, err
			}
			return mailBytes, tx.Commit()
		})
	}
	crashEverywhere(t, operation{
		fill: func(m *mailbox) {
			m.refill(crashDay{back: 1, booked: []int64{0}})
			m.exec("DROP TABLE IF EXISTS " + m.store.Ident(m.table(0)))
		},
		do: insert,
		clean: func(ctx context.Context, w *worker, err error) error {
			switch {
			case err == nil:
				return nil
			case !errors.Is(err, provisioner.ErrNotBooked):
				return insert(ctx, w)
			}
			_, err = w.m.db.ExecContext(ctx, "UPDATE "+w.store.Ident("raw_message_sizes")+" SET size=? WHERE size IN (0, ?) AND table_name=?",
				mailBytes, mailBytes, w.m.table(0)) // the caller was told that the size may be too low by these bytes
			return err
		},
	})
}

func TestCrashInReconcile(t *testing.T) {
	crashEverywhere(t, operation{
		fill: func(m *mailbox) {
			m.refill(
				crashDay{back: 0, messages: 1, booked: []int64{10}},
				crashDay{back: 4, messages: 1, held: true, booked: []int64{10}},
				crashDay{back: 8, messages: 2},                                     // a missing row
				crashDay{back: 9, messages: 2, booked: []int64{20, 4000}},          // double rows that differ
				crashDay{back: 10, messages: 2, booked: []int64{20, 20, 20}},       // and that agree
				crashDay{back: 20, messages: 1, noTable: true},                     // dangling pointers
				crashDay{back: 21, messages: 1, noTable: true, booked: []int64{5}}, // and with an orphan row
				crashDay{back: 22, noTable: true, booked: []int64{5e9, 5e9}},
			)
		},
		do: func(ctx context.Context, w *worker) error {
			_, err := w.store.Reconcile(ctx)
			return err
		},
	})
}

func TestCrashInDropTable(t *testing.T) {
	crashEverywhere(t, operation{
		fill: func(m *mailbox) {
			m.refill(
				crashDay{back: 0, messages: 1, booked: []int64{10}},
				crashDay{back: 8, messages: 1, booked: []int64{10}},
				crashDay{back: 9, messages: twoBatches, booked: []int64{1500}},
			)
		},
		do: func(ctx context.Context, w *worker) error { return w.store.DropTable(ctx, w.m.table(9), nil) },
	})
}

func TestCrashInPruneMessages(t *testing.T) {
	crashEverywhere(t, operation{
		fill: func(m *mailbox) {
			m.refill(
				crashDay{back: 5, messages: 1, booked: []int64{10}},
				crashDay{back: 6, messages: 2, held: true, booked: []int64{20}},
				crashDay{back: 7, messages: 3, booked: []int64{30}},
				crashDay{back: 8, messages: 2, booked: []int64{20}},
				crashDay{back: 9, messages: twoBatches, booked: []int64{1500}},
			)
			m.queue = []int64{firstID(9) + 120}
		},
		do: func(ctx context.Context, w *worker) error {
			held := retention.Hold{From: w.m.day(7), To: w.m.day(7)}
			return w.store.PruneMessages(ctx, retention.Cut{Before: w.m.day(5), Except: []retention.Hold{held}}, nil)
		},
	})
}

// fillForRun has something of everything that a run meets.
func fillForRun(m *mailbox) {
	m.refill(
		crashDay{back: 0, messages: 1, booked: []int64{10}},
		crashDay{back: 3, messages: 1, booked: []int64{10}},
		crashDay{back: 5, messages: 1, booked: []int64{10}},             // queued
		crashDay{back: 6, messages: 1, held: true, booked: []int64{10}}, // held
		crashDay{back: 7, messages: 1, booked: []int64{10}},             // of a legal hold
		crashDay{back: 9, messages: 2, booked: []int64{20, 4000}},       // double rows
		crashDay{back: 20, messages: 1, noTable: true, booked: []int64{5e9}},
	)
	m.queue = runQueue()
}

func runQueue() []int64 { return []int64{firstID(5)} }

func crashPolicy(m *mailbox) retention.Policy {
	hold := retention.Hold{From: m.day(7), To: m.day(7), Reason: "court"}
	return retention.Policy{RawDays: new(4), MessageDays: new(4), Holds: []retention.Hold{hold}}
}

func TestCrashInRun(t *testing.T) {
	crashEverywhere(t, operation{fill: fillForRun, do: func(ctx context.Context, w *worker) error {
		_, err := retention.Run(ctx, w.store, retention.Config{Name: "test", Policy: crashPolicy(w.m)})
		return err
	}})
}

func TestCrashInRunWithLeaseAndGuard(t *testing.T) {
	crashEverywhere(t, leasedRun())
}

// leasedRun is a run under a lease that fences it. Nobody waits for the lease of a dead worker.
func leasedRun() operation {
	return operation{fill: fillForRun, do: fencedRun, clean: func(ctx context.Context, w *worker, _ error) error {
		w.m.exec("DELETE FROM " + w.store.Ident(leaseTable))
		return fencedRun(ctx, w)
	}}
}

func fencedRun(ctx context.Context, w *worker) error {
	_, err := retention.Run(ctx, w.store, retention.Config{Name: "test", Policy: crashPolicy(w.m), Locker: w.leases})
	return err
}
