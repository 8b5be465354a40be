package provisioner_test

import (
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mailretention/mailretention/internal/mysqlerr"
	"github.com/mailretention/mailretention/internal/mysqltest"
	"github.com/mailretention/mailretention/provisioner"
)

func TestProvisionMakesPostalsTables(t *testing.T) {
	s := provisioned(t, provisioner.Config{})
	require.Equal(t, []string{
		"clicks", "deliveries", "links", "live_stats", "loads", "messages", "migrations", "raw_message_sizes", "spam_checks",
		"stats_daily", "suppressions", "webhook_requests",
	}, s.column("SELECT TABLE_NAME FROM information_schema.TABLES WHERE TABLE_SCHEMA=? ORDER BY 1", s.name))
	require.Equal(t, "35", s.column("SELECT COUNT(*) FROM information_schema.COLUMNS WHERE TABLE_SCHEMA=? AND TABLE_NAME='messages'", s.name)[0])
	require.Equal(t, "14", s.column("SELECT COUNT(DISTINCT INDEX_NAME) FROM information_schema.STATISTICS WHERE TABLE_SCHEMA=? AND TABLE_NAME='messages'", s.name)[0])
	require.Equal(t, []string{"utf8mb4_bin"}, s.column(
		"SELECT COLLATION_NAME FROM information_schema.COLUMNS WHERE TABLE_SCHEMA=? AND TABLE_NAME='raw_message_sizes' AND COLUMN_NAME='table_name'", s.name))
	require.Equal(t, []string{"InnoDB utf8mb4_unicode_ci"}, s.column(
		"SELECT DISTINCT CONCAT(ENGINE, ' ', TABLE_COLLATION) FROM information_schema.TABLES WHERE TABLE_SCHEMA=?", s.name))
}

func TestProvisionMayBeRepeated(t *testing.T) {
	s := provisioned(t, provisioner.Config{})
	s.addMessage(1, 10, false)
	s.book("raw-2026-01-01", 5)
	before := s.column("SELECT CONCAT(TABLE_NAME, ' ', CREATE_TIME) FROM information_schema.TABLES WHERE TABLE_SCHEMA=? ORDER BY 1", s.name)
	require.NoError(t, s.Provision(t.Context()))
	require.Equal(t, before, s.column("SELECT CONCAT(TABLE_NAME, ' ', CREATE_TIME) FROM information_schema.TABLES WHERE TABLE_SCHEMA=? ORDER BY 1", s.name))
	require.Equal(t, []string{"raw-2026-01-01 5"}, s.books())
	require.Equal(t, []string{"1"}, s.column("SELECT COUNT(*) FROM "+s.Ident("messages")))
}

func TestProvisionBySixteenAtOnce(t *testing.T) {
	name := mysqltest.Unique(t)
	db := mysqltest.Open(t, "")
	atOnce(t, 16, func(int) error {
		p, err := provisioner.New(db, provisioner.Config{Database: name})
		if err != nil {
			return err
		}
		return p.Provision(t.Context())
	})
}

func TestProvisionLeavesAnExistingBookkeepingAsItIs(t *testing.T) {
	s := existing(t, provisioner.Config{})
	s.exec("CREATE TABLE " + s.Ident("raw_message_sizes") + " (id int AUTO_INCREMENT PRIMARY KEY, table_name varchar(255), size bigint, note text)")
	require.NoError(t, s.Provision(t.Context()))
	require.Equal(t, []string{"PRIMARY"}, s.column(
		"SELECT DISTINCT INDEX_NAME FROM information_schema.STATISTICS WHERE TABLE_SCHEMA=? AND TABLE_NAME='raw_message_sizes'", s.name))
	require.NoError(t, s.insert(t.Context(), s.today, 3))
	require.NoError(t, s.insert(t.Context(), s.today, 4))
	require.Equal(t, []string{s.day(0) + " 7"}, s.books())
}

func TestProvisionRefusesAnotherShape(t *testing.T) {
	for name, test := range map[string]struct{ table, columns, difference string }{
		"bookkeeping without sizes": {"raw_message_sizes", "id int, table_name varchar(255)", `table "raw_message_sizes": column "size" is missing`},
		"sizes as text":             {"raw_message_sizes", "id int, table_name varchar(255), size varchar(20)", `column "size" is varchar(20), not a number`},
		"messages dated by a DATETIME": {
			"messages", "id int, timestamp datetime, raw_table varchar(255), size varchar(20), held int, raw_body_id int, raw_headers_id int",
			`column "timestamp" is datetime, not a number`,
		},
		"a child of no message":       {"clicks", "id int", `table "clicks": column "message_id" is missing`},
		"another program's raw table": {"messages", "id int", `column "timestamp" is missing, column "raw_table" is missing`},
	} {
		t.Run(name, func(t *testing.T) {
			s := existing(t, provisioner.Config{})
			s.exec("CREATE TABLE " + s.Ident(test.table) + " (" + test.columns + ")")
			err := s.Provision(t.Context())
			require.ErrorIs(t, err, provisioner.ErrSchemaMismatch)
			require.ErrorContains(t, err, test.difference)
		})
	}
}

func TestProvisionSaysWhichTableNobodyMakes(t *testing.T) {
	schema := provisioner.PostalSchema()
	schema.Base = nil
	s := existing(t, provisioner.Config{Schema: schema})
	err := s.Provision(t.Context())
	require.ErrorIs(t, err, provisioner.ErrNotProvisioned)
	require.ErrorContains(t, err, `"messages"`)
}

func TestDropDatabase(t *testing.T) {
	s := provisioned(t, provisioner.Config{})
	s.addDay(3, 1)
	require.ErrorContains(t, s.DropDatabase(t.Context(), "mysql"), s.name)
	require.ErrorContains(t, s.DropDatabase(t.Context(), ""), s.name)
	require.ErrorContains(t, s.DropDatabase(t.Context(), strings.ToUpper(s.name)), s.name)
	require.NoError(t, s.DropDatabase(t.Context(), s.name))
	require.NoError(t, s.DropDatabase(t.Context(), s.name), "gone already")

	_, err := s.Inventory(t.Context())
	require.ErrorIs(t, err, provisioner.ErrNotProvisioned)
	_, err = s.Reconcile(t.Context())
	require.ErrorIs(t, err, provisioner.ErrNotProvisioned)
	_, err = s.EnsureDay(t.Context(), s.today)
	require.ErrorIs(t, err, provisioner.ErrNotProvisioned)
	require.Error(t, s.insert(t.Context(), s.today, 1))
}

// A statement that others keep waiting gives up after LockWait, and the session keeps its own setting.
func TestDropDatabaseWaitsNoLongerThanLockWait(t *testing.T) {
	s := provisioned(t, provisioner.Config{LockWait: time.Second}, "lock_wait_timeout=1234")
	s.db.SetMaxOpenConns(2)
	reader, err := s.db.BeginTx(t.Context(), nil)
	require.NoError(t, err)
	defer reader.Rollback()
	_, err = reader.ExecContext(t.Context(), "SELECT 1 FROM "+s.Ident("messages"))
	require.NoError(t, err)
	require.True(t, mysqlerr.Is(s.DropDatabase(t.Context(), s.name), mysqlerr.LockWaitTimeout))
	require.NoError(t, reader.Rollback())
	require.Equal(t, []string{"1234"}, s.column("SELECT @@lock_wait_timeout"))
	require.NoError(t, s.DropDatabase(t.Context(), s.name))
}

func TestDatabaseNames(t *testing.T) {
	for name, suffix := range map[string]string{
		"dash": "-x", "dot": "a.b", "backtick": "a`b`", "umlaut": "ü-é-日", "quotes": `a"b'c`, "percent": "%_%", "64 characters": strings.Repeat("x", 64),
	} {
		t.Run(name, func(t *testing.T) {
			database := "mrt-" + strings.TrimPrefix(mysqltest.Unique(t), "mailretention-test-")[:10] + suffix
			database = string([]rune(database)[:min(64, len([]rune(database)))])
			db := mysqltest.Open(t, "")
			p, err := provisioner.New(db, provisioner.Config{Database: database})
			require.NoError(t, err)
			s := &store{Provisioner: p, t: t, db: db, name: database}
			defer func() { require.NoError(t, s.DropDatabase(t.Context(), database)) }()
			require.NoError(t, s.Provision(t.Context()))
			s.today = today(t, db)
			require.NoError(t, s.insert(t.Context(), s.today, 17))
			s.addTable(s.day(5))
			s.book(s.day(6), 1)
			s.addMessage(7, 1, false)
			repaired, err := s.Reconcile(t.Context())
			require.NoError(t, err)
			require.Equal(t, 3, repaired)
			inv, err := s.Inventory(t.Context())
			require.NoError(t, err)
			require.Empty(t, inv.Drift)
			require.Len(t, inv.Tables, 2)
			require.EqualValues(t, 17, inv.Tables[1].Bytes)
		})
	}
}

// atOnce runs fn n times at the same moment and requires that none fails.
func atOnce(t *testing.T, n int, fn func(i int) error) {
	t.Helper()
	var group sync.WaitGroup
	errs := make([]error, n)
	start := make(chan struct{})
	for i := range n {
		group.Go(func() {
			<-start
			errs[i] = fn(i)
		})
	}
	close(start)
	group.Wait()
	for _, err := range errs {
		require.NoError(t, err)
	}
}
