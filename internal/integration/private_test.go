package integration

import (
	"database/sql"
	"database/sql/driver"
	"strings"
	"testing"

	"github.com/go-sql-driver/mysql"
	"github.com/stretchr/testify/require"

	"github.com/mailretention/mailretention/internal/mariadb"
	"github.com/mailretention/mailretention/internal/mysqltest"
)

// privateMailbox is a mailbox on a server of its own, whatever MAILRETENTION_DSN says.
func privateMailbox(t *testing.T, options mariadb.Options) (*mailbox, *mariadb.Server) {
	t.Helper()
	const name = "postal-server-17"
	server := mysqltest.Server(t, options)
	_, err := openAs(t, server, "root", "").ExecContext(t.Context(), "CREATE DATABASE `"+name+"` CHARACTER SET utf8mb4")
	require.NoError(t, err)
	m := openMailbox(t, openAs(t, server, "root", name), name)
	m.connector = func(params ...string) driver.Connector { return connectAs(t, server, "root", "", params...) }
	require.NoError(t, m.store.Provision(t.Context()))
	return m, server
}

// openAs opens a pool for an account of a private server.
func openAs(t *testing.T, server *mariadb.Server, account, database string) *sql.DB {
	t.Helper()
	db := sql.OpenDB(connectAs(t, server, account, database))
	t.Cleanup(func() { require.NoError(t, db.Close()) })
	return db
}

func connectAs(t *testing.T, server *mariadb.Server, account, database string, params ...string) driver.Connector {
	t.Helper()
	dsn := server.DSN(database)
	if len(params) > 0 {
		dsn += "?" + strings.Join(params, "&")
	}
	config, err := mysql.ParseDSN(dsn)
	require.NoError(t, err)
	config.User = account
	connector, err := mysql.NewConnector(config)
	require.NoError(t, err)
	return connector
}

// grant makes an account with these rights, each with what they are on.
func (m *mailbox) grant(account string, rights ...string) {
	m.t.Helper()
	m.exec("CREATE USER IF NOT EXISTS " + account + "@localhost")
	for _, right := range rights {
		m.exec("GRANT " + right + " TO " + account + "@localhost")
	}
}
