package benchmark

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"
	"github.com/stretchr/testify/require"

	"github.com/mailretention/mailretention/internal/mariadb"
	"github.com/mailretention/mailretention/internal/mysqltest"
)

const (
	serverVariable = "MAILRETENTION_DSN"
	filledIn       = "interpolateParams=true" // as the README advises: a placeholder costs no round trip
	idleConns      = 64                       // that a pool keeps: no benchmark measures connecting
	settleTimeout  = 10 * time.Minute
	settlePoll     = 100 * time.Millisecond
	settledPages   = 100 // of the buffer pool that are not on disk yet
)

// server is a running database server.
type server struct {
	dsn   func(database string) string
	admin *sql.DB       // without a database
	own   bool          // not the user's: its settings may be changed
	away  time.Duration // what a network adds to a round trip
}

// eachSetting runs fn on a server of its own for each of the settings, or on the one that MAILRETENTION_DSN names.
func eachSetting(b *testing.B, fn func(b *testing.B, s *server)) {
	if os.Getenv(serverVariable) != "" {
		b.Run("given", func(b *testing.B) { fn(b, sharedServer(b)) })
		return
	}
	for setting := range strings.SplitSeq(*settings, ",") {
		b.Run(setting, func(b *testing.B) {
			private := mysqltest.Server(b, mariadb.Options{Args: arguments(b, setting)})
			s := newServer(b, func(database string) string { return private.DSN(database) + "?" + filledIn })
			s.own = true
			fn(b, s)
		})
	}
}

// arguments of the private server. What is durable must be on disk, and the server's own place is in memory where there is room.
func arguments(b *testing.B, setting string) []string {
	common := []string{"--innodb-buffer-pool-size=256M"}
	switch setting {
	case "durable":
		return append(common, "--innodb-flush-log-at-trx-commit=1", "--innodb-flush-method=O_DIRECT", "--innodb-doublewrite=1", "--datadir="+b.TempDir())
	case "fast":
		return append(common, "--innodb-flush-log-at-trx-commit=0", "--innodb-flush-method=nosync", "--innodb-doublewrite=0")
	}
	b.Fatalf("-settings: %q is unknown, use durable or fast", setting)
	return nil
}

// sharedServer is the one that the package's tests share.
func sharedServer(t testing.TB) *server {
	return newServer(t, func(database string) string { return mysqltest.DSN(t, database, filledIn) })
}

func newServer(t testing.TB, dsn func(string) string) *server {
	s := &server{dsn: dsn}
	s.admin = s.open(t, "")
	return s
}

// open returns a pool that is closed after the test.
func (s *server) open(t testing.TB, database string) *sql.DB {
	t.Helper()
	db := sql.OpenDB(connector(t, s.dsn(database), s.away))
	db.SetMaxIdleConns(idleConns)
	t.Cleanup(func() { require.NoError(t, db.Close()) })
	return db
}

// prepare runs fn, which fills databases, without flushing each transaction. Then it waits until the server has done what it puts off:
// purging what was deleted and writing pages.
func (s *server) prepare(t testing.TB, fn func()) {
	t.Helper()
	if !s.own {
		fn()
		return
	}
	var asBefore string
	require.NoError(t, s.admin.QueryRowContext(t.Context(), selectAsBefore).Scan(&asBefore))
	execute(t, s.admin, hurry)
	fn()
	s.wait(t, func(history, pages int) bool { return history == 0 && pages < settledPages })
	execute(t, s.admin, asBefore)
}

// purge waits until the server has cleaned up after what was deleted.
func (s *server) purge(t testing.TB) {
	t.Helper()
	s.wait(t, func(history, _ int) bool { return history == 0 })
}

// wait waits until enough is true of what is left: transactions to clean up after, a large one counting as much as a small, and pages to write.
func (s *server) wait(t testing.TB, enough func(history, pages int) bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), settleTimeout)
	defer cancel()
	for {
		var history, pages int
		require.NoError(t, s.admin.QueryRowContext(ctx, selectBacklog).Scan(&history, &pages))
		if enough(history, pages) {
			return
		}
		time.Sleep(settlePoll)
	}
}

func (s *server) dropDatabase(t testing.TB, name string) {
	t.Helper()
	_, err := s.admin.ExecContext(context.Background(), dropDatabase(name)) // a test's context has ended when it cleans up
	require.NoError(t, err)
}

// connector is what pools are opened with, to wrap it. What is sent arrives later by what the server is away.
func connector(t testing.TB, dsn string, away time.Duration) driver.Connector {
	t.Helper()
	config, err := mysql.ParseDSN(dsn)
	require.NoError(t, err)
	if away > 0 {
		config.DialFunc = func(ctx context.Context, network, address string) (net.Conn, error) {
			conn, err := new(net.Dialer).DialContext(ctx, network, address)
			return distant{conn, away}, err
		}
	}
	connector, err := mysql.NewConnector(config)
	require.NoError(t, err)
	return connector
}

// distant is a connection to a server that is away.
type distant struct {
	net.Conn
	away time.Duration
}

func (d distant) Write(data []byte) (int, error) {
	time.Sleep(d.away)
	return d.Conn.Write(data)
}

func execute(t testing.TB, db *sql.DB, statement string, args ...any) {
	t.Helper()
	_, err := db.ExecContext(t.Context(), statement, args...)
	require.NoError(t, err, statement)
}

// column reads the only column of a query.
func column[T any](ctx context.Context, db *sql.DB, query string, args ...any) (values []T, err error) {
	rows, err := db.QueryContext(ctx, query, args...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var value T
		if err := rows.Scan(&value); err != nil {
			return nil, err
		}
		values = append(values, value)
	}
	return values, rows.Err()
}
