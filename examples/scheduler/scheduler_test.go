package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"regexp"
	"sync"
	"testing"
	"time"

	"github.com/go-co-op/gocron/v2"
	"github.com/jonboulle/clockwork"
	"github.com/stretchr/testify/require"

	"github.com/mailretention/mailretention/internal/mysqltest"
	"github.com/mailretention/mailretention/lease"
)

func TestMain(m *testing.M) { mysqltest.Main(m) }

// newReplicas makes two replicas on a database with old mail.
func newReplicas(t *testing.T) (all []*replica, database string) {
	t.Helper()
	db, database := mysqltest.DB(t)
	require.NoError(t, seed(t.Context(), db, database))
	for i := range 2 {
		r, err := newReplica(t.Context(), Config{
			Name: fmt.Sprintf("replica-%d", i+1), Database: database, MinHold: time.Hour,
			Work: mysqltest.Open(t, database), Leases: mysqltest.Open(t, database), Logger: slog.New(slog.DiscardHandler),
		})
		require.NoError(t, err)
		all = append(all, r)
	}
	return all, database
}

// sum adds up a metric's series over all replicas, those whose labels have these values.
func sum(t *testing.T, replicas []*replica, name string, values ...string) (total float64) {
	t.Helper()
	for _, r := range replicas {
		for _, s := range gather(t, r.registry)[name] {
			if s.has(values) {
				total += s.value
			}
		}
	}
	return total
}

// Both replicas come to the same moment. Whether they meet, or one comes when the other has finished, each task runs once.
func TestEachTaskRunsOnceANight(t *testing.T) {
	replicas, database := newReplicas(t)
	clock := clockwork.NewFakeClockAt(time.Date(2026, time.June, 3, 2, 59, 0, 0, time.UTC))
	var tasks sync.WaitGroup
	var serving sync.WaitGroup
	ctx, stop := context.WithCancel(t.Context())
	for _, r := range replicas {
		for i, inner := range r.tasks {
			tasks.Add(1)
			r.tasks[i].run = func(ctx context.Context) error {
				defer tasks.Done()
				return inner.run(ctx)
			}
		}
		serving.Go(func() {
			if err := r.serve(ctx, "0 3 * * *", gocron.WithClock(clock)); err != nil {
				t.Error(err)
			}
		})
	}
	require.NoError(t, clock.BlockUntilContext(t.Context(), 4), "two tasks wait on each replica")
	clock.Advance(time.Minute)
	tasks.Wait()
	stop()
	serving.Wait()

	for _, task := range []string{"retention", "statistics"} {
		require.Equal(t, 1.0, sum(t, replicas, "mailretention_task_runs_total", task, "done"), task)
		require.Equal(t, 1.0, sum(t, replicas, "mailretention_task_runs_total", task, "held"), task)
		require.Zero(t, sum(t, replicas, "mailretention_task_runs_total", task, "failed"), task)
	}
	for _, name := range []string{"retention/" + database, statisticsLease} {
		require.Equal(t, 1.0, sum(t, replicas, "mailretention_lease_events_total", name, string(lease.EventAcquired)), name)
		require.Equal(t, 1.0, sum(t, replicas, "mailretention_lease_events_total", name, string(lease.EventReleased)), name)
	}
	const tooOld = firstDay - rawDays
	require.Equal(t, 1.0, sum(t, replicas, "mailretention_runs_total", database, "done"))
	require.Equal(t, 1.0, sum(t, replicas, "mailretention_runs_total", database, "held"))
	require.Equal(t, float64(tooOld), sum(t, replicas, "mailretention_tables_total", database, "dropped"))
	require.Equal(t, float64(tooOld*mailsPerDay), sum(t, replicas, "mailretention_rows_total", database, "detached"))
	require.Equal(t, float64(tooOld*mailsPerDay*mailBytes), sum(t, replicas, "mailretention_freed_bytes_total"))
	require.Equal(t, float64((firstDay-lastDay+1-tooOld)*mailsPerDay*mailBytes), sum(t, replicas, "mailretention_raw_bytes"))
	require.InDelta(t, time.Now().Unix(), sum(t, replicas, "mailretention_last_success_timestamp_seconds"), time.Hour.Seconds(), "one has it, the other is at 0")
	require.Equal(t, 1.0, sum(t, replicas, "mailretention_run_duration_seconds"))
	require.Equal(t, float64(tooOld), sum(t, replicas, "mailretention_table_drop_duration_seconds"))
	require.Positive(t, sum(t, replicas, "mailretention_batch_duration_seconds"))
}

func TestATaskThatFailedIsDoneByTheNextReplica(t *testing.T) {
	replicas, database := newReplicas(t)
	db := mysqltest.Open(t, database)
	exec := func(statement string) {
		_, err := db.ExecContext(t.Context(), statement)
		require.NoError(t, err)
	}
	exec("RENAME TABLE stats_daily TO stats_away")
	statistics := func(r *replica) error { return r.tasks[1].run(t.Context()) }
	require.Error(t, statistics(replicas[0]))
	exec("RENAME TABLE stats_away TO stats_daily")
	require.NoError(t, statistics(replicas[1]), "work that failed doesn't make its lease rest")
	require.ErrorIs(t, statistics(replicas[0]), lease.ErrHeld, "work that succeeded does")
	require.Equal(t, 1.0, sum(t, replicas[:1], "mailretention_task_runs_total", "statistics", "failed"))
	require.Equal(t, 1.0, sum(t, replicas[1:], "mailretention_task_runs_total", "statistics", "done"))
}

func TestStatisticsCountYesterday(t *testing.T) {
	replicas, database := newReplicas(t)
	db := mysqltest.Open(t, database)
	var today int64
	require.NoError(t, db.QueryRowContext(t.Context(), "SELECT UNIX_TIMESTAMP() DIV 86400 * 86400").Scan(&today))
	for scope, times := range map[string][]int64{ // in and out of yesterday, whichever side of a midnight the task runs on
		"incoming": {today - 86_400, today - 1, today, today + 86_399, today - 86_401},
		"outgoing": {today - 1, today},
	} {
		for _, at := range times {
			_, err := db.ExecContext(t.Context(), "INSERT INTO messages (scope, timestamp) VALUES (?, ?)", scope, at)
			require.NoError(t, err)
		}
	}
	require.NoError(t, replicas[0].tasks[1].run(t.Context()))
	var day, incoming, outgoing int64
	require.NoError(t, db.QueryRowContext(t.Context(), "SELECT time, incoming, outgoing FROM stats_daily").Scan(&day, &incoming, &outgoing))
	require.Contains(t, []int64{today - 86_400, today}, day)
	require.Equal(t, []int64{2, 1}, []int64{incoming, outgoing})
}

// The lease is revoked while the work is in its transaction: the guard keeps it from being committed.
func TestWorkWithoutItsLeaseIsNotCommitted(t *testing.T) {
	_, database := newReplicas(t)
	leases, err := lease.New(mysqltest.Open(t, database), lease.Config{})
	require.NoError(t, err)
	work := mysqltest.Open(t, database)
	err = leases.Do(t.Context(), statisticsLease, func(ctx context.Context) error {
		held, _ := lease.FromContext(ctx)
		if err := leases.ForceRelease(ctx, held.Name(), held.Token()); err != nil {
			return err
		}
		return countYesterday(context.WithoutCancel(ctx), work, leases.Guard)
	})
	require.ErrorIs(t, err, lease.ErrLost)
	var rows int
	require.NoError(t, work.QueryRowContext(t.Context(), "SELECT COUNT(*) FROM stats_daily").Scan(&rows))
	require.Zero(t, rows)
}

func TestTheProgramServesItsMetricsAndStops(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	reader, out := io.Pipe()
	ended := make(chan error, 1)
	go func() {
		err := run(ctx, out, options{dsn: mysqltest.DSN(t, ""), database: mysqltest.Unique(t), at: everyMinute, minHold: demoMinHold})
		ended <- errors.Join(err, out.Close())
	}()
	read := bufio.NewScanner(reader)
	for found := 0; found < replicas && read.Scan(); {
		url := regexp.MustCompile(`http://\S+/metrics`).FindString(read.Text())
		if url == "" {
			continue
		}
		found++
		response, err := http.Get(url)
		require.NoError(t, err)
		body, err := io.ReadAll(response.Body)
		require.NoError(t, errors.Join(err, response.Body.Close()))
		require.Contains(t, string(body), `mailretention_task_runs_total{outcome="done",task="statistics"}`)
	}
	go io.Copy(io.Discard, reader) // what is logged to the end
	stop()
	require.NoError(t, <-ended)
}
