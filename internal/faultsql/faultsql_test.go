package faultsql_test

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"math"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"
	"github.com/stretchr/testify/require"

	"github.com/mailretention/mailretention/internal/faultsql"
	"github.com/mailretention/mailretention/internal/mysqltest"
)

func TestMain(m *testing.M) { mysqltest.Main(m) }

// open returns a pool with faults, and one without, on a new database with an empty table t (n INT PRIMARY KEY).
func open(t *testing.T, params ...string) (db, plain *sql.DB, faults *faultsql.Connector) {
	t.Helper()
	plain, name := mysqltest.DB(t)
	_, err := plain.ExecContext(t.Context(), "CREATE TABLE t (n INT PRIMARY KEY)")
	require.NoError(t, err)
	db, faults = connect(t, mysqltest.Connector(t, name, params...))
	return db, plain, faults
}

func connect(t *testing.T, connector driver.Connector) (*sql.DB, *faultsql.Connector) {
	t.Helper()
	faults := faultsql.New(connector)
	db := sql.OpenDB(faults)
	t.Cleanup(func() { require.NoError(t, db.Close()) })
	return db, faults
}

// rows returns how many rows of that number the table has.
func rows(t *testing.T, plain *sql.DB, n int) (count int) {
	t.Helper()
	require.NoError(t, plain.QueryRowContext(t.Context(), "SELECT COUNT(*) FROM t WHERE n=?", n).Scan(&count))
	return count
}

func TestEachStatementCountsOnce(t *testing.T) {
	for name, param := range map[string]string{
		"prepared by the driver": "interpolateParams=false",
		"placeholders filled in": "interpolateParams=true",
	} {
		t.Run(name, func(t *testing.T) {
			mysqltest.NoLeaks(t)
			db, _, faults := open(t, param)
			ctx := t.Context()
			must := func(_ any, err error) {
				t.Helper()
				require.NoError(t, err)
			}
			must(nil, db.PingContext(ctx))
			must(db.ExecContext(ctx, "INSERT INTO t VALUES (1)"))
			must(db.ExecContext(ctx, "INSERT INTO t VALUES (?)", 2))
			var n uint64
			must(nil, db.QueryRowContext(ctx, "SELECT COUNT(*) FROM t").Scan(&n))
			must(nil, db.QueryRowContext(ctx, "SELECT ? + 0", uint64(math.MaxUint64)).Scan(&n))
			require.Equal(t, uint64(math.MaxUint64), n, "which only the driver's own value checker lets through")
			prepared, err := db.PrepareContext(ctx, "DELETE FROM t WHERE n=?")
			require.NoError(t, err)
			must(prepared.ExecContext(ctx, 1))
			must(prepared.ExecContext(ctx, 2))
			must(nil, prepared.Close())
			tx, err := db.BeginTx(ctx, &sql.TxOptions{Isolation: sql.LevelReadCommitted})
			require.NoError(t, err)
			must(tx.ExecContext(ctx, "INSERT INTO t VALUES (?)", 3))
			must(nil, tx.Commit())
			tx, err = db.BeginTx(ctx, nil)
			require.NoError(t, err)
			must(nil, tx.Rollback())
			_, err = db.ExecContext(ctx, "INSERT INTO missing VALUES (?)", 4)
			require.Error(t, err)

			require.Equal(t, []string{
				"INSERT INTO t VALUES (1)", "INSERT INTO t VALUES (?)", "SELECT COUNT(*) FROM t", "SELECT ? + 0",
				"DELETE FROM t WHERE n=?", "DELETE FROM t WHERE n=?", "BEGIN", "INSERT INTO t VALUES (?)", "COMMIT", "BEGIN", "ROLLBACK",
				"INSERT INTO missing VALUES (?)",
			}, faults.Log())
			require.Equal(t, 12, faults.Count())
			faults.Reset()
			require.Zero(t, faults.Count())
		})
	}
}

// inserts are the ways in which one statement puts row 1 into the table.
func inserts(t *testing.T) map[string]func(ctx context.Context, db *sql.DB) error {
	ways := map[string]func(ctx context.Context, db *sql.DB) error{
		"text": func(ctx context.Context, db *sql.DB) error {
			_, err := db.ExecContext(ctx, "INSERT INTO t VALUES (1)")
			return err
		},
		"placeholder": func(ctx context.Context, db *sql.DB) error {
			_, err := db.ExecContext(ctx, "INSERT INTO t VALUES (?)", 1)
			return err
		},
		"prepared": func(ctx context.Context, db *sql.DB) error {
			s, err := db.PrepareContext(ctx, "INSERT INTO t VALUES (?)")
			if err != nil {
				return err
			}
			defer s.Close()
			_, err = s.ExecContext(ctx, 1)
			return err
		},
	}
	if mysqltest.IsMariaDB(t) { // MySQL has no RETURNING
		ways["query"] = func(ctx context.Context, db *sql.DB) error {
			var n int
			return db.QueryRowContext(ctx, "INSERT INTO t VALUES (?) RETURNING n", 1).Scan(&n)
		}
	}
	return ways
}

func insertInTransaction(ctx context.Context, db *sql.DB) error {
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }()
	if _, err := tx.ExecContext(ctx, "INSERT INTO t VALUES (?)", 1); err != nil {
		return err
	}
	return tx.Commit()
}

func TestFaults(t *testing.T) {
	for kind, want := range map[faultsql.Kind]struct {
		err  error
		rows int
		sent int // with what database/sql sends again by itself
	}{
		"":                  {nil, 1, 1},
		faultsql.FailBefore: {mysql.ErrInvalidConn, 0, 1},
		faultsql.LoseAnswer: {mysql.ErrInvalidConn, 1, 1},
		faultsql.Dead:       {mysql.ErrInvalidConn, 0, 1},
		faultsql.Cut:        {nil, 1, 2},
	} {
		for way, insert := range inserts(t) {
			t.Run(string(kind)+"/"+way, func(t *testing.T) {
				mysqltest.NoLeaks(t)
				db, plain, faults := open(t)
				faults.Arm(faultsql.Fault{Kind: kind})
				require.ErrorIs(t, insert(t.Context(), db), want.err)
				require.Equal(t, want.rows, rows(t, plain, 1))
				require.Equal(t, want.sent, faults.Count(), "%q", faults.Log())
				require.Zero(t, faults.Armed())
			})
		}
	}
}

func TestFaultsInATransaction(t *testing.T) {
	const begin, insert, commit = 1, 2, 3
	for name, c := range map[string]struct {
		fault faultsql.Fault
		err   error
		rows  int
	}{
		"begin fails":            {faultsql.Fault{At: begin, Kind: faultsql.FailBefore}, mysql.ErrInvalidConn, 0},
		"begin's answer is lost": {faultsql.Fault{At: begin, Kind: faultsql.LoseAnswer}, mysql.ErrInvalidConn, 0},
		"begin is sent again":    {faultsql.Fault{At: begin, Kind: faultsql.Cut}, nil, 1},
		"insert's answer is lost, and all is rolled back": {faultsql.Fault{At: insert, Kind: faultsql.LoseAnswer}, mysql.ErrInvalidConn, 0},
		"insert is not sent again":                        {faultsql.Fault{At: insert, Kind: faultsql.Cut}, driver.ErrBadConn, 0},
		"dead, the rollback too":                          {faultsql.Fault{At: insert, Kind: faultsql.Dead}, mysql.ErrInvalidConn, 0},
		"commit fails":                                    {faultsql.Fault{At: commit, Kind: faultsql.FailBefore}, mysql.ErrInvalidConn, 0},
		"commit's answer is lost":                         {faultsql.Fault{At: commit, Kind: faultsql.LoseAnswer}, mysql.ErrInvalidConn, 1},
		"commit's connection is cut":                      {faultsql.Fault{At: commit, Kind: faultsql.Cut}, mysql.ErrInvalidConn, 0},
	} {
		t.Run(name, func(t *testing.T) {
			mysqltest.NoLeaks(t)
			db, plain, faults := open(t)
			faults.Arm(c.fault)
			require.ErrorIs(t, insertInTransaction(t.Context(), db), c.err)
			require.Equal(t, c.rows, rows(t, plain, 1))
			require.Zero(t, faults.Armed())
		})
	}
}

func TestDeadUntilHealed(t *testing.T) {
	db, plain, faults := open(t)
	open, err := db.BeginTx(t.Context(), nil)
	require.NoError(t, err)
	_, err = open.ExecContext(t.Context(), "INSERT INTO t VALUES (1)")
	require.NoError(t, err)
	prepared, err := db.PrepareContext(t.Context(), "INSERT INTO t VALUES (?)")
	require.NoError(t, err)
	defer prepared.Close()

	faults.Arm(faultsql.Fault{Kind: faultsql.Dead, Text: "DO 0"})
	_, err = db.ExecContext(t.Context(), "DO 0")
	require.ErrorIs(t, err, mysql.ErrInvalidConn)
	count := faults.Count()

	_, err = db.ExecContext(t.Context(), "INSERT INTO t VALUES (2)")
	require.ErrorIs(t, err, mysql.ErrInvalidConn, "a new connection")
	_, err = prepared.ExecContext(t.Context(), 3)
	require.ErrorIs(t, err, mysql.ErrInvalidConn)
	require.ErrorIs(t, db.PingContext(t.Context()), mysql.ErrInvalidConn)
	_, err = db.BeginTx(t.Context(), nil)
	require.ErrorIs(t, err, mysql.ErrInvalidConn)
	_, err = open.ExecContext(t.Context(), "INSERT INTO t VALUES (4)")
	require.ErrorIs(t, err, mysql.ErrInvalidConn, "a connection that was open before")
	require.ErrorIs(t, open.Commit(), mysql.ErrInvalidConn)
	require.Equal(t, count, faults.Count(), "nothing of it was sent")

	faults.Heal()
	for n := range 5 {
		require.Zero(t, rows(t, plain, n))
	}
	_, err = db.ExecContext(t.Context(), "INSERT INTO t VALUES (5)")
	require.NoError(t, err)
	_, err = prepared.ExecContext(t.Context(), 6)
	require.NoError(t, err)
}

func TestServerErrorLeavesTheTransactionOpen(t *testing.T) {
	db, plain, faults := open(t)
	faults.Arm(faultsql.Fault{Kind: faultsql.ServerError, Number: 1205, Text: "(2)"})
	tx, err := db.BeginTx(t.Context(), nil)
	require.NoError(t, err)
	defer func() { _ = tx.Rollback() }()
	_, err = tx.ExecContext(t.Context(), "INSERT INTO t VALUES (1)")
	require.NoError(t, err)
	_, err = tx.ExecContext(t.Context(), "INSERT INTO t VALUES (2)")
	var refused *mysql.MySQLError
	require.ErrorAs(t, err, &refused)
	require.EqualValues(t, 1205, refused.Number)
	require.NoError(t, tx.Commit())
	require.Equal(t, 1, rows(t, plain, 1))
	require.Zero(t, rows(t, plain, 2))
}

func TestDelay(t *testing.T) {
	for way, insert := range inserts(t) {
		t.Run("ends with the context/"+way, func(t *testing.T) {
			db, plain, faults := open(t)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			faults.Arm(faultsql.Fault{Before: cancel, Delay: time.Hour})
			require.ErrorIs(t, insert(ctx, db), context.Canceled)
			require.Zero(t, rows(t, plain, 1))
		})
	}
	t.Run("is waited for", func(t *testing.T) {
		const delay = 20 * time.Millisecond
		db, plain, faults := open(t)
		faults.Arm(faultsql.Fault{Delay: delay})
		began := time.Now()
		require.NoError(t, inserts(t)["placeholder"](t.Context(), db))
		require.GreaterOrEqual(t, time.Since(began), delay)
		require.Equal(t, 1, rows(t, plain, 1))
	})
}

func TestHooksActAroundTheStatement(t *testing.T) {
	for way, insert := range inserts(t) {
		t.Run(way, func(t *testing.T) {
			db, plain, faults := open(t)
			before, after := -1, -1
			faults.Arm(faultsql.Fault{
				Before: func() { before = rows(t, plain, 1) },
				After:  func() { after = rows(t, plain, 1) },
				Kind:   faultsql.LoseAnswer,
			})
			require.Error(t, insert(t.Context(), db))
			require.Equal(t, []int{0, 1}, []int{before, after})
		})
	}
}

func TestFaultsAreTakenOneAStatement(t *testing.T) {
	db, plain, faults := open(t)
	faults.Arm(
		faultsql.Fault{At: 2, Text: "INSERT", Kind: faultsql.FailBefore},
		faultsql.Fault{At: 2, Text: "(2)", Kind: faultsql.LoseAnswer},
		faultsql.Fault{At: 3, Kind: faultsql.LoseAnswer},
	)
	for _, c := range []struct {
		statement string
		err       error
		armed     int
	}{
		{"INSERT INTO t VALUES (1)", nil, 3},
		{"INSERT INTO t VALUES (2)", mysql.ErrInvalidConn, 2},
		{"INSERT INTO t VALUES (2)", mysql.ErrInvalidConn, 1},
		{"INSERT INTO t VALUES (3)", mysql.ErrInvalidConn, 0},
		{"INSERT INTO t VALUES (4)", nil, 0},
	} {
		_, err := db.ExecContext(t.Context(), c.statement)
		require.ErrorIs(t, err, c.err, c.statement)
		require.Equal(t, c.armed, faults.Armed(), c.statement)
	}
	for n := 1; n <= 4; n++ {
		require.Equal(t, 1, rows(t, plain, n))
	}
	faults.Arm(faultsql.Fault{Kind: faultsql.Dead})
	faults.Reset()
	_, err := db.ExecContext(t.Context(), "INSERT INTO t VALUES (5)")
	require.NoError(t, err, "disarmed")
}

// childVariable holds the name of the database on which TestKillProcess kills itself.
const childVariable = "MAILRETENTION_TEST_CHILD"

func TestKillProcess(t *testing.T) {
	if name := os.Getenv(childVariable); name != "" {
		db, faults := connect(t, mysqltest.Connector(t, name))
		faults.Arm(faultsql.Fault{At: 2, Kind: faultsql.KillProcess})
		for range 2 {
			_, err := db.ExecContext(t.Context(), "INSERT INTO t SELECT COUNT(*) FROM t")
			require.NoError(t, err)
		}
		return
	}
	plain, name := mysqltest.DB(t)
	_, err := plain.ExecContext(t.Context(), "CREATE TABLE t (n INT PRIMARY KEY)")
	require.NoError(t, err)
	child := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestKillProcess$")
	child.Env = append(os.Environ(), childVariable+"="+name, "MAILRETENTION_DSN="+mysqltest.DSN(t, ""))
	out, err := child.CombinedOutput()
	var exit *exec.ExitError
	require.ErrorAs(t, err, &exit, "%s", out)
	status, ok := exit.Sys().(syscall.WaitStatus)
	require.True(t, ok)
	require.True(t, status.Signaled(), "%s", out)
	require.Equal(t, 1, rows(t, plain, 0))
	require.Zero(t, rows(t, plain, 1))
}

func TestStaleConnectionsAreNoticed(t *testing.T) {
	db, plain, faults := open(t)
	var id string
	require.NoError(t, db.QueryRowContext(t.Context(), "SELECT CONNECTION_ID()").Scan(&id))
	_, err := plain.ExecContext(t.Context(), "KILL "+id)
	require.NoError(t, err)
	require.Eventually(t, func() bool {
		var n int
		err := plain.QueryRowContext(t.Context(), "SELECT COUNT(*) FROM information_schema.processlist WHERE id="+id).Scan(&n)
		return err == nil && n == 0
	}, 10*time.Second, time.Millisecond)
	faults.Reset()
	_, err = db.ExecContext(t.Context(), "INSERT INTO t VALUES (1)")
	require.NoError(t, err)
	require.Equal(t, 1, faults.Count())
}

func TestManyGoroutinesShareTheFaults(t *testing.T) {
	mysqltest.NoLeaks(t)
	db, plain, faults := open(t)
	const workers, each, dies = 8, 25, 100
	faults.Arm(faultsql.Fault{At: dies, Kind: faultsql.Dead})
	var all sync.WaitGroup
	for w := range workers {
		all.Go(func() {
			for i := range each {
				_, _ = db.ExecContext(t.Context(), "INSERT INTO t VALUES (?)", w*each+i)
			}
		})
	}
	all.Wait()
	require.Equal(t, dies, faults.Count())
	var n int
	require.NoError(t, plain.QueryRowContext(t.Context(), "SELECT COUNT(*) FROM t").Scan(&n))
	require.Less(t, n, dies)
	require.GreaterOrEqual(t, n, dies-workers, "those of the other workers that were under way")
	require.Equal(t, strings.Repeat("INSERT INTO t VALUES (?)", dies), strings.Join(faults.Log(), ""))
}
