package benchmark

import (
	"context"
	"crypto/rand"
	"database/sql"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mailretention/mailretention/lease"
	"github.com/mailretention/mailretention/provisioner"
	"github.com/mailretention/mailretention/retention"
)

const (
	pending      = 100 // messages in the queue
	messageBytes = 1000
	hugeBytes    = 2048
)

// content says what a mailbox is filled with.
type content struct {
	perDay []int // messages, those of today first
	keeps  int   // days that stay beside today
	bytes  int64 // of each message's raw mail
	lean   bool  // no children, and texts that make small indexes
}

// sixDays are n messages, of which half go.
func sixDays(n int) content {
	return content{perDay: evenly(6, n), keeps: 2, bytes: messageBytes}
}

func evenly(days, n int) []int {
	perDay := make([]int, days)
	for day := range perDay {
		perDay[day] = n / days
	}
	return perDay
}

// mailbox is one message database, full of mail.
type mailbox struct {
	content
	t      testing.TB
	name   string
	db     *sql.DB
	server *server
	today  time.Time // by the server's clock
	rows   int       // messages
	leases *lease.Leases
}

// newMailbox makes and fills one, which is gone after the test.
func (s *server) newMailbox(t testing.TB, c content) *mailbox {
	t.Helper()
	name := unique()
	m := &mailbox{content: c, t: t, name: name, server: s, db: s.open(t, name)}
	t.Cleanup(m.drop)
	s.prepare(t, m.make)
	var err error
	m.leases, err = lease.New(s.open(t, name), lease.Config{})
	require.NoError(t, err)
	require.NoError(t, m.leases.Provision(t.Context()))
	return m
}

func unique() string { return "mailretention-benchmark-" + strings.ToLower(rand.Text()) }

// make makes the database and fills it.
func (m *mailbox) make() {
	execute(m.t, m.server.admin, createDatabase(m.name))
	var seconds int64
	require.NoError(m.t, m.db.QueryRowContext(m.t.Context(), selectToday).Scan(&seconds))
	m.today = time.Unix(seconds, 0).UTC()
	require.NoError(m.t, m.store(m.db, nil).Provision(m.t.Context()))
	for ago := len(m.perDay) - 1; ago >= 0; ago-- {
		m.fill(ago, m.perDay[ago])
	}
	m.exec(createQueue)
	m.exec(fillQueue(m.rows - pending + 1))
	m.exec(analyze)
}

// fill makes the raw table of a day, with so many messages.
func (m *mailbox) fill(ago, count int) {
	m.t.Helper()
	table := m.table(ago)
	m.exec(createRaw(table))
	m.exec(book, table, int64(count)*m.bytes)
	if count == 0 {
		return
	}
	m.exec(fillMessages(m.rows, count, m.lean), m.midnight(ago).Unix(), table, m.bytes)
	m.exec(fillRaw(table, count), m.bytes)
	if !m.lean {
		for _, child := range children() {
			m.exec(fillChild(child, m.rows, count))
		}
	}
	m.rows += count
}

func (m *mailbox) midnight(ago int) time.Time { return m.today.AddDate(0, 0, -ago) }

func (m *mailbox) table(ago int) string { return "raw-" + m.midnight(ago).Format(time.DateOnly) }

func (m *mailbox) exec(statement string, args ...any) {
	m.t.Helper()
	execute(m.t, m.db, statement, args...)
}

// drop ends the mailbox. Twice is fine.
func (m *mailbox) drop() {
	m.t.Helper()
	m.server.dropDatabase(m.t, m.name)
}

// store returns a Provisioner, with a queue as an operator's and with a fence unless leases is nil.
func (m *mailbox) store(db *sql.DB, leases *lease.Leases) *provisioner.Provisioner {
	m.t.Helper()
	cfg := provisioner.Config{Database: m.name}
	if leases != nil {
		cfg.Guard = leases.Guard
		cfg.Pending = func(ctx context.Context) ([]int64, error) { return column[int64](ctx, db, selectQueue(m.name)) }
	}
	store, err := provisioner.New(db, cfg)
	require.NoError(m.t, err)
	return store
}

// job is one way to do the work; it returns the messages that it changed or deleted.
type job func(ctx context.Context, m *mailbox) (rows int64, err error)

// our is a run of the policy, under a lease.
func our(policy func(keeps int) retention.Policy) job {
	return func(ctx context.Context, m *mailbox) (int64, error) {
		report, err := retention.Run(ctx, m.store(m.db, m.leases), retention.Config{Name: m.name, Policy: policy(m.keeps), Locker: m.leases})
		if err == nil && report.Outcome != retention.OutcomeDone {
			err = fmt.Errorf("the run's outcome is %s: %s", report.Outcome, report)
		}
		return report.RowsDetached + report.RowsPruned, err
	}
}

func rawTables(keeps int) retention.Policy { return retention.Policy{RawDays: &keeps} }

func messageRows(keeps int) retention.Policy { return retention.Policy{MessageDays: &keeps} }

func both(keeps int) retention.Policy {
	return retention.Policy{RawDays: &keeps, MessageDays: &keeps}
}
