package mysqlerr_test

import (
	"context"
	"database/sql"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"
	"github.com/stretchr/testify/require"

	"github.com/mailretention/mailretention/internal/mariadb"
	"github.com/mailretention/mailretention/internal/mysqlerr"
	"github.com/mailretention/mailretention/internal/mysqltest"
)

type execer interface {
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
}

func must(t *testing.T, on execer, statements ...string) {
	t.Helper()
	for _, s := range statements {
		_, err := on.ExecContext(t.Context(), s)
		require.NoError(t, err, s)
	}
}

func fails(t *testing.T, on execer, want uint16, class mysqlerr.Class, statement string) {
	t.Helper()
	_, err := on.ExecContext(t.Context(), statement)
	require.Error(t, err, statement)
	require.Equal(t, want, mysqlerr.Number(err), "%s: %v", statement, err)
	require.Equal(t, class, mysqlerr.Classify(err), statement)
}

func begin(t *testing.T, db *sql.DB) *sql.Tx {
	t.Helper()
	tx, err := db.BeginTx(t.Context(), nil)
	require.NoError(t, err)
	t.Cleanup(func() { _ = tx.Rollback() })
	return tx
}

// table returns a pool on a database with a table t of the rows 1 and 2, in a session whose lock waits are short.
func table(t *testing.T) *sql.DB {
	t.Helper()
	db, _ := mysqltest.DB(t, "innodb_lock_wait_timeout=1")
	must(t, db, "CREATE TABLE t (n INT PRIMARY KEY, s VARCHAR(3)) ENGINE=InnoDB", "INSERT INTO t (n) VALUES (1), (2)")
	return db
}

// stays reports whether the transaction's insert of row 3 is still there.
func stays(t *testing.T, tx *sql.Tx) bool {
	t.Helper()
	var n int
	require.NoError(t, tx.QueryRowContext(t.Context(), "SELECT COUNT(*) FROM t WHERE n=3").Scan(&n))
	return n == 1
}

func TestNumbersOfStatements(t *testing.T) {
	db := table(t)
	must(t, db, "CREATE TABLE full (id BIGINT UNSIGNED AUTO_INCREMENT PRIMARY KEY) AUTO_INCREMENT=18446744073709551615 ENGINE=InnoDB")
	for _, c := range []struct {
		statement string
		number    uint16
		class     mysqlerr.Class
	}{
		{"DROP TABLE missing", mysqlerr.UnknownTable, ""},
		{"DELETE FROM missing", mysqlerr.NoSuchTable, mysqlerr.Final},
		{"UPDATE t SET missing=1", mysqlerr.UnknownColumn, mysqlerr.Final},
		{"INSERT INTO t (n) VALUES (1)", mysqlerr.Duplicate, ""},
		{"INSERT INTO t VALUES (4, 'four')", mysqlerr.DataTooLong, mysqlerr.Final},
		{"INSERT INTO full VALUES (NULL)", mysqlerr.AutoincReadFailed, ""},
		{"KILL 4294967295", mysqlerr.NoSuchThread, ""},
	} {
		fails(t, db, c.number, c.class, c.statement)
	}
	err := mysqltest.Open(t, mysqltest.Unique(t)).PingContext(t.Context())
	require.EqualValues(t, mysqlerr.BadDatabase, mysqlerr.Number(err))

	readOnly, err := db.BeginTx(t.Context(), &sql.TxOptions{ReadOnly: true})
	require.NoError(t, err)
	defer func() { _ = readOnly.Rollback() }()
	fails(t, readOnly, 1792, mysqlerr.NotWritable, "DELETE FROM t")
}

func TestDeadlockRollsBackTheTransaction(t *testing.T) {
	db := table(t)
	first, second := begin(t, db), begin(t, db)
	must(t, first, "INSERT INTO t (n) VALUES (4)", "INSERT INTO t (n) VALUES (5)", "UPDATE t SET s='a' WHERE n=1") // more to undo, so the second is the victim
	must(t, second, "INSERT INTO t (n) VALUES (3)", "UPDATE t SET s='b' WHERE n=2")
	waited := make(chan error)
	go func() {
		_, err := first.ExecContext(t.Context(), "UPDATE t SET s='a' WHERE n=2")
		waited <- err
	}()
	fails(t, second, mysqlerr.Deadlock, mysqlerr.Retry, "UPDATE t SET s='b' WHERE n=1")
	require.NoError(t, <-waited)
	require.False(t, stays(t, second))
}

func TestLockWaitTimeoutRollsBackTheStatementAlone(t *testing.T) {
	db := table(t)
	must(t, begin(t, db), "UPDATE t SET s='a' WHERE n=1")
	tx := begin(t, db)
	must(t, tx, "INSERT INTO t (n) VALUES (3)")
	fails(t, tx, mysqlerr.LockWaitTimeout, mysqlerr.Busy, "UPDATE t SET s='b' WHERE n=1")
	require.True(t, stays(t, tx))

	number := uint16(mysqlerr.LockNotAvailable)
	if mysqltest.IsMariaDB(t) {
		number = mysqlerr.LockWaitTimeout
	}
	fails(t, tx, number, mysqlerr.Busy, "SELECT * FROM t WHERE n=1 FOR UPDATE NOWAIT")
	require.True(t, stays(t, tx))
}

func TestChangedSinceReadRollsBackTheTransaction(t *testing.T) {
	if !mysqltest.IsMariaDB(t) {
		t.Skip("MySQL has no innodb_snapshot_isolation")
	}
	db := table(t)
	snapshot, err := db.Conn(t.Context())
	require.NoError(t, err)
	defer snapshot.Close()
	must(t, snapshot, "SET SESSION innodb_snapshot_isolation=ON")
	tx, err := snapshot.BeginTx(t.Context(), nil)
	require.NoError(t, err)
	defer func() { _ = tx.Rollback() }()
	must(t, tx, "SELECT * FROM t")
	must(t, tx, "INSERT INTO t (n) VALUES (3)")
	must(t, db, "UPDATE t SET s='a' WHERE n=1")
	fails(t, tx, mysqlerr.ChangedSinceRead, mysqlerr.Retry, "UPDATE t SET s='b' WHERE n=1")
	require.False(t, stays(t, tx))
}

func TestKilledIsAmbiguous(t *testing.T) {
	for _, kill := range []string{"KILL QUERY ", "KILL CONNECTION "} {
		t.Run(kill, func(t *testing.T) {
			db := table(t)
			must(t, begin(t, db), "UPDATE t SET s='a' WHERE n=1")
			victim, err := mysqltest.Open(t, databaseOf(t, db), "innodb_lock_wait_timeout=60").Conn(t.Context())
			require.NoError(t, err)
			defer victim.Close()
			var id string
			require.NoError(t, victim.QueryRowContext(t.Context(), "SELECT CONNECTION_ID()").Scan(&id))
			waited := make(chan error)
			go func() {
				_, err := victim.ExecContext(t.Context(), "UPDATE t SET s='b' WHERE n=1")
				waited <- err
			}()
			require.Eventually(t, func() bool {
				var n int
				err := db.QueryRowContext(t.Context(), "SELECT COUNT(*) FROM information_schema.processlist WHERE id="+id+" AND info LIKE 'UPDATE%'").Scan(&n)
				return err == nil && n == 1
			}, 10*time.Second, time.Millisecond)
			must(t, db, kill+id)
			err = <-waited
			require.Error(t, err)
			require.Equal(t, mysqlerr.Ambiguous, mysqlerr.Classify(err), "%v", err)
		})
	}
}

func databaseOf(t *testing.T, db *sql.DB) (name string) {
	t.Helper()
	require.NoError(t, db.QueryRowContext(t.Context(), "SELECT DATABASE()").Scan(&name))
	return name
}

func TestStatementTimeoutIsAmbiguous(t *testing.T) {
	if mysqltest.IsMariaDB(t) {
		fails(t, table(t), mysqlerr.StatementTimeout, mysqlerr.Ambiguous, "SET STATEMENT max_statement_time=0.01 FOR SELECT SLEEP(60) FROM t")
		return
	}
	fails(t, table(t), mysqlerr.QueryTimeout, mysqlerr.Ambiguous,
		"SELECT /*+ MAX_EXECUTION_TIME(10) */ COUNT(*) FROM information_schema.columns a, information_schema.columns b, information_schema.columns c")
}

func TestNumbersOfAServerThatRefuses(t *testing.T) {
	s := mysqltest.Server(t, mariadb.Options{Grants: true, Args: []string{"--max-connections=10", "--log-bin", "--binlog-format=STATEMENT"}})
	root, err := sql.Open("mysql", s.DSN(""))
	require.NoError(t, err)
	defer root.Close()
	must(t, root, "CREATE DATABASE d", "CREATE DATABASE other", "CREATE TABLE d.t (n INT, secret INT) ENGINE=InnoDB", "CREATE TABLE d.hidden (n INT)",
		"CREATE USER u@localhost IDENTIFIED BY 'right'", "GRANT SELECT (n), INSERT, DELETE, DROP ON d.t TO u@localhost",
		"CREATE USER one@localhost WITH MAX_USER_CONNECTIONS 1")
	as := func(user, password, database string) *sql.DB {
		config, err := mysql.ParseDSN(s.DSN(database))
		require.NoError(t, err)
		config.User, config.Passwd, config.Logger = user, password, &mysql.NopLogger{}
		connector, err := mysql.NewConnector(config)
		require.NoError(t, err)
		db := sql.OpenDB(connector)
		t.Cleanup(func() { _ = db.Close() })
		return db
	}
	refused := func(err error, number uint16, class mysqlerr.Class) {
		t.Helper()
		require.Equal(t, number, mysqlerr.Number(err), "%v", err)
		require.Equal(t, class, mysqlerr.Classify(err))
	}
	refused(as("u", "wrong", "").PingContext(t.Context()), mysqlerr.AccessDenied, mysqlerr.Final)
	refused(as("u", "right", "other").PingContext(t.Context()), mysqlerr.DatabaseDenied, mysqlerr.Final)

	u := as("u", "right", "d")
	fails(t, u, mysqlerr.TableDenied, mysqlerr.Final, "SELECT * FROM hidden")
	fails(t, u, mysqlerr.ColumnDenied, mysqlerr.Final, "SELECT secret FROM t")
	fails(t, u, mysqlerr.SpecialDenied, mysqlerr.Final, "SET GLOBAL read_only=ON")

	committed, err := u.BeginTx(t.Context(), &sql.TxOptions{Isolation: sql.LevelReadCommitted})
	require.NoError(t, err)
	fails(t, committed, mysqlerr.BinlogStatementOnly, "", "INSERT INTO t VALUES (1, 2)")
	require.NoError(t, committed.Rollback())

	must(t, root, "SET GLOBAL read_only=ON")
	fails(t, u, 1290, mysqlerr.NotWritable, "DELETE FROM t")

	one, err := as("one", "", "").Conn(t.Context())
	require.NoError(t, err)
	refused(as("one", "", "").PingContext(t.Context()), 1226, mysqlerr.BackOff)
	require.NoError(t, one.Close())

	for {
		c, err := u.Conn(t.Context())
		if err != nil {
			refused(err, 1040, mysqlerr.BackOff)
			break
		}
		defer c.Close()
	}

	require.NoError(t, s.Kill())
	_, err = u.ExecContext(t.Context(), "DELETE FROM t")
	require.Equal(t, mysqlerr.Ambiguous, mysqlerr.Classify(err), "%v", err)
}
