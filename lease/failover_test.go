package lease_test

import (
	"context"
	"database/sql"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mailretention/mailretention/internal/mariadb"
	"github.com/mailretention/mailretention/internal/mysqltest"
	"github.com/mailretention/mailretention/lease"
)

func TestServerThatIsKilledAndComesBackWithinTheTTLCostsNoLease(t *testing.T) {
	mysqltest.NoLeaks(t)
	s := mysqltest.Server(t, mariadb.Options{})
	leases := provisioned(t, onMail(t, s), lease.Config{TTL: 10 * time.Second, Interval: 500 * time.Millisecond})
	require.NoError(t, leases.Do(t.Context(), "x", func(ctx context.Context) error {
		l, _ := lease.FromContext(ctx)
		require.NoError(t, s.Kill())
		require.NoError(t, s.Restart(t.Context()))
		before, err := leases.Inspect(ctx, "x")
		require.NoError(t, err)
		require.Equal(t, l.Token(), before.Token)
		require.Eventually(t, func() bool {
			now, err := leases.Inspect(ctx, "x")
			return err == nil && now.Renewed.After(before.Renewed)
		}, 5*time.Second, 10*time.Millisecond, "the heartbeat renews on new connections")
		return context.Cause(ctx)
	}))
}

func TestServerThatIsKilledAndComesBackBeyondTheTTLEndsTheWorkInTime(t *testing.T) {
	mysqltest.NoLeaks(t)
	s := mysqltest.Server(t, mariadb.Options{})
	db := onMail(t, s)
	leases := provisioned(t, db, lease.Config{TTL: 2 * time.Second})
	begin := time.Now()
	err := leases.Do(t.Context(), "x", func(ctx context.Context) error {
		require.NoError(t, s.Kill())
		<-ctx.Done()
		require.Less(t, time.Since(begin), 2*time.Second)
		requireReason(t, context.Cause(ctx), lease.LostUnrenewed)
		return context.Cause(ctx)
	})
	require.ErrorIs(t, err, lease.ErrLost)
	require.NoError(t, s.Restart(t.Context()))
	l, err := newLeases(t, db, lease.Config{TTL: 2 * time.Second}).Wait(t.Context(), "x")
	require.NoError(t, err)
	require.NotEmpty(t, l.StolenFrom())
}

func onMail(t testing.TB, s *mariadb.Server) (db *sql.DB) {
	t.Helper()
	_, err := open(t, s.DSN("")).Exec("CREATE DATABASE mail")
	require.NoError(t, err)
	return open(t, s.DSN("mail"))
}

// As after a failover whose old primary has become a replica.
func TestServerThatBecomesReadOnlyIsLeftForAnotherConnection(t *testing.T) {
	mysqltest.NoLeaks(t)
	s := mysqltest.Server(t, mariadb.Options{Grants: true})
	onMail(t, s)
	root := open(t, s.DSN(""))
	set := func(statement string) {
		_, err := root.Exec(statement)
		require.NoError(t, err)
	}
	set("CREATE USER worker@localhost")
	set("GRANT SELECT, INSERT, UPDATE, CREATE ON mail.* TO worker@localhost")
	worker := open(t, asUser(t, s.DSN("mail"), "worker"))
	worker.SetMaxOpenConns(1)
	provisioned(t, worker, lease.Config{})
	id := func() (id int) {
		require.NoError(t, worker.QueryRow("SELECT CONNECTION_ID()").Scan(&id))
		return id
	}
	for _, c := range []struct {
		name string
		back bool
	}{{"for a moment", true}, {"for good", false}} {
		t.Run(c.name, func(t *testing.T) {
			set("SET GLOBAL read_only=0")
			begin, connection := time.Now(), id()
			failed := make(chan struct{}, 100)
			leases := newLeases(t, worker, lease.Config{TTL: 2 * time.Second, Interval: 200 * time.Millisecond, OnEvent: func(e lease.Event) {
				if e.Kind == lease.EventRenewFailed {
					failed <- struct{}{}
				}
			}})
			err := leases.Do(t.Context(), c.name, func(ctx context.Context) error {
				set("SET GLOBAL read_only=1")
				<-failed
				<-failed
				if c.back {
					set("SET GLOBAL read_only=0")
					pause(ctx, 2*time.Second)
				} else {
					<-ctx.Done()
					require.Less(t, time.Since(begin), 2*time.Second)
				}
				require.NotEqual(t, connection, id(), "the connection was dropped")
				return context.Cause(ctx)
			})
			if c.back {
				require.NoError(t, err)
				return
			}
			requireReason(t, err, lease.LostUnrenewed)
			require.ErrorContains(t, err, "1290")
		})
	}
}

// A connection whose clock was set by hand, and stands still: the worst clock that a contender can have.
func TestContenderWhoseClockStandsStillNeverStealsALiveLease(t *testing.T) {
	for _, c := range []struct{ name, timestamp string }{{"in the past", "1600000000"}, {"in the future", "1900000000"}} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel() // it waits for its leases to expire
			db, name := mysqltest.DB(t)
			cfg := lease.Config{TTL: time.Second}
			holder := provisioned(t, db, cfg)
			var seen events
			contender := newLeases(t, mysqltest.Open(t, name, "timestamp="+c.timestamp), lease.Config{TTL: time.Second, OnEvent: seen.add})
			live, end := context.WithTimeout(t.Context(), 2500*time.Millisecond)
			defer end()
			l, err := holder.Acquire(t.Context(), "x")
			require.NoError(t, err)
			work, cancel := l.Heartbeat(t.Context())
			require.ErrorIs(t, contender.Do(live, "x", nothing), lease.ErrHeld)
			require.NoError(t, live.Err(), "the next sign of life was enough, whatever the row's times look like")
			_, err = contender.Wait(live, "x")
			require.ErrorIs(t, err, lease.ErrHeld)
			require.NoError(t, work.Err())
			cancel() // it dies

			begin := time.Now()
			next, err := contender.Wait(t.Context(), "x")
			require.NoError(t, err)
			require.Less(t, time.Since(begin), 2*time.Second+time.Second/4, "twice the observation, and a poll")
			require.Greater(t, next.Token(), l.Token())
			require.True(t, seen.has(lease.EventClockAnomaly))
		})
	}
}
