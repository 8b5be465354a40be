package integration

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mailretention/mailretention/internal/mysqlerr"
	"github.com/mailretention/mailretention/provisioner"
	"github.com/mailretention/mailretention/retention"
)

const (
	lockWait     = time.Second
	serversClock = time.Second // the servers count lock waits in whole seconds
)

// reading keeps a table in use by a transaction that has read it. release ends it.
func (m *mailbox) reading(table string) (release func()) {
	m.t.Helper()
	tx, err := m.db.BeginTx(context.WithoutCancel(m.t.Context()), nil)
	require.NoError(m.t, err)
	var rows int
	require.NoError(m.t, tx.QueryRowContext(m.t.Context(), "SELECT COUNT(*) FROM "+m.store.Ident(table)).Scan(&rows))
	release = func() { tx.Rollback() } // the second time it does nothing
	m.t.Cleanup(release)
	return release
}

// dropWaits returns when the server has a DROP TABLE that waits for others to leave.
func (m *mailbox) dropWaits(ctx context.Context) error {
	for {
		var waiting int
		err := m.db.QueryRowContext(ctx, "SELECT COUNT(*) FROM information_schema.PROCESSLIST WHERE INFO LIKE 'DROP TABLE IF EXISTS%' AND INFO LIKE ?"+
			" AND STATE LIKE '%metadata lock%'", "%"+m.name+"%").Scan(&waiting)
		if err != nil || waiting > 0 {
			return err
		}
	}
}

// Of four expired tables the second is being read: the others go, it is reported as locked and detached, a writer behind the
// waiting DROP is delayed by no more than LockWait, and the next run takes it.
func TestRunGoesOnPastATableThatIsRead(t *testing.T) {
	m := newMailbox(t)
	m.fill(0, 1, 100)
	for _, back := range []int{6, 7, 8, 9} {
		m.fill(back, 3, 100)
	}
	store := m.provisioner(m.db, provisioner.Config{LockWait: lockWait})
	run := func() (retention.Report, error) {
		return retention.Run(t.Context(), store, retention.Config{Name: "test", Policy: retention.Policy{RawDays: new(4), AllowEmpty: true}})
	}
	release := m.reading(m.table(8))
	writer := make(chan error, 1)
	var delayed time.Duration
	go func() {
		err := m.dropWaits(t.Context())
		began := time.Now()
		_, failed := m.db.ExecContext(t.Context(), "INSERT INTO "+m.store.Ident(m.table(8))+" (data) VALUES ('late')")
		delayed = time.Since(began)
		writer <- errors.Join(err, failed)
	}()
	report, err := run()
	require.NoError(t, <-writer)
	require.Less(t, delayed, lockWait+serversClock)
	require.Equal(t, retention.OutcomePartial, report.Outcome)
	failed, ok := errors.AsType[*retention.TableError](err)
	require.True(t, ok)
	require.Equal(t, m.table(8), failed.Table)
	require.Equal(t, []string{m.table(9), m.table(7), m.table(6)}, dropped(report))
	verdict := m.verdict(report, 8)
	require.Equal(t, retention.VerdictFailed, verdict.Verdict)
	require.True(t, verdict.Detached)
	require.EqualValues(t, 3, verdict.Rows)
	require.Equal(t, mysqlerr.Busy, mysqlerr.Classify(verdict.Err), "%v", verdict.Err)
	require.Equal(t, m.days(0, 8), m.tables())
	m.requireBooksAgree()

	release()
	report, err = run()
	require.NoError(t, err)
	require.Equal(t, m.days(8), dropped(report))
	require.Equal(t, m.days(0), m.tables())
	m.requireBooksAgree()
}

// The context ends while a DROP waits: its end is waited for, and what the report says is what is there.
func TestRunThatIsCancelledWhileADropWaits(t *testing.T) {
	for name, readerLeaves := range map[string]bool{"and the reader stays": false, "and the reader leaves": true} {
		t.Run(name, func(t *testing.T) {
			m := newMailbox(t)
			m.fill(0, 1, 100)
			m.fill(8, 3, 100)
			release := m.reading(m.table(8))
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			waited := make(chan error, 1)
			go func() {
				waited <- m.dropWaits(t.Context())
				cancel()
				if readerLeaves {
					release()
				}
			}()
			store := m.provisioner(m.db, provisioner.Config{LockWait: lockWait})
			report, err := retention.Run(ctx, store, retention.Config{Name: "test", Policy: retention.Policy{RawDays: new(4), MessageDays: new(4)}})
			require.NoError(t, <-waited)
			require.ErrorIs(t, err, context.Canceled)
			require.Equal(t, retention.OutcomePartial, report.Outcome)
			require.Zero(t, report.RowsPruned, "what would follow is left")
			release()
			time.Sleep(serversClock) // a DROP that went on by itself would be through
			if readerLeaves {
				require.Equal(t, retention.VerdictDropped, m.verdict(report, 8).Verdict)
				require.Equal(t, m.days(0), m.tables())
			} else {
				require.Equal(t, retention.VerdictFailed, m.verdict(report, 8).Verdict)
				require.Equal(t, m.days(0, 8), m.tables())
			}
			m.requireBooksAgree()
		})
	}
}

// Clients that store mail, and clients that note that an old one was opened, meet no deadlock while retention deletes beside them.
func TestClientsMeetNoDeadlockBecauseOfRetention(t *testing.T) {
	const clients, runs, messages = 6, 6, 500
	m := newMailbox(t)
	m.db.SetMaxIdleConns(2 * clients)
	m.fill(0, 50, 100)
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var oldest atomic.Int64 // the first id of those that go
	errs := together(clients+1, func(i int) error {
		if i == clients {
			defer stop()
			for range runs {
				m.fill(8, messages, 100)
				m.fill(9, messages, 100)
				oldest.Store(m.ids(8)[0])
				policy := retention.Policy{RawDays: new(4), MessageDays: new(4), AllowEmpty: true}
				if _, err := retention.Run(t.Context(), m.store, retention.Config{Name: "test", Policy: policy}); err != nil {
					return err
				}
			}
			return nil
		}
		for ctx.Err() == nil {
			do := func() error { return m.deliver(t.Context(), 0) }
			if i%2 == 0 {
				do = func() error { return m.opened(t.Context(), oldest.Load()+rand.N[int64](2*messages)) }
			}
			if err := do(); err != nil {
				return err
			}
		}
		return nil
	})
	require.NoError(t, errors.Join(errs...))
}

// opened is what a mail server does when a message is opened.
func (m *mailbox) opened(ctx context.Context, id int64) error {
	return m.transact(ctx, id,
		"UPDATE "+m.store.Ident("messages")+" SET loaded = 1 WHERE id = %d",
		"INSERT INTO "+m.store.Ident("loads")+" (message_id) VALUES (%d)")
}

// transact runs statements, of which each has the id of a message, in one transaction.
func (m *mailbox) transact(ctx context.Context, id int64, statements ...string) error {
	tx, err := m.db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback() // after Commit it does nothing
	for _, statement := range statements {
		if _, err := tx.ExecContext(ctx, fmt.Sprintf(statement, id)); err != nil {
			return err
		}
	}
	return tx.Commit()
}

// deliver is what a mail server does with a mail of so many days ago: it stores the message with a delivery, and changes it once more.
func (m *mailbox) deliver(ctx context.Context, back int) error {
	tx, err := m.db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback() // after Commit it does nothing
	id, err := inserted(tx.ExecContext(ctx, "INSERT INTO "+m.store.Ident("messages")+
		" (scope, timestamp, raw_table, raw_headers_id, raw_body_id, size) VALUES ('incoming', ?, ?, 1, 2, 100)", m.day(back).Unix()+1, m.table(back)))
	if err != nil {
		return err
	}
	for _, statement := range []string{
		"INSERT INTO " + m.store.Ident("deliveries") + " (message_id, status) VALUES (%d, 'Sent')",
		"UPDATE " + m.store.Ident("messages") + " SET status = 'Sent' WHERE id = %d",
	} {
		if _, err := tx.ExecContext(ctx, fmt.Sprintf(statement, id)); err != nil {
			return err
		}
	}
	return tx.Commit()
}

func inserted(result sql.Result, err error) (id int64, _ error) {
	if err != nil {
		return 0, err
	}
	return result.LastInsertId()
}
