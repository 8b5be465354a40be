package provisioner_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mailretention/mailretention/internal/mariadb"
	"github.com/mailretention/mailretention/internal/mysqltest"
	"github.com/mailretention/mailretention/provisioner"
	"github.com/mailretention/mailretention/retention"
)

// Nothing depends on the DSN: each method does the same whatever the session is set to.
func TestSessionOddities(t *testing.T) {
	isolation := "transaction_isolation='SERIALIZABLE'"
	timeout := "max_execution_time=10000"
	if mysqltest.IsMariaDB(t) {
		isolation, timeout = "tx_isolation='SERIALIZABLE'", "max_statement_time=10"
	}
	for name, params := range map[string][]string{
		"plain":                 nil,
		"ANSI_QUOTES":           {"sql_mode='ANSI_QUOTES'"},
		"NO_BACKSLASH_ESCAPES":  {"sql_mode='NO_BACKSLASH_ESCAPES'"},
		"TRADITIONAL":           {"sql_mode='TRADITIONAL'"},
		"lax":                   {"sql_mode=''"},
		"PIPES_AS_CONCAT":       {"sql_mode='PIPES_AS_CONCAT,IGNORE_SPACE,HIGH_NOT_PRECEDENCE,ONLY_FULL_GROUP_BY,NO_UNSIGNED_SUBTRACTION'"},
		"west":                  {"time_zone='-11:00'", "loc=America/New_York"},
		"east":                  {"time_zone='+13:00'", "parseTime=true", "loc=Asia/Tokyo"},
		"interpolated":          {"interpolateParams=true"},
		"found rows":            {"clientFoundRows=true"},
		"autocommit off":        {"autocommit=0"},
		"serializable":          {isolation},
		"serializable, by hand": {isolation, "autocommit=0"},
		"latin1":                {"charset=latin1"},
		"binary collation":      {"collation=utf8mb4_bin"},
		"safe updates":          {"sql_safe_updates=1"},
		"statement time":        {timeout},
		"many statements":       {"multiStatements=true"},
	} {
		t.Run(name, func(t *testing.T) {
			mysqltest.NoLeaks(t)
			s := existing(t, provisioner.Config{}, params...)
			plain := *s
			plain.db = mysqltest.Open(t, s.name)
			everyMethodWorks(t, s, &plain)
			deletingWorks(t, s, &plain)
		})
	}
}

func TestServerOddities(t *testing.T) {
	for name, args := range map[string][]string{
		"lower case":                   {"--lower-case-table-names=1"},
		"statement-based binary log":   {"--log-bin", "--server-id=1", "--binlog-format=STATEMENT"},
		"autocommit off":               {"--autocommit=0"},
		"rolls back at a lock timeout": {"--innodb-rollback-on-timeout", "--innodb-lock-wait-timeout=1"},
	} {
		t.Run(name, func(t *testing.T) {
			s := private(t, mariadb.Options{Args: args}, provisioner.Config{})
			plain := *s
			plain.db = openDSN(t, s.server.DSN(s.name)+"?autocommit=1")
			everyMethodWorks(t, s, &plain)
			deletingWorks(t, s, &plain)
		})
	}
}

// everyMethodWorks uses the methods of s, and makes and checks through plain what they meet.
func everyMethodWorks(t *testing.T, s, plain *store) {
	t.Helper()
	s.db.SetMaxOpenConns(1) // nothing waits for a second connection while it holds one, and there is one to look at
	settings := "SELECT CONCAT_WS(' ', @@autocommit, @@sql_mode, @@time_zone, @@lock_wait_timeout, @@innodb_lock_wait_timeout, @@character_set_client)"
	before := s.column(settings)
	require.NoError(t, s.Provision(t.Context()))
	plain.withoutKey()
	for range 2 {
		require.NoError(t, s.insert(t.Context(), s.today, 21))
	}
	plain.addTable(s.day(5))
	plain.addMessage(5, 50, true)
	plain.addDay(6, 60)
	plain.book(s.day(6), 60)
	plain.book(s.day(7), 70)
	plain.addMessage(8, 80, false)

	inv := s.inventory()
	tables := byName(inv)
	require.Len(t, inv.Tables, 3)
	require.EqualValues(t, 42, tables[s.day(0)].Bytes)
	require.EqualValues(t, 50, tables[s.day(5)].Bytes)
	require.NotEmpty(t, tables[s.day(5)].InUse)
	require.EqualValues(t, 60, tables[s.day(6)].Bytes)
	require.Equal(t, s.today.AddDate(0, 0, -5).Unix()+3600, inv.Newest.Unix())
	require.WithinDuration(t, time.Now(), inv.Now, time.Hour)
	require.Equal(t, []retention.Drift{
		{Table: s.day(8), Kind: retention.DriftDangling},
		{Table: s.day(7), Kind: retention.DriftOrphan, Bytes: 70},
		{Table: s.day(6), Kind: retention.DriftDouble, Bytes: 120},
		{Table: s.day(5), Kind: retention.DriftMissing},
	}, inv.Drift)
	s.reconcile(4)
	require.ElementsMatch(t, []string{s.day(0) + " 42", s.day(5) + " 50", s.day(6) + " 60"}, plain.books())

	plain.addDay(30, 5)
	require.Contains(t, tableNames(s.inventory()), s.day(30), "no reading shows an old snapshot")
	require.NoError(t, s.DropTable(t.Context(), s.day(30), nil))
	require.NoError(t, s.PruneMessages(t.Context(), retention.Cut{Before: s.today.AddDate(0, 0, -4)}, nil))
	require.Equal(t, []string{"1"}, plain.column("SELECT COUNT(*) FROM "+s.Ident("messages")), "the one that is held")
	require.Equal(t, before, s.column(settings), "the session is as it was found")
	require.NoError(t, s.DropDatabase(t.Context(), s.name))
}

func TestADeadConnectionIsReplaced(t *testing.T) {
	s := provisioned(t, provisioner.Config{})
	other := mysqltest.Open(t, "")
	s.db.SetMaxOpenConns(1)
	for range 2 {
		_, err := other.ExecContext(t.Context(), "KILL "+s.column("SELECT CONNECTION_ID()")[0])
		require.NoError(t, err)
		s.inventory()
	}
}

func TestNamesThatTheConnectionCanNotSpell(t *testing.T) {
	db := mysqltest.Open(t, "", "charset=latin1")
	p, err := provisioner.New(db, provisioner.Config{Database: "mailretention-test-ü"})
	require.NoError(t, err)
	require.ErrorContains(t, p.Provision(t.Context()), "charset=utf8mb4")
}

// deletingWorks drops tables and prunes messages in the sessions of s, and makes and checks through plain what goes and what is counted.
func deletingWorks(t *testing.T, s, plain *store) {
	t.Helper()
	q := &queue{}
	p, err := provisioner.New(s.db, provisioner.Config{Database: s.name, Pending: func(ctx context.Context) ([]int64, error) {
		var one int
		if err := s.db.QueryRowContext(ctx, "SELECT 1").Scan(&one); err != nil { // the queue can be on the same, only connection
			return nil, err
		}
		return q.Pending(ctx)
	}})
	require.NoError(t, err)
	require.NoError(t, p.Provision(t.Context()))
	settings := "SELECT CONCAT_WS(' ', @@autocommit, @@sql_mode, @@sql_safe_updates, @@lock_wait_timeout, @@innodb_lock_wait_timeout)"
	before := s.column(settings)
	plain.addDay(9, 1)
	plain.addDay(8, 1)
	first := plain.addMessages(9, 300)
	plain.addChildren(first)
	plain.addChildren(first + 299)
	pending := plain.addMessages(8, 10)
	held := pending + 1
	q.add(pending)
	plain.exec(fmt.Sprint("UPDATE ", plain.Ident("messages"), " SET held=1 WHERE id=", held))
	plain.addChildren(pending)
	plain.addChildren(held)

	var rows int64
	count := func(n int64) error { rows += n; return nil }
	require.NoError(t, p.DropTable(t.Context(), plain.day(9), count))
	require.EqualValues(t, 300, rows)
	require.ErrorIs(t, p.DropTable(t.Context(), plain.day(8), count), retention.ErrInUse)
	require.EqualValues(t, 308, rows)
	require.Equal(t, []int64{pending, held}, plain.pointing())
	require.Equal(t, []string{plain.day(8)}, plain.tables())
	require.Equal(t, []string{plain.day(8) + " 1"}, plain.books())

	rows = 0
	require.NoError(t, p.PruneMessages(t.Context(), retention.Cut{Before: plain.today}, count))
	require.EqualValues(t, 308, rows)
	plain.requireMessages([]int64{pending, held})
	require.Equal(t, before, s.column(settings), "the session is as it was found")
}
