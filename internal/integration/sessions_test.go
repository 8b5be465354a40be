package integration

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mailretention/mailretention/internal/mariadb"
	"github.com/mailretention/mailretention/internal/mysqltest"
	"github.com/mailretention/mailretention/provisioner"
	"github.com/mailretention/mailretention/retention"
)

// A run does the same whatever its sessions, and those of its leases, are set to.
func TestRunDoesTheSameInEverySession(t *testing.T) {
	isolation, timeout := "transaction_isolation='SERIALIZABLE'", "max_execution_time=10000"
	if mysqltest.IsMariaDB(t) {
		isolation, timeout = "tx_isolation='SERIALIZABLE'", "max_statement_time=10"
	}
	c := newCrash(t, leasedRun())
	for name, params := range map[string][]string{
		"ANSI_QUOTES":            {"sql_mode='ANSI_QUOTES'"},
		"NO_BACKSLASH_ESCAPES":   {"sql_mode='NO_BACKSLASH_ESCAPES'"},
		"TRADITIONAL":            {"sql_mode='TRADITIONAL'"},
		"no mode":                {"sql_mode=''"},
		"west":                   {"time_zone='-11:00'", "parseTime=true", "loc=America/New_York"},
		"east":                   {"time_zone='+13:00'", "parseTime=true", "loc=Asia/Tokyo"},
		"autocommit off":         {"autocommit=0"},
		"SERIALIZABLE":           {isolation},
		"SERIALIZABLE by hand":   {isolation, "autocommit=0"},
		"latin1":                 {"charset=latin1"},
		"utf8mb4 and collation":  {"charset=utf8mb4", "collation=utf8mb4_bin"},
		"safe updates":           {"sql_safe_updates=1"},
		"a statement's time":     {timeout},
		"found rows":             {"clientFoundRows=true"},
		"placeholders filled in": {"interpolateParams=true"},
		"all of it": {
			"sql_mode='TRADITIONAL,ANSI_QUOTES,NO_BACKSLASH_ESCAPES'", "time_zone='+05:45'", "autocommit=0", isolation, "charset=latin1",
			"sql_safe_updates=1", timeout, "clientFoundRows=true", "interpolateParams=true",
		},
	} {
		t.Run(name, func(t *testing.T) {
			c.op.fill(c.mailbox)
			w := c.worker(params...)
			defer w.die()
			require.NoError(t, fencedRun(t.Context(), w))
			requireSame(t, c.after, c.state(), "")
		})
	}
}

// So does it on servers with other options, each one of its own.
func TestRunDoesTheSameOnEveryServer(t *testing.T) {
	t.Parallel()
	onOneDay(t)
	want := newCrash(t, leasedRun())
	for name, args := range map[string][]string{
		"lower_case_table_names=1":   {"--lower-case-table-names=1"},
		"statement-based binary log": {"--log-bin", "--server-id=1", "--binlog-format=STATEMENT"},
		"row-based binary log":       {"--log-bin", "--server-id=1", "--binlog-format=ROW", "--gtid-strict-mode=1"},
		"autocommit off":             {"--autocommit=0"},
		"SERIALIZABLE":               {"--transaction-isolation=SERIALIZABLE"},
		"a statement's time":         {"--max-statement-time=10"},
		"strict modes, another zone": {"--sql-mode=TRADITIONAL,ANSI", "--default-time-zone=-08:00"},
		"latin1":                     {"--character-set-server=latin1", "--collation-server=latin1_german2_ci"},
	} {
		t.Run(name, func(t *testing.T) {
			m, _ := privateMailbox(t, mariadb.Options{Args: args})
			m.ready()
			fillForRun(m)
			w := m.worker()
			defer w.die()
			require.NoError(t, fencedRun(t.Context(), w))
			requireSame(t, want.after.rows(), m.state().rows(), "")
		})
	}
}

// A table that the account may not see is in no list of the server's: whatever points at it stays, and it is said.
func TestTableThatTheAccountCanNotSeeIsNotTouched(t *testing.T) {
	m, server := privateMailbox(t, mariadb.Options{Grants: true})
	for _, back := range []int{0, 1, 5, 6} {
		m.fill(back, 3, 100)
	}
	for _, table := range m.strings("SELECT TABLE_NAME FROM information_schema.TABLES WHERE TABLE_SCHEMA = ?", m.name) {
		if table != m.table(6) {
			m.grant("blinkered", allRights+" ON "+m.store.Ident(table))
		}
	}
	before := m.state()
	store := m.provisioner(openAs(t, server, "blinkered", ""), provisioner.Config{})
	report, err := retention.Run(t.Context(), store, retention.Config{Name: "test", Policy: retention.Policy{RawDays: new(3)}})
	require.ErrorContains(t, err, m.table(6))
	require.ErrorContains(t, err, "SELECT, INSERT, UPDATE, DELETE, CREATE and DROP")
	require.Equal(t, retention.OutcomeFailed, report.Outcome)
	requireSame(t, before, m.state(), "")
}
