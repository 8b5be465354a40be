package mysqltest_test

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/mailretention/mailretention/internal/mariadb"
	"github.com/mailretention/mailretention/internal/mysqltest"
)

func TestMain(m *testing.M) { mysqltest.Main(m) }

func TestParamsReachTheSession(t *testing.T) {
	mysqltest.NoLeaks(t)
	db, name := mysqltest.DB(t, "sql_mode='ANSI_QUOTES'", "time_zone='+05:30'", "clientFoundRows=true")
	var database, mode, zone string
	require.NoError(t, db.QueryRowContext(t.Context(), "SELECT DATABASE(), @@sql_mode, @@time_zone").Scan(&database, &mode, &zone))
	require.Equal(t, name, database)
	require.Contains(t, mode, "ANSI_QUOTES")
	require.Equal(t, "+05:30", zone)
}

func TestDSNOfTheUsersServer(t *testing.T) {
	t.Setenv("MAILRETENTION_DSN", "u:p?a/ss@tcp(db:3307)/ignored?parseTime=true")
	require.Equal(t, "u:p?a/ss@tcp(db:3307)/a%2Fb%3Fc?parseTime=true&sql_mode=%27ANSI%27", mysqltest.DSN(t, "a/b?c", "sql_mode='ANSI'"))
	t.Setenv("MAILRETENTION_DSN", "u@tcp(db:3307)/")
	require.Equal(t, "u@tcp(db:3307)/?loc=UTC&charset=latin1", mysqltest.DSN(t, "", "loc=UTC", "charset=latin1"))
}

func TestDatabasesAreDroppedAfterTheTest(t *testing.T) {
	var names []string
	t.Run("inner", func(t *testing.T) {
		_, first := mysqltest.DB(t)
		db, second := mysqltest.DB(t)
		names = []string{first, second, mysqltest.Unique(t)}
		_, err := db.ExecContext(t.Context(), "CREATE DATABASE `"+names[2]+"`")
		require.NoError(t, err)
		require.Equal(t, 3, count(t, names))
	})
	require.Zero(t, count(t, names))
}

// count returns how many of the databases exist.
func count(t *testing.T, names []string) (n int) {
	t.Helper()
	query := "SELECT COUNT(*) FROM information_schema.schemata WHERE schema_name IN ('" + strings.Join(names, "','") + "')"
	require.NoError(t, mysqltest.Open(t, "").QueryRowContext(t.Context(), query).Scan(&n))
	return n
}

func TestServerIsThePrivateOne(t *testing.T) {
	t.Setenv("MAILRETENTION_DSN", "root@tcp(nowhere.invalid:1)/")
	require.NotContains(t, mysqltest.Server(t, mariadb.Options{}).DSN(""), "nowhere")
}

// recorder is a test that keeps what is reported to it, and cleans up when it is told to.
type recorder struct {
	testing.TB
	cleanups []func()
	reports  []string
}

func (r *recorder) Cleanup(f func()) { r.cleanups = append(r.cleanups, f) }
func (r *recorder) Errorf(format string, a ...any) {
	r.reports = append(r.reports, fmt.Sprintf(format, a...))
}

func TestNoLeaksReportsWhatStays(t *testing.T) {
	for name, ends := range map[string]bool{"a goroutine that ends in time": true, "one that stays": false} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := &recorder{TB: t}
				mysqltest.NoLeaks(r)
				stay := make(chan struct{})
				go staysUntil(stay)
				if ends {
					close(stay)
				} else {
					defer close(stay)
				}
				r.cleanups[0]()
				if ends {
					require.Empty(t, r.reports)
				} else {
					require.Len(t, r.reports, 1)
					require.Contains(t, r.reports[0], "staysUntil")
				}
			})
		})
	}
}

func staysUntil(stay chan struct{}) { <-stay }
