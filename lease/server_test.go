package lease_test

import (
	"context"
	"database/sql"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"
	"github.com/stretchr/testify/require"

	"github.com/mailretention/mailretention/internal/faultsql"
	"github.com/mailretention/mailretention/internal/mariadb"
	"github.com/mailretention/mailretention/internal/mysqltest"
	"github.com/mailretention/mailretention/lease"
)

func newLeases(t testing.TB, db *sql.DB, cfg lease.Config) *lease.Leases {
	t.Helper()
	l, err := lease.New(db, cfg)
	require.NoError(t, err)
	return l
}

// provisioned returns leases of a database whose table is there. At the test's end no call may have kept a connection.
func provisioned(t testing.TB, db *sql.DB, cfg lease.Config) *lease.Leases {
	t.Helper()
	t.Cleanup(func() {
		require.Eventually(t, func() bool { return db.Stats().InUse == 0 }, 5*time.Second, time.Millisecond, "connections are still in use")
	})
	l := newLeases(t, db, cfg)
	require.NoError(t, l.Provision(t.Context()))
	return l
}

// faulty returns a pool whose statements are counted, and can be made to fail.
func faulty(t testing.TB, database string) (*sql.DB, *faultsql.Connector) {
	t.Helper()
	config, err := mysql.ParseDSN(mysqltest.DSN(t, database))
	require.NoError(t, err)
	connector, err := mysql.NewConnector(config)
	require.NoError(t, err)
	faults := faultsql.New(connector)
	db := sql.OpenDB(faults)
	t.Cleanup(func() { require.NoError(t, db.Close()) })
	return db, faults
}

func TestEachCallIsOneRoundTripAfterFirstUse(t *testing.T) {
	mysqltest.NoLeaks(t)
	db, name := mysqltest.DB(t)
	provisioned(t, db, lease.Config{})
	counted, faults := faulty(t, name)
	leases := newLeases(t, counted, lease.Config{})
	cost := func(what string, want int, do func() error) {
		t.Helper()
		faults.Reset()
		require.NoError(t, do())
		require.Equal(t, want, faults.Count(), "%s: %q", what, faults.Log())
	}
	var l *lease.Lease
	acquire := func() (err error) { l, err = leases.Acquire(t.Context(), "x"); return err }
	cost("the first acquire ever: session, update, read, insert", 4, acquire)
	cost("renew", 1, func() error { return l.Renew(t.Context()) })
	cost("release", 1, func() error { return l.Release(t.Context()) })
	cost("release again", 0, func() error { return l.Release(t.Context()) })
	cost("acquire", 1, acquire)
	held := func() error {
		_, err := leases.Acquire(t.Context(), "x")
		require.ErrorIs(t, err, lease.ErrHeld)
		return nil
	}
	cost("held", 2, held)
	cost("held, as seen before: only a look, which locks nothing", 1, held)
	cost("guard, in a transaction", 3, func() error {
		ctx, cancel := l.Heartbeat(t.Context())
		defer cancel()
		tx, err := counted.BeginTx(ctx, nil)
		require.NoError(t, err)
		require.NoError(t, leases.Guard(ctx, tx))
		return tx.Commit()
	})
	require.NoError(t, l.Release(t.Context()))
	cost("do", 2, func() error { return leases.Do(t.Context(), "x", nothing) })
}

func TestNamesThatCollationsCallEqualAreDifferentLeases(t *testing.T) {
	mysqltest.NoLeaks(t)
	db, _ := mysqltest.DB(t)
	leases := provisioned(t, db, lease.Config{})
	names := []string{"DB1", "db1", "db1 ", strings.Repeat("n", 255), "ü\xff'\\\"`\x00"}
	for _, name := range names {
		_, err := leases.Acquire(t.Context(), name)
		require.NoError(t, err, name)
	}
	infos, err := leases.List(t.Context())
	require.NoError(t, err)
	require.Len(t, infos, len(names))
	for _, name := range names {
		info, err := leases.Inspect(t.Context(), name)
		require.NoError(t, err)
		require.Equal(t, name, info.Name)
		require.True(t, info.Active)
	}
	for _, bad := range []string{"", strings.Repeat("n", 256)} {
		_, err := leases.Acquire(t.Context(), bad)
		require.ErrorContains(t, err, "the name")
		require.NotErrorIs(t, err, lease.ErrHeld)
	}
}

func TestInspectOfAnUnknownNameHasTheNameOnly(t *testing.T) {
	db, _ := mysqltest.DB(t)
	info, err := provisioned(t, db, lease.Config{}).Inspect(t.Context(), "nobody's")
	require.NoError(t, err)
	require.Equal(t, lease.Info{Name: "nobody's"}, info)
	infos, err := provisioned(t, db, lease.Config{}).List(t.Context())
	require.NoError(t, err)
	require.NotNil(t, infos)
	require.Empty(t, infos)
}

func TestMissingTableSaysToProvision(t *testing.T) {
	db, _ := mysqltest.DB(t)
	for _, name := range []string{"leases", "no-such-database.leases"} {
		_, err := newLeases(t, db, lease.Config{Table: name}).Acquire(t.Context(), "x")
		require.ErrorIs(t, err, lease.ErrNotProvisioned)
		require.ErrorContains(t, err, "Provision")
	}
	_, err := newLeases(t, mysqltest.Open(t, ""), lease.Config{}).Acquire(t.Context(), "x")
	require.ErrorContains(t, err, "no database is selected")
}

func TestProvisionTwiceAndSixteenAtOnce(t *testing.T) {
	mysqltest.NoLeaks(t)
	db, _ := mysqltest.DB(t)
	var running sync.WaitGroup
	errs := make([]error, 16)
	for i := range errs {
		leases := newLeases(t, db, lease.Config{})
		running.Go(func() { errs[i] = leases.Provision(t.Context()) })
	}
	running.Wait()
	for _, err := range errs {
		require.NoError(t, err)
	}
	l, err := provisioned(t, db, lease.Config{}).Acquire(t.Context(), "x")
	require.NoError(t, err)
	provisioned(t, db, lease.Config{})
	require.NoError(t, l.Renew(t.Context()), "a second Provision changes nothing")
}

func TestTableOfAnotherShapeIsAMismatchWithTheDifference(t *testing.T) {
	for _, c := range []struct{ change, says string }{
		{"MODIFY name varchar(100) NOT NULL", "column name"},
		{"DROP COLUMN ttl_us", "column ttl_us"},
		{"MODIFY expires_at datetime NOT NULL", "column expires_at"},
		{"MODIFY token int NOT NULL", "column token"},
		{"DROP PRIMARY KEY", "PRIMARY KEY"},
		{"DROP PRIMARY KEY, ADD PRIMARY KEY (name, token)", "column token"},
		{"ADD extra int NOT NULL", "column extra"},
		{"ENGINE=MyISAM", "InnoDB"},
		{"ADD extra int NOT NULL DEFAULT 1, ADD more int, ADD INDEX (owner)", ""},
	} {
		t.Run(c.change, func(t *testing.T) {
			db, _ := mysqltest.DB(t)
			leases := provisioned(t, db, lease.Config{})
			_, err := db.Exec("ALTER TABLE leases " + c.change)
			require.NoError(t, err)
			err = leases.Provision(t.Context())
			if c.says == "" {
				require.NoError(t, err)
				_, err = leases.Acquire(t.Context(), "x")
				require.NoError(t, err)
				return
			}
			require.ErrorIs(t, err, lease.ErrSchemaMismatch)
			require.ErrorContains(t, err, c.says)
		})
	}
}

func TestMissingRightsAreNamed(t *testing.T) {
	mysqltest.NoLeaks(t)
	s := mysqltest.Server(t, mariadb.Options{Grants: true})
	root := open(t, s.DSN(""))
	for _, statement := range []string{
		"CREATE DATABASE mail", "CREATE USER worker@localhost", "GRANT SELECT ON mail.* TO worker@localhost",
	} {
		_, err := root.Exec(statement)
		require.NoError(t, err)
	}
	worker := open(t, asUser(t, s.DSN("mail"), "worker"))
	leases := newLeases(t, worker, lease.Config{})
	require.ErrorContains(t, leases.Provision(t.Context()), "CREATE")
	provisioned(t, open(t, s.DSN("mail")), lease.Config{})
	require.NoError(t, leases.Provision(t.Context()), "the table is there: CREATE isn't needed")
	_, err := leases.Acquire(t.Context(), "x")
	require.ErrorContains(t, err, "INSERT and UPDATE on `mail`.`leases`")
}

// open returns a pool that doesn't print that a server has gone, which these tests do on purpose.
func open(t testing.TB, dsn string) *sql.DB {
	t.Helper()
	config, err := mysql.ParseDSN(dsn)
	require.NoError(t, err)
	config.Logger = &mysql.NopLogger{}
	connector, err := mysql.NewConnector(config)
	require.NoError(t, err)
	db := sql.OpenDB(connector)
	t.Cleanup(func() { _ = db.Close() })
	return db
}

func asUser(t testing.TB, dsn, user string) string {
	t.Helper()
	config, err := mysql.ParseDSN(dsn)
	require.NoError(t, err)
	config.User = user
	return config.FormatDSN()
}

func TestTokenGrowsBeyondThatOfARestoredTableAndIsRefusedFrom2To61(t *testing.T) {
	db, _ := mysqltest.DB(t)
	leases := provisioned(t, db, lease.Config{})
	token := func() uint64 {
		l, err := leases.Acquire(t.Context(), "x")
		require.NoError(t, err)
		require.NoError(t, l.Release(t.Context()))
		return l.Token()
	}
	first := token()
	require.InDelta(t, time.Now().UnixMicro(), first, float64(time.Minute.Microseconds()), "microseconds since 1970")
	for range 3 {
		_, err := db.Exec("DELETE FROM leases") // as a backup of yesterday would
		require.NoError(t, err)
		next := token()
		require.Greater(t, next, first)
		first = next
	}
	_, err := db.Exec("UPDATE leases SET token=(1<<61)-2")
	require.NoError(t, err)
	require.Equal(t, uint64(1<<61-1), token())
	_, err = leases.Acquire(t.Context(), "x")
	require.ErrorContains(t, err, "2^61")
}

func TestEachStatementMayLoseItsAnswerOrItsConnection(t *testing.T) {
	mysqltest.NoLeaks(t)
	db, name := mysqltest.DB(t)
	provisioned(t, db, lease.Config{})
	pool, faults := faulty(t, name)
	for _, kind := range []faultsql.Kind{faultsql.LoseAnswer, faultsql.FailBefore, faultsql.Cut} {
		for n := 1; ; n++ {
			faults.Reset()
			faults.Arm(faultsql.Fault{At: n, Kind: kind})
			leases := newLeases(t, pool, lease.Config{})
			lock := fmt.Sprint(kind, n)
			err := leases.Do(t.Context(), lock, func(ctx context.Context) error {
				l, _ := lease.FromContext(ctx)
				return l.Renew(ctx)
			})
			require.NoError(t, err, "%s at statement %d of %q", kind, n, faults.Log())
			info, err := leases.Inspect(t.Context(), lock)
			require.NoError(t, err)
			require.False(t, info.Active, "released")
			if faults.Armed() > 0 {
				break
			}
		}
	}
}
