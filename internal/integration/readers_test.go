package integration

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mailretention/mailretention/internal/mysqlerr"
	"github.com/mailretention/mailretention/retention"
)

// read is what a mail client does: it follows a message's pointer to its mail. Whoever sees a pointer, and then no table, must see no
// pointer any more.
func (m *mailbox) read(ctx context.Context, id int64) error {
	table, err := m.pointer(ctx, id)
	if err != nil || table == "" {
		return err
	}
	var mail []byte
	err = m.db.QueryRowContext(ctx, "SELECT data FROM "+m.store.Ident(table)+" ORDER BY id LIMIT 1").Scan(&mail)
	if !mysqlerr.Is(err, mysqlerr.NoSuchTable) {
		return err
	}
	table, err = m.pointer(ctx, id)
	if err == nil && table != "" {
		err = fmt.Errorf("message %d points at %s, which is gone", id, table)
	}
	return err
}

// pointer returns the raw table of a message, "" if its mail or the whole message was removed.
func (m *mailbox) pointer(ctx context.Context, id int64) (string, error) {
	var table sql.NullString
	err := m.db.QueryRowContext(ctx, "SELECT raw_table FROM "+m.store.Ident("messages")+" WHERE id = ?", id).Scan(&table)
	if errors.Is(err, sql.ErrNoRows) {
		return "", nil
	}
	return table.String, err
}

// insert stores a mail of today, as a mail server does: the raw rows first and the message some time later.
func (m *mailbox) insert(ctx context.Context) error {
	return m.store.InsertInto(ctx, m.today, func(ctx context.Context, table string) (int64, error) {
		_, err := m.db.ExecContext(ctx, "INSERT INTO "+m.store.Ident(table)+" (data) VALUES ('headers'), ('body')")
		if err != nil {
			return 0, err
		}
		return mailBytes, m.deliver(ctx, 0)
	})
}

func TestReadersSeeTheMailOrThatItWasRemovedAndWritersNeverFail(t *testing.T) {
	const readers, writers, messages = 3, 2, 120
	m := newMailbox(t)
	m.db.SetMaxIdleConns(2 * (readers + writers))
	expired := []int{5, 6, 7, 8, 9, 10}
	var ids []int64
	for _, back := range expired {
		m.fill(back, messages, 100)
		ids = append(ids, m.ids(back)...)
	}
	m.fill(0, 1, 100)
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var reads, writes atomic.Int64
	errs := together(readers+writers+1, func(i int) error {
		if i == readers+writers {
			defer stop()
			_, err := retention.Run(t.Context(), m.store, retention.Config{Name: "test", Policy: retention.Policy{RawDays: new(3), AllowEmpty: true}})
			return err
		}
		for ctx.Err() == nil {
			if i < readers {
				if err := m.read(t.Context(), ids[rand.N(len(ids))]); err != nil {
					return err
				}
				reads.Add(1)
				continue
			}
			if err := m.insert(t.Context()); err != nil {
				return err
			}
			writes.Add(1)
		}
		return nil
	})
	require.NoError(t, errors.Join(errs...))
	t.Logf("%d reads and %d writes", reads.Load(), writes.Load())
	require.Equal(t, m.days(0), m.tables())
	m.requireBooksAgree()
	require.EqualValues(t, 100+writes.Load()*mailBytes, m.count("SELECT SUM(size) FROM raw_message_sizes"))
	require.EqualValues(t, 1+writes.Load(), m.count("SELECT COUNT(*) FROM messages WHERE raw_table IS NOT NULL"))
}

// A writer that was slow for days stores its message when the table is gone: the next run clears the pointer.
func TestPointerOfAWriterThatWasSlowForDaysIsClearedByTheNextRun(t *testing.T) {
	m := newMailbox(t)
	m.fill(0, 1, 100)
	m.fill(5, 1, 100)
	policy := retention.Policy{RawDays: new(3)}
	require.Equal(t, m.days(5), dropped(m.run(policy)))
	require.NoError(t, m.deliver(t.Context(), 5))
	require.Len(t, m.ids(5), 1)
	report := m.run(policy)
	require.Equal(t, retention.OutcomeDone, report.Outcome)
	require.Equal(t, 1, report.Repaired)
	require.Empty(t, m.ids(5))
	m.requireBooksAgree()
}
