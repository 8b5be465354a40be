package provisioner_test

import (
	"testing"

	"github.com/go-sql-driver/mysql"
	"github.com/stretchr/testify/require"

	"github.com/mailretention/mailretention/internal/mariadb"
	"github.com/mailretention/mailretention/provisioner"
	"github.com/mailretention/mailretention/retention"
)

// as returns s through an account of its server with these grants alone.
func (s *store) as(account string, cfg provisioner.Config, grants ...string) *store {
	s.t.Helper()
	s.exec("CREATE USER " + account + "@localhost")
	for _, grant := range grants {
		s.exec("GRANT " + grant + " TO " + account + "@localhost")
	}
	dsn, err := mysql.ParseDSN(s.server.DSN(""))
	require.NoError(s.t, err)
	dsn.User = account
	db := openDSN(s.t, dsn.FormatDSN())
	cfg.Database = s.name
	p, err := provisioner.New(db, cfg)
	require.NoError(s.t, err)
	return &store{Provisioner: p, t: s.t, db: db, server: s.server, name: s.name, today: s.today}
}

func TestRights(t *testing.T) {
	root := private(t, mariadb.Options{Grants: true}, provisioner.Config{})
	on := " ON `postal-server-17`.*"
	needed := "needs SELECT, INSERT, UPDATE, DELETE, CREATE and DROP"
	root.addDay(5, 10)
	root.addMessage(5, 10, false)

	t.Run("all but PROCESS", func(t *testing.T) {
		s := root.as("worker", provisioner.Config{SizeFrom: provisioner.SizeFromStorage}, "SELECT, INSERT, UPDATE, DELETE, CREATE, DROP"+on)
		require.NoError(t, s.Provision(t.Context()))
		require.NoError(t, s.insert(t.Context(), s.today, 5))
		table := byName(s.inventory())[s.day(5)]
		require.True(t, table.SizeKnown)
		require.GreaterOrEqual(t, table.Bytes, int64(pageSize))
		_, err := s.Reconcile(t.Context())
		require.NoError(t, err)
	})
	t.Run("SELECT alone", func(t *testing.T) {
		s := root.as("reader", provisioner.Config{}, "SELECT"+on)
		require.Equal(t, root.inventory().Tables, s.inventory().Tables, "a preview needs no more")
		_, err := s.EnsureDay(t.Context(), s.today)
		for _, err := range []error{err, s.Provision(t.Context()), s.DropDatabase(t.Context(), s.name)} {
			require.ErrorContains(t, err, needed)
		}
	})
	t.Run("no DROP", func(t *testing.T) {
		s := root.as("creator", provisioner.Config{}, "SELECT, INSERT, UPDATE, DELETE, CREATE"+on)
		require.NoError(t, s.Provision(t.Context()))
		require.ErrorContains(t, s.DropDatabase(t.Context(), s.name), needed)
		require.Equal(t, root.inventory().Tables, s.inventory().Tables)
	})
	t.Run("none", func(t *testing.T) {
		s := root.as("nobody", provisioner.Config{})
		_, err := s.Inventory(t.Context())
		require.ErrorContains(t, err, needed)
	})
	t.Run("a table that can't be seen", func(t *testing.T) {
		root.addMessage(6, 10, false)
		hidden := root.addDay(6, 66)
		var grants []string
		for _, table := range []string{"raw_message_sizes", "messages", root.day(5)} {
			grants = append(grants, "SELECT, INSERT, UPDATE, DELETE, CREATE, DROP ON "+root.Ident(table))
		}
		s := root.as("blinkered", provisioner.Config{}, grants...)
		require.NotContains(t, tableNames(s.inventory()), hidden)
		repaired, err := s.Reconcile(t.Context())
		require.ErrorContains(t, err, hidden)
		require.ErrorContains(t, err, needed)
		require.Zero(t, repaired)
		require.ErrorContains(t, s.DropTable(t.Context(), hidden, nil), needed)
		alone, err := provisioner.New(s.db, provisioner.Config{Database: s.name, Schema: provisioner.Schema{RawPrefix: "raw-", RawLayout: "2006-01-02", RawColumns: "id int"}})
		require.NoError(t, err)
		require.ErrorContains(t, alone.DropTable(t.Context(), hidden, nil), needed)
		require.Contains(t, root.books(), hidden+" 66")
		require.Equal(t, []string{"1"}, root.column("SELECT COUNT(*) FROM "+root.Ident("messages")+" WHERE raw_table=?", hidden))
	})
	t.Run("a server that is read only", func(t *testing.T) {
		s := root.as("replica", provisioner.Config{}, "SELECT, INSERT, UPDATE, DELETE, CREATE, DROP"+on)
		root.book(root.day(9), 1)
		root.exec("SET GLOBAL read_only=1")
		defer root.exec("SET GLOBAL read_only=0")
		require.Contains(t, s.inventory().Drift, retention.Drift{Table: s.day(9), Kind: retention.DriftOrphan, Bytes: 1})
		_, err := s.Reconcile(t.Context())
		require.Error(t, err)
		require.Contains(t, root.books(), root.day(9)+" 1")
	})
}
