package main

import (
	"context"
	"database/sql"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"
	"github.com/stretchr/testify/require"

	"github.com/mailretention/mailretention/internal/mariadb"
	"github.com/mailretention/mailretention/internal/mysqltest"
)

// freePort returns a TCP port that nothing listens on.
func freePort(t *testing.T) int {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port
}

// execer is a pool or one connection.
type execer interface {
	ExecContext(ctx context.Context, statement string, args ...any) (sql.Result, error)
}

func execOn(t *testing.T, db execer, statement string) {
	t.Helper()
	_, err := db.ExecContext(t.Context(), statement)
	require.NoError(t, err, statement)
}

// blocked creates a table. A replica waits there as long as somebody has locked the one that it has already.
const blocked = "CREATE TABLE IF NOT EXISTS blocked.t (id int)"

// newPrimary is a server that others replicate from.
func newPrimary(t *testing.T, port int) {
	server := mysqltest.Server(t, mariadb.Options{Grants: true, Port: port, Args: []string{"--log-bin", "--server-id=1"}})
	t.Setenv("MAILRETENTION_DSN", server.DSN(""))
	db := mysqltest.Open(t, "")
	for _, statement := range []string{
		"CREATE USER repl", "CREATE DATABASE IF NOT EXISTS blocked", blocked, "GRANT REPLICATION SLAVE ON *.* TO repl",
	} {
		execOn(t, db, statement)
	}
}

func TestARunWaitsForAReplicaThatIsBehind(t *testing.T) {
	port := freePort(t)
	newPrimary(t, port)
	server := mysqltest.Server(t, mariadb.Options{Grants: true, Args: []string{"--server-id=2"}})
	replica, err := sql.Open("mysql", server.DSN(""))
	require.NoError(t, err)
	defer replica.Close()
	config, err := mysql.ParseDSN(server.DSN(""))
	require.NoError(t, err)
	p := newPostal(t)
	p.addServerOf(1, "one", 5, mebibyte, 2, nil, nil)
	flags := []string{"--throttle-lag", "1s", "--replica", config.Addr}

	stopped := p.call(append(flags, "run")...)
	require.Equal(t, exitPartly, stopped.status, stopped)
	require.Contains(t, stopped.out, "doesn't replicate")
	require.Equal(t, 5, p.tables(1))

	blocker, err := replica.Conn(t.Context())
	require.NoError(t, err)
	defer blocker.Close()
	for _, statement := range []string{"CREATE DATABASE blocked", blocked, "LOCK TABLES blocked.t WRITE"} {
		execOn(t, blocker, statement)
	}
	execOn(t, replica, fmt.Sprintf("CHANGE MASTER TO MASTER_HOST='127.0.0.1', MASTER_PORT=%d, MASTER_USER='repl'", port))
	execOn(t, replica, "START SLAVE")
	require.Eventually(t, func() bool {
		lag, err := replicaLag(t.Context(), replica)
		return err == nil && lag > time.Second
	}, 30*time.Second, 10*time.Millisecond)
	check := p.call(append(flags, "check")...)
	require.Equal(t, exitDone, check.status, check)
	require.Regexp(t, `ok +replica .*: \d+s behind`, check.out)
	waiting := make(said, 1)
	done := make(chan outcome)
	go func() {
		done <- p.callIn(t.Context(), surroundings{in: strings.NewReader(""), err: waiting}, append(flags, "run")...)
	}()
	<-waiting
	require.Equal(t, 5, p.tables(1))

	execOn(t, blocker, "UNLOCK TABLES")
	o := <-done
	require.Equal(t, exitDone, o.status, o)
	require.Equal(t, 3, p.tables(1))
}

// said receives when the tool says that it waits.
type said chan struct{}

func (s said) Write(text []byte) (int, error) {
	if strings.Contains(string(text), "waiting for a replica") {
		select {
		case s <- struct{}{}:
		default: // said already
		}
	}
	return len(text), nil
}
