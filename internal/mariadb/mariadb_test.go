package mariadb_test

import (
	"context"
	"database/sql"
	"fmt"
	"net"
	"sync"
	"testing"

	"github.com/go-sql-driver/mysql"
	"github.com/stretchr/testify/require"

	"github.com/mailretention/mailretention/internal/mariadb"
	"github.com/mailretention/mailretention/internal/mysqltest"
)

func TestMain(m *testing.M) { mysqltest.Main(m) }

func open(t *testing.T, dsn string) *sql.DB {
	t.Helper()
	config, err := mysql.ParseDSN(dsn)
	require.NoError(t, err)
	config.Logger = &mysql.NopLogger{} // lost connections are expected here
	connector, err := mysql.NewConnector(config)
	require.NoError(t, err)
	db := sql.OpenDB(connector)
	t.Cleanup(func() { _ = db.Close() }) // it fails when the server has gone
	return db
}

func exec(t *testing.T, db *sql.DB, statements ...string) {
	t.Helper()
	for _, s := range statements {
		_, err := db.ExecContext(t.Context(), s)
		require.NoError(t, err, s)
	}
}

func read[T any](t *testing.T, db *sql.DB, query string) (value T) {
	t.Helper()
	require.NoError(t, db.QueryRowContext(t.Context(), query).Scan(&value), query)
	return value
}

func TestWhatWasCommittedSurvivesKill(t *testing.T) {
	mysqltest.NoLeaks(t)
	s := mysqltest.Server(t, mariadb.Options{})
	exec(t, open(t, s.DSN("")), "CREATE DATABASE `a/b?c`")
	db := open(t, s.DSN("a/b?c"))
	exec(t, db, "CREATE TABLE t (n INT PRIMARY KEY, b LONGBLOB)")
	committed := 0
	for range 3 {
		writing, ended := make(chan struct{}), make(chan struct{})
		go func() {
			defer close(ended)
			for n := 1; ; n++ {
				if _, err := db.ExecContext(t.Context(), "INSERT INTO t VALUES (?, REPEAT('x', 100000))", committed); err != nil {
					return
				}
				committed++
				if n == 20 {
					close(writing)
				}
			}
		}()
		select {
		case <-writing:
		case <-ended:
			require.FailNow(t, "the writer failed before the server was killed")
		}
		require.NoError(t, s.Kill())
		<-ended
		require.Error(t, db.PingContext(t.Context()))
		require.NoError(t, s.Restart(t.Context()))
		found := read[int](t, db, "SELECT COUNT(*) FROM t WHERE LENGTH(b)=100000")
		require.Contains(t, []int{committed, committed + 1}, found, "all that was acknowledged, and at most the one whose answer was lost")
		committed = found
	}
}

func TestRestartWhileItRuns(t *testing.T) {
	s := mysqltest.Server(t, mariadb.Options{})
	exec(t, open(t, s.DSN("")), "CREATE DATABASE d")
	require.NoError(t, s.Restart(t.Context()))
	exec(t, open(t, s.DSN("d")), "CREATE TABLE t (n INT)")
}

func TestTwoStartAtOnce(t *testing.T) {
	mysqltest.NoLeaks(t)
	var both sync.WaitGroup
	for range 2 {
		both.Go(func() {
			s, err := mariadb.Start(t.Context(), mariadb.Options{})
			if err == nil {
				err = s.Close()
			}
			if err != nil {
				t.Error(err)
			}
		})
	}
	both.Wait()
}

func TestGrantsAreChecked(t *testing.T) {
	s := mysqltest.Server(t, mariadb.Options{Grants: true, Port: freePort(t)})
	exec(t, open(t, s.DSN("")), "CREATE USER u@localhost IDENTIFIED BY 'p'", "CREATE DATABASE d")
	config, err := mysql.ParseDSN(s.DSN("d"))
	require.NoError(t, err)
	config.User, config.Passwd = "u", "p"
	var denied *mysql.MySQLError
	require.ErrorAs(t, open(t, config.FormatDSN()).PingContext(t.Context()), &denied)
	require.EqualValues(t, 1044, denied.Number)
}

func TestArgsOverride(t *testing.T) {
	s := mysqltest.Server(t, mariadb.Options{Args: []string{"--max-connections=77"}})
	require.Equal(t, 77, read[int](t, open(t, s.DSN("")), "SELECT @@max_connections"))
}

func TestPort(t *testing.T) {
	for _, grants := range []bool{false, true} {
		t.Run(fmt.Sprintf("grants %t", grants), func(t *testing.T) {
			port := freePort(t)
			s := mysqltest.Server(t, mariadb.Options{Port: port, Grants: grants})
			db := open(t, fmt.Sprintf("root@tcp(127.0.0.1:%d)/", port))
			require.Equal(t, port, read[int](t, db, "SELECT @@port"))
			require.NoError(t, s.Restart(t.Context()))
			require.Equal(t, port, read[int](t, db, "SELECT @@port"))
		})
	}
}

func TestFailedStartSaysWhy(t *testing.T) {
	mysqltest.NoLeaks(t)
	_, err := mariadb.Start(t.Context(), mariadb.Options{Args: []string{"--no-such-option"}})
	require.ErrorContains(t, err, "unknown option '--no-such-option'")

	ended, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = mariadb.Start(ended, mariadb.Options{})
	require.ErrorIs(t, err, context.Canceled)
}

func freePort(t *testing.T) int {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port
}
