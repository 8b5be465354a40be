package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mailretention/mailretention/internal/mysqltest"
	"github.com/mailretention/mailretention/retention"
)

func TestMailAcrossMidnightIsStoredByItsDay(t *testing.T) {
	s := newSite(t, retention.Policy{})
	midnight := s.today(t).AddDate(0, 0, 1)
	mails := map[string]int{}
	for i := range 8 { // four before midnight, four from it on
		at := midnight.Add(time.Duration(i-4) * time.Millisecond)
		s.clock.Store(&at)
		mail := compose(fmt.Sprint("mail ", i), 2_000)
		require.NoError(t, send(s.addresses[i%2], mail, willing))
		mails[tableOf(at)]++
	}
	require.Len(t, mails, 2)
	for table, n := range mails {
		require.Equal(t, n, s.count(t, "SELECT COUNT(*) FROM messages WHERE raw_table = ?", table), table)
	}
	require.Equal(t, 4, s.count(t, "SELECT COUNT(*) FROM messages WHERE timestamp < ?", midnight.Unix()))
	s.checkBooks(t)
	s.deliver(t)
	for i := range 8 {
		require.Equal(t, 1, s.sink.count(willing, compose(fmt.Sprint("mail ", i), 2_000)), i)
	}
	require.Zero(t, s.count(t, "SELECT COUNT(*) FROM queue"))
}

// The limit is 300 kB. Four old days of 80 kB each are there, and in the first and the third of them is mail that the
// sink doesn't take yet.
func TestNothingQueuedIsLostAtTheSizeLimit(t *testing.T) {
	s := newSite(t, retention.Policy{RawBytes: new(int64(300_000))})
	today := s.today(t)
	days := []string{tableOf(today.AddDate(0, 0, -7)), tableOf(today.AddDate(0, 0, -6)), tableOf(today.AddDate(0, 0, -5)), tableOf(today.AddDate(0, 0, -4))}
	sent := map[string][]string{} // mails by recipient
	for i := range days {
		at := today.AddDate(0, 0, i-7).Add(12 * time.Hour)
		s.makeOldTable(t, at)
		s.clock.Store(&at)
		s.fill(t, sent, fmt.Sprint("day ", i), 4, []string{later, willing}[i%2])
	}
	at := today.Add(time.Minute)
	s.clock.Store(&at)
	s.fill(t, sent, "today", 2, willing)
	s.deliver(t)
	require.Equal(t, 2, s.count(t, "SELECT COUNT(*) FROM queue"), "the two that the sink doesn't take yet")

	report := s.retain(t)
	require.Equal(t, retention.OutcomeDone, report.Outcome)
	require.Equal(t, []string{days[0], days[2], days[3], tableOf(today)}, s.tables(t), "360 kB were there: the oldest free day went")
	require.Zero(t, report.Plan.Shortfall)
	s.checkBooks(t)

	var sending sync.WaitGroup // more comes in while retention runs
	sending.Go(func() { s.fill(t, sent, "more", 6, willing) })
	s.retain(t)
	sending.Wait()
	report = s.retain(t)
	require.Equal(t, []string{days[0], days[2], tableOf(today)}, s.tables(t), "the last free day went")
	require.Positive(t, report.Plan.Shortfall, "and the rest is more than the limit, but protected")
	s.deliver(t)
	require.Equal(t, 2, s.count(t, "SELECT COUNT(*) FROM queue"))

	s.sink.unlock()
	s.due(t)
	s.deliver(t)
	require.Zero(t, s.count(t, "SELECT COUNT(*) FROM queue"))
	s.retain(t)
	require.Equal(t, []string{days[2], tableOf(today)}, s.tables(t), "what was queued is delivered, so the oldest day may go")
	s.checkBooks(t)
	for to, mails := range sent {
		for _, mail := range mails {
			require.Equal(t, 1, s.sink.count(to, mail))
		}
	}
}

// fill sends n mails of 20 kB at once, the first of them to the given recipient, and remembers them.
func (s *site) fill(t *testing.T, sent map[string][]string, title string, n int, first string) {
	var running sync.WaitGroup
	for i := range n {
		to := willing
		if i == 0 {
			to = first
		}
		mail := compose(fmt.Sprint(title, " mail ", i), 20_000)
		sent[to] = append(sent[to], mail)
		running.Go(func() {
			if err := send(s.addresses[i%2], mail, to); err != nil {
				t.Error(err)
			}
		})
	}
	running.Wait()
}

// The raw rows are stored when the queue turns out to be out of reach: as at a crash between them.
func TestMailThatCantBeQueuedIsNotAccepted(t *testing.T) {
	s := newSite(t, retention.Policy{})
	mail := compose("mail", 1_000)
	s.exec(t, "RENAME TABLE queue TO queue_away")
	err := send(s.addresses[0], mail, willing)
	require.ErrorContains(t, err, "451")
	require.Zero(t, s.count(t, "SELECT COUNT(*) FROM messages"))
	s.exec(t, "RENAME TABLE queue_away TO queue")
	require.NoError(t, send(s.addresses[0], mail, willing), "the client sends it again")
	s.deliver(t)
	require.Equal(t, 1, s.sink.count(willing, mail))
}

func (s *site) exec(t *testing.T, statement string) {
	t.Helper()
	_, err := s.db.ExecContext(t.Context(), statement)
	require.NoError(t, err)
}

func TestEachRecipientHasItsOwnFate(t *testing.T) {
	s := newSite(t, retention.Policy{RawDays: new(3), MessageDays: new(3)})
	old := s.today(t).AddDate(0, 0, -10)
	s.makeOldTable(t, old)
	s.clock.Store(&old)
	mail := compose("mail", 1_000)
	require.NoError(t, send(s.addresses[0], mail, willing, later, never))
	now := time.Now()
	s.clock.Store(&now)
	require.NoError(t, send(s.addresses[0], mail, willing))
	s.deliver(t)
	s.retain(t)
	require.Contains(t, s.tables(t), tableOf(old), "one mail is queued, and one is held")
	status := func(to string) int {
		return s.count(t, "SELECT COUNT(*) FROM messages WHERE timestamp < ? AND rcpt_to = ? AND raw_table IS NOT NULL", now.Unix()-1, to)
	}
	require.Equal(t, []int{0, 1, 1}, []int{status(willing), status(later), status(never)})
	require.Equal(t, 1, s.count(t, "SELECT COUNT(*) FROM messages WHERE held = 1 AND status = 'Held'"))
}

func TestMailArrivesAsItWasSent(t *testing.T) {
	s := newSite(t, retention.Policy{})
	mails := []string{
		"Subject: no body\r\n\r\n",
		"Subject: no empty line\r\n",
		"\r\nno headers\r\n",
		"Subject: =?utf-8?q?a broken?= \xff\r\n\r\n\xfe\xff 8 bits \x00\r\n",
		compose("an ordinary mail", 100_000),
	}
	for i, mail := range mails {
		require.NoError(t, send(s.addresses[i%2], mail, willing))
	}
	s.checkBooks(t)
	s.deliver(t)
	for _, mail := range mails {
		require.Equal(t, 1, s.sink.count(willing, mail), mail)
	}
}

func TestAddressesThatCantBeStoredAreRefused(t *testing.T) {
	s := newSite(t, retention.Policy{})
	for _, to := range []string{strings.Repeat("a", maxAddress) + "@example.net", "\xff@example.net"} {
		require.Error(t, send(s.addresses[0], compose("mail", 1_000), to))
	}
	require.Zero(t, s.count(t, "SELECT COUNT(*) FROM messages"))
}

func TestAStopFinishesWhatWasAccepted(t *testing.T) {
	s := newSite(t, retention.Policy{})
	ctx, stop := context.WithCancel(t.Context())
	output, out := io.Pipe()
	ended := make(chan error, 1)
	go func() {
		err := run(ctx, out, options{dsn: mysqltest.DSN(t, ""), database: s.name, sink: s.instances[0].Sink, every: time.Hour})
		ended <- errors.Join(err, out.Close())
	}()
	addresses := addresses(t, output)
	var mails []string
	for i := range 20 {
		mails = append(mails, compose(fmt.Sprint("mail ", i), 1_000))
		require.NoError(t, send(addresses[i%2], mails[i], willing))
	}
	stop()
	require.NoError(t, <-ended)
	s.deliver(t) // what the stop came before
	for _, mail := range mails {
		require.Equal(t, 1, s.sink.count(willing, mail))
	}
}

func TestSplitAndJoinKeepEveryByte(t *testing.T) {
	for name, raw := range map[string]string{
		"a mail":            "Subject: x\r\n\r\nbody\r\n\r\nmore\r\n",
		"no body":           "Subject: x\r\n\r\n",
		"no empty line":     "Subject: x\r\n",
		"no headers":        "\r\n\r\nbody",
		"nothing":           "",
		"line ends of Unix": "Subject: x\n\nbody",
	} {
		require.Equal(t, raw, string(join(split([]byte(raw)))), name)
	}
}
