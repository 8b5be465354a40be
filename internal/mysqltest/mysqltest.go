// Package mysqltest gives tests databases on a real server: a private MariaDB that all tests of a package share,
// or the server that the environment variable MAILRETENTION_DSN names, for example root@tcp(127.0.0.1:3306)/.
//
// A package that uses it has
//
//	func TestMain(m *testing.M) { mysqltest.Main(m) }
package mysqltest

import (
	"context"
	"crypto/rand"
	"database/sql"
	"database/sql/driver"
	"fmt"
	"net/url"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"

	"github.com/mailretention/mailretention/internal/mariadb"
	"github.com/mailretention/mailretention/internal/sqlname"
)

const (
	serverVariable = "MAILRETENTION_DSN"
	startTimeout   = 3 * time.Minute  // a first download of the server included
	dropTimeout    = 30 * time.Second // a database that is still locked then was left in use by its test
)

// shared is the server that Main closes, started by the first test that needs it.
var shared struct {
	sync.Mutex
	server *mariadb.Server
	err    error
}

// Main runs the package's tests, closes the shared server and exits.
func Main(m *testing.M) {
	code := m.Run()
	if shared.server != nil {
		if err := shared.server.Close(); err != nil {
			fmt.Fprintln(os.Stderr, "close the tests' server:", err)
			code = 1
		}
	}
	os.Exit(code)
}

// DB returns a pool on a new, empty database and the database's name. Both are gone after the test.
// Params are as in [DSN].
func DB(t testing.TB, params ...string) (db *sql.DB, name string) {
	t.Helper()
	name = Unique(t)
	exec(t, "CREATE DATABASE "+quote(t, name)+" CHARACTER SET utf8mb4")
	return Open(t, name, params...), name
}

// Open returns a pool on the database, "" for none, that is closed after the test. Params are as in [DSN].
func Open(t testing.TB, database string, params ...string) *sql.DB {
	t.Helper()
	db := sql.OpenDB(Connector(t, database, params...))
	t.Cleanup(func() { _ = db.Close() }) // it fails when the server has gone
	return db
}

// Connector returns what [Open] opens its pool with, to wrap it. The driver doesn't log connections that are lost on purpose.
func Connector(t testing.TB, database string, params ...string) driver.Connector {
	t.Helper()
	config, err := mysql.ParseDSN(DSN(t, database, params...))
	if err != nil {
		t.Fatal(err)
	}
	config.Logger = &mysql.NopLogger{}
	connector, err := mysql.NewConnector(config)
	if err != nil {
		t.Fatal(err)
	}
	return connector
}

// DSN returns the data source name of a database, "" for none, on the tests' server. Params are added to it: the driver's
// parameters and the server's session variables, each as key=value with the value as it is meant, such as "sql_mode='ANSI_QUOTES'".
func DSN(t testing.TB, database string, params ...string) string {
	t.Helper()
	config, err := mysql.ParseDSN(server(t))
	if err != nil {
		t.Fatalf("%s: %v", serverVariable, err)
	}
	config.DBName = database
	dsn, separator := config.FormatDSN(), "?"
	if strings.Contains(dsn[strings.LastIndex(dsn, "/"):], separator) {
		separator = "&"
	}
	for _, param := range params {
		key, value, _ := strings.Cut(param, "=")
		dsn += separator + key + "=" + url.QueryEscape(value)
		separator = "&"
	}
	return dsn
}

// Unique returns the name of a database that doesn't exist, on this server or in another process, and drops it after the test.
func Unique(t testing.TB) string {
	t.Helper()
	name := "mailretention-test-" + strings.ToLower(rand.Text())
	t.Cleanup(func() { exec(t, "DROP DATABASE IF EXISTS "+quote(t, name)) })
	return name
}

// IsMariaDB reports whether the tests' server is MariaDB rather than MySQL.
func IsMariaDB(t testing.TB) bool {
	t.Helper()
	var version string
	if err := Open(t, "").QueryRowContext(t.Context(), "SELECT VERSION()").Scan(&version); err != nil {
		t.Fatal(err)
	}
	return strings.Contains(version, "MariaDB")
}

// Server returns a server of the test's own, with nothing in it, whatever MAILRETENTION_DSN says. It is closed after the test.
func Server(t testing.TB, options mariadb.Options) *mariadb.Server {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), startTimeout)
	defer cancel()
	s, err := mariadb.Start(ctx, options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// server returns the DSN of the server that tests share.
func server(t testing.TB) string {
	t.Helper()
	if dsn := os.Getenv(serverVariable); dsn != "" {
		return dsn
	}
	shared.Lock()
	defer shared.Unlock()
	if shared.server == nil && shared.err == nil {
		ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
		defer cancel()
		shared.server, shared.err = mariadb.Start(ctx, mariadb.Options{})
	}
	if shared.err != nil {
		t.Fatal(shared.err)
	}
	return shared.server.DSN("")
}

// exec runs a statement outside the test's context, as clean-up needs.
func exec(t testing.TB, statement string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), dropTimeout)
	defer cancel()
	db := sql.OpenDB(Connector(t, "", fmt.Sprintf("lock_wait_timeout=%d", int(dropTimeout.Seconds())-1)))
	defer db.Close()
	if _, err := db.ExecContext(ctx, statement); err != nil {
		t.Fatalf("%s: %v", statement, err)
	}
}

func quote(t testing.TB, name string) string {
	t.Helper()
	quoted, err := sqlname.Quote(name)
	if err != nil {
		t.Fatal(err)
	}
	return quoted
}
