package main

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"net"
	gosmtp "net/smtp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/emersion/go-smtp"
	"github.com/stretchr/testify/require"

	"github.com/mailretention/mailretention/internal/mysqltest"
	"github.com/mailretention/mailretention/provisioner"
	"github.com/mailretention/mailretention/retention"
)

const (
	from    = "sender@example.org"
	willing = "willing@example.net" // the sink takes mail for this one
	later   = "later@example.net"   // and for this one once it is open
	never   = "never@example.net"   // and never for this one
)

// mailbox is what the sink has taken.
type mailbox struct {
	sync.Mutex
	open    bool
	letters []letter
}

func (b *mailbox) take(l letter) error {
	b.Lock()
	defer b.Unlock()
	switch {
	case l.to == never:
		return &smtp.SMTPError{Code: 550, EnhancedCode: smtp.EnhancedCode{5, 1, 1}, Message: "No such user"}
	case l.to == later && !b.open:
		return &smtp.SMTPError{Code: 451, EnhancedCode: smtp.EnhancedCode{4, 2, 0}, Message: "Mailbox busy"}
	}
	b.letters = append(b.letters, l)
	return nil
}

func (b *mailbox) unlock() {
	b.Lock()
	defer b.Unlock()
	b.open = true
}

// count says how often the recipient got exactly this mail, under one Received line.
func (b *mailbox) count(to, mail string) (n int) {
	b.Lock()
	defer b.Unlock()
	for _, l := range b.letters {
		trace, got, _ := bytes.Cut(l.raw, []byte("\r\n"))
		if l.to == to && l.from == from && string(got) == mail && bytes.HasPrefix(trace, []byte("Received: from ")) {
			n++
		}
	}
	return n
}

// site is two instances on one database, and the sink. The instances only receive; the tests say when they deliver.
type site struct {
	db        *sql.DB
	name      string
	store     *provisioner.Provisioner
	sink      mailbox
	instances []*MTA
	addresses []string
	clock     atomic.Pointer[time.Time] // when mail arrives; nil: now
}

func newSite(t *testing.T, policy retention.Policy) *site {
	t.Helper()
	s := &site{}
	s.db, s.name = mysqltest.DB(t)
	require.NoError(t, Provision(t.Context(), s.db, s.name))
	var err error
	s.store, err = provisioner.New(s.db, provisioner.Config{Database: s.name, Schema: schema()})
	require.NoError(t, err)
	sink := listen(t, newSink(slog.DiscardHandler, s.sink.take))
	for i := range 2 {
		m, err := New(t.Context(), Config{
			Name: fmt.Sprintf("mta-%d", i+1), Database: s.name, Work: mysqltest.Open(t, s.name), Leases: mysqltest.Open(t, s.name),
			Sink: sink, Policy: policy, Every: time.Hour, Retry: time.Hour, Now: s.now,
		})
		require.NoError(t, err)
		s.instances = append(s.instances, m)
		s.addresses = append(s.addresses, listen(t, m.server()))
	}
	return s
}

func listen(t *testing.T, server *smtp.Server) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	served := make(chan error, 1)
	go func() { served <- server.Serve(l) }()
	t.Cleanup(func() {
		require.NoError(t, server.Shutdown(context.Background()))
		require.NoError(t, <-served)
	})
	return l.Addr().String()
}

func (s *site) now() time.Time {
	if at := s.clock.Load(); at != nil {
		return *at
	}
	return time.Now()
}

// today is the server's.
func (s *site) today(t *testing.T) time.Time {
	t.Helper()
	inventory, err := s.store.Inventory(t.Context())
	require.NoError(t, err)
	return inventory.Now.Truncate(24 * time.Hour)
}

// makeOldTable makes the table of a day that the library doesn't make any more.
func (s *site) makeOldTable(t *testing.T, day time.Time) {
	t.Helper()
	_, err := s.db.ExecContext(t.Context(), fmt.Sprintf("CREATE TABLE %s (%s)", s.store.Ident(tableOf(day)), schema().RawColumns))
	require.NoError(t, err)
}

func tableOf(day time.Time) string { return "raw-" + day.Format(time.DateOnly) }

// compose makes a mail of about so many bytes, with what mail software stumbles over: a line that begins with a dot,
// text of 8 bits, another empty line, a long subject.
func compose(title string, bytes int) string {
	head := "From: " + from + "\r\nTo: somebody@example.net\r\nSubject: " + strings.Repeat(title+" ", 60) + "\r\n\r\n" +
		".a line with a dot\r\nGrüße\r\n\r\n"
	line := strings.Repeat("x", 70) + "\r\n"
	return head + strings.Repeat(line, max(bytes-len(head), 0)/len(line))
}

// send sends mail as any client does.
func send(address, mail string, to ...string) error {
	return gosmtp.SendMail(address, nil, from, to, []byte(mail))
}

// deliver lets both instances work on the queue at once, and returns when neither finds anything that is due.
func (s *site) deliver(t *testing.T) {
	t.Helper()
	s.both(t, func(m *MTA) error { return m.deliverDue(t.Context()) })
}

func (s *site) both(t *testing.T, fn func(*MTA) error) {
	t.Helper()
	errs := make([]error, len(s.instances))
	var running sync.WaitGroup
	for i, m := range s.instances {
		running.Go(func() { errs[i] = fn(m) })
	}
	running.Wait()
	require.NoError(t, errors.Join(errs...))
}

// retain lets both instances run retention at once and returns the report of the one that worked.
func (s *site) retain(t *testing.T) retention.Report {
	t.Helper()
	var lock sync.Mutex
	var worked []retention.Report
	s.both(t, func(m *MTA) error {
		report, err := m.retention.Run(t.Context())
		if errors.Is(err, retention.ErrHeld) {
			return nil
		}
		lock.Lock()
		defer lock.Unlock()
		if len(report.Tables) > 0 || len(worked) == 0 {
			worked = append([]retention.Report{report}, worked...) // one that came later found nothing to do
		}
		return err
	})
	require.NotEmpty(t, worked)
	return worked[0]
}

// due makes everything in the queue due.
func (s *site) due(t *testing.T) {
	t.Helper()
	_, err := s.db.ExecContext(t.Context(), "UPDATE queue SET retry_at = UTC_TIMESTAMP(6)")
	require.NoError(t, err)
}

// count is the result of a query of one number.
func (s *site) count(t *testing.T, query string, args ...any) (n int) {
	t.Helper()
	require.NoError(t, s.db.QueryRowContext(t.Context(), query, args...).Scan(&n))
	return n
}

// tables returns the names of the raw tables, oldest first.
func (s *site) tables(t *testing.T) []string {
	t.Helper()
	inventory, err := s.store.Inventory(t.Context())
	require.NoError(t, err)
	require.Empty(t, inventory.Drift)
	var names []string
	for _, table := range inventory.Tables {
		names = append(names, table.Name)
	}
	slices.Sort(names)
	return names
}

// checkBooks compares what is booked for each raw table with its messages and with the mail itself, and looks whether
// everything in the queue has its mail.
func (s *site) checkBooks(t *testing.T) {
	t.Helper()
	tables := s.tables(t)
	require.Equal(t, len(tables), s.count(t, "SELECT COUNT(*) FROM raw_message_sizes"))
	for _, table := range tables {
		booked := s.count(t, "SELECT size FROM raw_message_sizes WHERE table_name = ?", table)
		sizes := s.count(t, "SELECT CAST(COALESCE(SUM(size), 0) AS SIGNED) FROM messages WHERE raw_table = ?", table)
		messages := s.count(t, "SELECT COUNT(*) FROM messages WHERE raw_table = ?", table)
		raw := s.count(t, "SELECT COALESCE(SUM(LENGTH(data)), 0) FROM "+s.store.Ident(table))
		parts := s.count(t, "SELECT COUNT(data) FROM "+s.store.Ident(table)) // headers and bodies
		require.Equal(t, booked, sizes, table)
		require.Equal(t, booked, raw+(parts-messages)*len(emptyLine), table)
	}
	require.Zero(t, s.count(t, "SELECT COUNT(*) FROM queue WHERE message_id NOT IN (SELECT id FROM messages WHERE raw_table IS NOT NULL)"))
}
