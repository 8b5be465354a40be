package integration

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mailretention/mailretention/internal/mysqltest"
	"github.com/mailretention/mailretention/lease"
	"github.com/mailretention/mailretention/provisioner"
	"github.com/mailretention/mailretention/retention"
)

// longestTest is how long a test may take, and one that compares mailboxes may take to make them.
const longestTest = 2 * time.Minute

// today is midnight UTC by the server's clock. If the next midnight is nearer than margin it is waited for, since a test would see two days.
func today(t *testing.T, db *sql.DB, margin time.Duration) time.Time {
	t.Helper()
	var seconds int64
	require.NoError(t, db.QueryRowContext(t.Context(), "SELECT CAST(UNIX_TIMESTAMP() AS SIGNED)").Scan(&seconds))
	now := time.Unix(seconds, 0).UTC()
	if midnight := now.Truncate(24*time.Hour).AddDate(0, 0, 1); midnight.Sub(now) < margin {
		time.Sleep(midnight.Sub(now))
		return midnight
	}
	return now.Truncate(24 * time.Hour)
}

// onOneDay makes sure that all mailboxes that a test compares are of the same day.
func onOneDay(t *testing.T) {
	t.Helper()
	today(t, mysqltest.Open(t, ""), 2*longestTest)
}

// mailbox is a mail server's message database in Postal's shape, and what tests do to it.
type mailbox struct {
	t     *testing.T
	db    *sql.DB
	name  string
	today time.Time // midnight UTC by the server's clock
	store *provisioner.Provisioner
	queue []int64 // ids of the messages that are still to be sent

	connector func(params ...string) driver.Connector // to its server, with no database selected; params are as in mysqltest.DSN
}

func newMailbox(t *testing.T, params ...string) *mailbox {
	t.Helper()
	db, name := mysqltest.DB(t, params...)
	m := openMailbox(t, db, name)
	require.NoError(t, m.store.Provision(t.Context()))
	return m
}

// openMailbox is the mailbox of a database that may be there already.
func openMailbox(t *testing.T, db *sql.DB, name string) *mailbox {
	t.Helper()
	m := &mailbox{t: t, db: db, name: name}
	m.connector = func(params ...string) driver.Connector { return mysqltest.Connector(t, "", params...) }
	m.store = m.provisioner(db, provisioner.Config{})
	m.today = today(t, db, longestTest)
	return m
}

// provisioner returns another Provisioner of the same database.
func (m *mailbox) provisioner(db *sql.DB, cfg provisioner.Config) *provisioner.Provisioner {
	m.t.Helper()
	cfg.Database = m.name
	store, err := provisioner.New(db, cfg)
	require.NoError(m.t, err)
	return store
}

// leases returns Leases on a pool of their own, in the mailbox's database.
func (m *mailbox) leases(cfg lease.Config) *lease.Leases {
	m.t.Helper()
	leases, err := lease.New(mysqltest.Open(m.t, m.name), cfg)
	require.NoError(m.t, err)
	require.NoError(m.t, leases.Provision(m.t.Context()))
	return leases
}

func (m *mailbox) day(back int) time.Time { return m.today.AddDate(0, 0, -back) }

func (m *mailbox) table(back int) string { return "raw-" + m.day(back).Format(time.DateOnly) }

func (m *mailbox) exec(statement string, args ...any) {
	m.t.Helper()
	_, err := m.db.ExecContext(m.t.Context(), statement, args...)
	require.NoError(m.t, err, statement)
}

func (m *mailbox) count(query string, args ...any) (n int64) {
	m.t.Helper()
	require.NoError(m.t, m.db.QueryRowContext(m.t.Context(), query, args...).Scan(&n), query)
	return n
}

func (m *mailbox) strings(query string, args ...any) []string {
	m.t.Helper()
	rows, err := m.db.QueryContext(m.t.Context(), query, args...)
	require.NoError(m.t, err, query)
	defer rows.Close()
	all := []string{}
	for rows.Next() {
		var s string
		require.NoError(m.t, rows.Scan(&s))
		all = append(all, s)
	}
	require.NoError(m.t, rows.Err())
	return all
}

// createTable makes a raw table, whatever its name.
func (m *mailbox) createTable(name string) {
	m.t.Helper()
	m.exec(fmt.Sprintf("CREATE TABLE IF NOT EXISTS %s (%s) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4",
		m.store.Ident(name), provisioner.PostalSchema().RawColumns))
}

// fill gives the day so many messages of so many bytes each, with one delivery each, and books them.
func (m *mailbox) fill(back, messages int, bytes int64) {
	m.t.Helper()
	name := m.table(back)
	m.createTable(name)
	m.exec("INSERT INTO raw_message_sizes (table_name, size) VALUES (?, ?)", name, int64(messages)*bytes)
	if messages == 0 {
		return
	}
	one := fmt.Sprintf("('%s', %d.5, %d, 1, 2)", name, m.day(back).Unix(), bytes)
	m.exec("INSERT INTO messages (raw_table, timestamp, size, raw_headers_id, raw_body_id) VALUES " + strings.Repeat(one+", ", messages-1) + one)
	var deliveries []string // not INSERT … SELECT, which would lock what others write
	for _, id := range m.ids(back) {
		deliveries = append(deliveries, fmt.Sprintf("(%d, 'Sent')", id))
	}
	m.exec("INSERT INTO deliveries (message_id, status) VALUES " + strings.Join(deliveries, ", "))
	m.exec(fmt.Sprintf("INSERT INTO %s (data) VALUES ('headers'), ('body')", m.store.Ident(name)))
}

// ids returns the ids of the messages whose mail is in the day's table.
func (m *mailbox) ids(back int) []int64 {
	m.t.Helper()
	rows, err := m.db.QueryContext(m.t.Context(), "SELECT id FROM "+m.store.Ident("messages")+" WHERE raw_table = ? ORDER BY id", m.table(back))
	require.NoError(m.t, err)
	defer rows.Close()
	ids := []int64{}
	for rows.Next() {
		var id int64
		require.NoError(m.t, rows.Scan(&id))
		ids = append(ids, id)
	}
	require.NoError(m.t, rows.Err())
	return ids
}

// tables returns the names of all tables that begin like a raw one, sorted.
func (m *mailbox) tables() []string {
	m.t.Helper()
	return m.strings("SELECT CONVERT(TABLE_NAME USING utf8mb4) FROM information_schema.TABLES WHERE TABLE_SCHEMA = ? AND TABLE_NAME LIKE 'raw-%' ORDER BY BINARY TABLE_NAME", m.name)
}

// days returns the names of the tables of so many days back, sorted.
func (m *mailbox) days(backs ...int) []string {
	names := []string{}
	for _, back := range backs {
		names = append(names, m.table(back))
	}
	slices.Sort(names)
	return names
}

// requireBooksAgree wants a bookkeeping row for each raw table and a table for each row, and no pointer into nothing.
func (m *mailbox) requireBooksAgree() {
	m.t.Helper()
	require.Equal(m.t, m.tables(), m.strings("SELECT table_name FROM "+m.store.Ident("raw_message_sizes")+" ORDER BY table_name"), "bookkeeping and tables")
	for _, name := range m.strings("SELECT DISTINCT raw_table FROM " + m.store.Ident("messages") + " WHERE raw_table IS NOT NULL") {
		require.Contains(m.t, m.tables(), name, "messages point at it")
	}
}

// run does one run on the mailbox and wants no error.
func (m *mailbox) run(policy retention.Policy) retention.Report {
	m.t.Helper()
	report, err := retention.Run(m.t.Context(), m.store, retention.Config{Name: "test", Policy: policy})
	require.NoError(m.t, err)
	return report
}

// verdict returns what a run says of a day's table that its plan drops.
func (m *mailbox) verdict(report retention.Report, back int) retention.TableReport {
	m.t.Helper()
	for _, table := range report.Tables {
		if table.Table.Name == m.table(back) {
			return table
		}
	}
	require.Fail(m.t, "not tried", "%s: %s", m.table(back), report)
	return retention.TableReport{}
}

// dropped returns the names of the tables that a run dropped.
func dropped(report retention.Report) []string {
	names := []string{}
	for _, table := range report.Tables {
		if table.Verdict == retention.VerdictDropped {
			names = append(names, table.Table.Name)
		}
	}
	return names
}

// together runs n functions at once, lets them begin at the same moment, and returns what each gave.
func together[T any](n int, fn func(i int) T) []T {
	results := make([]T, n)
	ctx, begin := context.WithCancel(context.Background())
	done := make(chan struct{})
	for i := range n {
		go func() {
			defer func() { done <- struct{}{} }()
			<-ctx.Done()
			results[i] = fn(i)
		}()
	}
	begin()
	for range n {
		<-done
	}
	return results
}
