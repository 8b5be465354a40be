package lease_test

import (
	"context"
	"database/sql"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mailretention/mailretention/internal/mysqlerr"
	"github.com/mailretention/mailretention/internal/mysqltest"
	"github.com/mailretention/mailretention/lease"
)

// useUp runs a query on every connection that the pool may have, until ctx ends.
func useUp(ctx context.Context, t testing.TB, db *sql.DB, connections int) (free func()) {
	t.Helper()
	db.SetMaxOpenConns(connections)
	ctx, cancel := context.WithCancel(ctx)
	var running sync.WaitGroup
	for range connections {
		conn, err := db.Conn(ctx)
		require.NoError(t, err)
		running.Go(func() {
			defer conn.Close()
			_, _ = conn.ExecContext(ctx, "DO SLEEP(60)") // until it is cut off
		})
	}
	return func() {
		cancel()
		running.Wait()
	}
}

func TestHeartbeatOnAPoolOfItsOwnRenewsWhileTheWorksPoolIsUsedUp(t *testing.T) {
	mysqltest.NoLeaks(t)
	work, name := mysqltest.DB(t)
	own := mysqltest.Open(t, name)
	own.SetMaxOpenConns(1)
	var seen events
	leases := provisioned(t, own, lease.Config{TTL: time.Second, OnEvent: seen.add})
	require.NoError(t, leases.Do(t.Context(), "x", func(ctx context.Context) error {
		defer useUp(ctx, t, work, 4)()
		pause(ctx, 2*time.Second)
		return context.Cause(ctx)
	}))
	require.True(t, seen.has(lease.EventRenewed))
	require.False(t, seen.has(lease.EventRenewFailed))
	require.Zero(t, own.Stats().InUse)
}

func TestHeartbeatOnASharedPoolThatIsUsedUpEndsTheWorkInTimeAndSaysWhy(t *testing.T) {
	mysqltest.NoLeaks(t)
	db, _ := mysqltest.DB(t)
	leases := provisioned(t, db, lease.Config{TTL: time.Second})
	begin := time.Now()
	err := leases.Do(t.Context(), "x", func(ctx context.Context) error {
		l, _ := lease.FromContext(ctx)
		free := useUp(context.WithoutCancel(ctx), t, db, 2)
		defer free()
		<-ctx.Done()
		require.ErrorContains(t, context.Cause(ctx), "pool was exhausted")
		require.Less(t, time.Since(begin), time.Second, "before the lease expires")
		require.ErrorIs(t, l.Check(0), lease.ErrLost)
		return nil
	})
	requireReason(t, err, lease.LostUnrenewed)
	require.Zero(t, db.Stats().InUse)
}

func TestLockWaitTimeoutInTheGuardRollsTheTransactionBackWhole(t *testing.T) {
	mysqltest.NoLeaks(t)
	db, name := mysqltest.DB(t)
	leases := provisioned(t, db, lease.Config{})
	createWork(t, db)
	impatient := mysqltest.Open(t, name, "innodb_lock_wait_timeout=1")
	require.NoError(t, leases.Do(t.Context(), "x", func(ctx context.Context) error {
		l, _ := lease.FromContext(ctx)
		other, err := db.BeginTx(ctx, nil)
		require.NoError(t, err)
		defer func() { require.NoError(t, other.Rollback()) }()
		_, err = other.ExecContext(ctx, "SELECT 1 FROM leases FOR UPDATE")
		require.NoError(t, err)
		begun, err := impatient.BeginTx(ctx, nil)
		require.NoError(t, err)
		_, err = begun.ExecContext(ctx, writeStatement(l.Token()))
		require.NoError(t, err)
		err = leases.Guard(ctx, begun)
		require.True(t, mysqlerr.Is(err, mysqlerr.LockWaitTimeout), "%v", err)
		require.NotErrorIs(t, err, lease.ErrLost)
		require.ErrorIs(t, begun.Commit(), sql.ErrTxDone)
		return nil
	}))
	require.Empty(t, written(t, db))
}

// A heartbeat between a transaction's snapshot and its guard must not fail the guard for good.
func TestGuardAfterARenewalSucceedsOrAsksForAnotherTry(t *testing.T) {
	mysqltest.NoLeaks(t)
	db, _ := mysqltest.DB(t)
	leases := provisioned(t, db, lease.Config{})
	require.NoError(t, leases.Do(t.Context(), "x", func(ctx context.Context) error {
		l, _ := lease.FromContext(ctx)
		for _, level := range []sql.IsolationLevel{sql.LevelReadCommitted, sql.LevelRepeatableRead} {
			tx, err := db.BeginTx(ctx, &sql.TxOptions{Isolation: level})
			require.NoError(t, err)
			_, err = tx.ExecContext(ctx, "SELECT * FROM leases")
			require.NoError(t, err)
			require.NoError(t, l.Renew(ctx))
			err = leases.Guard(ctx, tx)
			if level == sql.LevelReadCommitted || err == nil {
				require.NoError(t, err)
				require.NoError(t, tx.Commit())
				continue
			}
			require.NotErrorIs(t, err, lease.ErrLost)
			require.Equal(t, mysqlerr.Retry, mysqlerr.Classify(err))
		}
		return nil
	}))
}

func createWork(t testing.TB, db *sql.DB) {
	t.Helper()
	_, err := db.ExecContext(t.Context(), "CREATE TABLE work (id int AUTO_INCREMENT PRIMARY KEY, token bigint unsigned NOT NULL)")
	require.NoError(t, err)
}

// written returns the tokens of the committed rows, in commit order: a guard locks the lease until its transaction ends, and a
// successor inserts only after that.
func written(t testing.TB, db *sql.DB) (tokens []uint64) {
	t.Helper()
	rows, err := db.Query("SELECT token FROM work ORDER BY id")
	require.NoError(t, err)
	defer rows.Close()
	for rows.Next() {
		var token uint64
		require.NoError(t, rows.Scan(&token))
		tokens = append(tokens, token)
	}
	require.NoError(t, rows.Err())
	return tokens
}
