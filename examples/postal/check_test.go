package main

import (
	"encoding/json"
	"testing"

	"github.com/go-sql-driver/mysql"
	"github.com/stretchr/testify/require"

	"github.com/mailretention/mailretention/internal/mariadb"
	"github.com/mailretention/mailretention/internal/mysqltest"
)

func TestCheckSaysWhatARunWouldMeet(t *testing.T) {
	p := newInstallation(t)
	p.exec("CREATE TABLE " + p.in(1, "raw-backup") + " (id int)")
	p.exec("CREATE TABLE " + p.in(1, "raw-\x1b[2J") + " (id int)")
	p.exec("INSERT INTO "+p.in(1, "raw_message_sizes")+" (table_name, size) VALUES (?, 5000000000)", p.table(60))
	p.exec("INSERT INTO scheduled_tasks (name, next_run_after) VALUES ('ProcessMessageRetentionScheduledTask', UTC_TIMESTAMP() + INTERVAL 2 HOUR)")

	o := p.call("check")

	require.Equal(t, exitPartly, o.status, o)
	for _, text := range []string{
		"ok     main database: ", "sql_mode",
		"the first run makes database " + p.prefix + "-retention",
		"note   Postal's own task: runs next at ",
		"7 of 12 raw tables would go (70.0 MiB)",
		"ignored: raw-backup",
		p.table(60) + " (4.7 GiB): booked, but there is no such table",
		"fault  acme/broken (ID 4): ",
		"note   deleted servers: 1",
		"1 fault",
	} {
		require.Contains(t, o.out, text)
	}
	require.NotContains(t, o.out, "\x1b")
	require.Equal(t, 14, p.tables(1), "nothing was changed")
	require.Zero(t, p.count("information_schema.SCHEMATA WHERE SCHEMA_NAME = '"+p.prefix+"-retention'"))

	p.exec("UPDATE scheduled_tasks SET next_run_after = '2999-01-01'")
	p.exec("UPDATE servers SET deleted_at = UTC_TIMESTAMP() WHERE id = 4")
	p.exec("DELETE FROM " + p.in(1, "raw_message_sizes") + " WHERE size > 4000000000")
	good := p.call("check")
	require.Equal(t, exitDone, good.status, good)
	require.Contains(t, good.out, "ok     Postal's own task: is switched off until 2999-01-01")
	require.Contains(t, good.out, "A run would go through.")
}

func TestCheckAsJSON(t *testing.T) {
	p := newInstallation(t)
	var got struct {
		Findings   []finding `json:"findings"`
		Servers    []any     `json:"servers"`
		Deleted    int       `json:"deleted_servers"`
		ExitStatus int       `json:"exit_status"`
	}
	o := p.call("check", "--json")
	require.NoError(t, json.Unmarshal([]byte(o.out), &got), o)
	require.Equal(t, o.status, got.ExitStatus)
	require.Len(t, got.Servers, 4)
	require.Equal(t, 1, got.Deleted)
	require.NotEmpty(t, got.Findings)
}

// newInstallationWithRights is on a server that checks rights, for an account that has none yet.
func newInstallationWithRights(t *testing.T) *postal {
	server := mysqltest.Server(t, mariadb.Options{Grants: true})
	t.Setenv("MAILRETENTION_DSN", server.DSN(""))
	p := newPostal(t)
	p.exec("CREATE USER 'o''postal'@'localhost' IDENTIFIED BY '" + secret + "'")
	config, err := mysql.ParseDSN(server.DSN(""))
	require.NoError(t, err)
	config.User, config.Passwd = "o'postal", secret
	p.server = *config
	return p
}

func TestCheckNamesMissingRightsAndItsStatementsGiveThem(t *testing.T) {
	p := newInstallationWithRights(t)
	p.addServerOf(1, "one", 5, mebibyte, 2, nil, 2)
	p.exec("GRANT SELECT ON `" + p.main + "`.* TO 'o''postal'@'localhost'")
	p.exec("GRANT SELECT, INSERT, UPDATE, DELETE ON `" + p.prefix + "-server-%`.* TO 'o''postal'@'localhost'")

	o := p.call("check")
	require.Equal(t, exitPartly, o.status, o)
	require.NotContains(t, o.String(), secret)
	drop := "GRANT DROP ON `" + p.prefix + "-server-%`.* TO 'o''postal'@'localhost';"
	leases := "GRANT SELECT, INSERT, UPDATE, CREATE ON `" + p.prefix + "-retention`.* TO 'o''postal'@'localhost';"
	require.Contains(t, o.out, drop)
	require.Contains(t, o.out, leases)
	require.Contains(t, o.out, "2 faults")

	failed := p.call("run")
	require.Equal(t, exitFailed, failed.status, failed)
	require.Contains(t, failed.err, "see check")
	require.Equal(t, 5, p.tables(1))

	p.exec(drop)
	p.exec(leases)
	good := p.call("check")
	require.Equal(t, exitDone, good.status, good)
	require.Contains(t, good.out, "without PROCESS")
	done := p.call("run")
	require.Equal(t, exitDone, done.status, done)
	require.Equal(t, 3, p.tables(1))
	require.Equal(t, 3, p.messages(1))
}

func TestAWrongPasswordSaysSoAndIsNotShown(t *testing.T) {
	p := newInstallationWithRights(t)
	p.server.Passwd = secret + "-wrong"
	for _, command := range []string{"plan", "run", "check", "leases"} {
		o := p.call(command)
		require.Equal(t, exitFailed, o.status, o)
		require.Contains(t, o.err, "Access denied")
		require.NotContains(t, o.String(), secret)
	}
}
