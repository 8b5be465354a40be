package main

import (
	"bytes"
	"context"
	"database/sql"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"
	"github.com/stretchr/testify/require"

	"github.com/mailretention/mailretention/internal/mysqltest"
	"github.com/mailretention/mailretention/lease"
	"github.com/mailretention/mailretention/provisioner"
)

// asTool makes the test binary be the tool, for tests that need a process.
const asTool = "POSTAL_RETENTION_AS_TOOL"

func TestMain(m *testing.M) {
	if os.Getenv(asTool) != "" {
		main()
	}
	mysqltest.Main(m)
}

// postal is an installation of Postal for one test: a main database and message databases of its shape.
type postal struct {
	t      testing.TB
	db     *sql.DB
	main   string // database
	prefix string
	server mysql.Config
	today  time.Time // by the server's clock
}

func newPostal(t testing.TB) *postal {
	t.Helper()
	db, main := mysqltest.DB(t)
	p := &postal{t: t, db: db, main: main, prefix: mysqltest.Unique(t)[len("mailretention-test-"):]}
	config, err := mysql.ParseDSN(mysqltest.DSN(t, ""))
	require.NoError(t, err)
	p.server = *config
	p.useClock()
	t.Cleanup(func() { p.dropDatabase(p.prefix + "-retention") })
	for _, statement := range mainDatabase() {
		p.exec(statement)
	}
	return p
}

// mainDatabase creates the part of Postal's main database that the tool reads (db/schema.rb).
func mainDatabase() []string {
	return []string{
		"CREATE TABLE organizations (id int PRIMARY KEY, permalink varchar(255), deleted_at datetime)",
		"CREATE TABLE servers (id int PRIMARY KEY, organization_id int, permalink varchar(255), deleted_at datetime," +
			" message_retention_days int, raw_message_retention_days int, raw_message_retention_size int)",
		"CREATE TABLE queued_messages (id int PRIMARY KEY AUTO_INCREMENT, server_id int, message_id int, KEY (server_id), KEY (message_id))",
		"CREATE TABLE scheduled_tasks (id bigint PRIMARY KEY AUTO_INCREMENT, name varchar(255) UNIQUE, next_run_after datetime)",
		"INSERT INTO organizations (id, permalink) VALUES (1, 'acme'), (2, 'other')",
	}
}

func (p *postal) useClock() {
	var now string
	require.NoError(p.t, p.db.QueryRowContext(p.t.Context(), "SELECT CAST(UTC_DATE() AS CHAR)").Scan(&now))
	today, err := time.Parse(time.DateOnly, now)
	require.NoError(p.t, err)
	p.today = today
}

func (p *postal) exec(statement string, args ...any) {
	p.t.Helper()
	_, err := p.db.ExecContext(p.t.Context(), statement, args...)
	require.NoError(p.t, err, statement)
}

func (p *postal) dropDatabase(name string) {
	_, err := p.db.ExecContext(context.WithoutCancel(p.t.Context()), "DROP DATABASE IF EXISTS `"+name+"`")
	require.NoError(p.t, err)
}

func (p *postal) database(id int) string { return fmt.Sprintf("%s-server-%d", p.prefix, id) }

// addServer books a server in the main database. A nil limit is NULL.
func (p *postal) addServer(id int, permalink string, rawDays, rawMegabytes, messageDays any) {
	p.t.Helper()
	p.exec("INSERT INTO servers (id, organization_id, permalink, raw_message_retention_days, raw_message_retention_size, message_retention_days)"+
		" VALUES (?, 1, ?, ?, ?, ?)", id, permalink, rawDays, rawMegabytes, messageDays)
}

// addDatabase makes the server's message database, as Postal does: without a unique key in the books.
func (p *postal) addDatabase(id int) {
	p.t.Helper()
	p.t.Cleanup(func() { p.dropDatabase(p.database(id)) })
	p.exec("CREATE DATABASE `" + p.database(id) + "` CHARSET utf8mb4 COLLATE utf8mb4_unicode_ci")
	for _, table := range provisioner.PostalSchema().Base {
		p.exec("CREATE TABLE " + p.in(id, table.Name) + " (" + table.Columns + ")")
	}
	p.exec("CREATE TABLE " + p.in(id, "raw_message_sizes") +
		" (id int PRIMARY KEY AUTO_INCREMENT, table_name varchar(255), size bigint, KEY on_table_name (table_name(14)))")
}

func (p *postal) in(id int, table string) string { return "`" + p.database(id) + "`.`" + table + "`" }

func (p *postal) day(ago int) time.Time { return p.today.AddDate(0, 0, -ago) }

func (p *postal) table(ago int) string { return "raw-" + p.day(ago).Format(time.DateOnly) }

// addDay makes the raw table of a day that is so long ago, books bytes for it, and adds one message with its mail there.
func (p *postal) addDay(id, ago int, bytes int64) (message int64) {
	p.t.Helper()
	table := p.table(ago)
	p.exec("CREATE TABLE " + p.in(id, table) + " (" + provisioner.PostalSchema().RawColumns + ")")
	p.exec("INSERT INTO " + p.in(id, table) + " (data) VALUES ('Subject: day'), ('body')")
	p.exec("INSERT INTO "+p.in(id, "raw_message_sizes")+" (table_name, size) VALUES (?, ?)", table, bytes)
	return p.addMessage(id, ago, table)
}

// addMessage adds a message of that day, "" for one whose raw mail is gone.
func (p *postal) addMessage(id, ago int, table string) int64 {
	p.t.Helper()
	result, err := p.db.ExecContext(p.t.Context(), "INSERT INTO "+p.in(id, "messages")+
		" (scope, timestamp, status, raw_table, raw_headers_id, raw_body_id, size) VALUES ('outgoing', ?, 'Sent', NULLIF(?, ''), 1, 2, '16')",
		p.day(ago).Unix(), table)
	require.NoError(p.t, err)
	message, err := result.LastInsertId()
	require.NoError(p.t, err)
	p.exec("INSERT INTO "+p.in(id, "deliveries")+" (message_id, status) VALUES (?, 'Sent')", message)
	return message
}

// addServerOf adds a server with a database and the days from today back to so long ago, each of so many bytes.
func (p *postal) addServerOf(id int, permalink string, days int, bytes int64, rawDays, rawMegabytes, messageDays any) {
	p.t.Helper()
	p.addServer(id, permalink, rawDays, rawMegabytes, messageDays)
	p.addDatabase(id)
	for ago := days - 1; ago >= 0; ago-- {
		p.addDay(id, ago, bytes)
	}
}

// tables returns how many raw tables the server has.
func (p *postal) tables(id int) int {
	return p.count("information_schema.TABLES WHERE TABLE_SCHEMA = '" + p.database(id) + "' AND TABLE_NAME LIKE 'raw-%'")
}

func (p *postal) messages(id int) int { return p.count(p.in(id, "messages")) }

func (p *postal) count(from string) (n int) {
	p.t.Helper()
	require.NoError(p.t, p.db.QueryRowContext(p.t.Context(), "SELECT COUNT(*) FROM "+from).Scan(&n))
	return n
}

// leases are those that the tool keeps.
func (p *postal) leases() *lease.Leases {
	p.t.Helper()
	leases, err := lease.New(p.db, lease.Config{Table: p.prefix + "-retention.leases", Owner: "the other one"})
	require.NoError(p.t, err)
	return leases
}

// environment is what the tool finds of the installation.
func (p *postal) environment() map[string]string {
	env := map[string]string{configVariable: os.DevNull, "MAIN_DB_DATABASE": p.main, "MESSAGE_DB_DATABASE_NAME_PREFIX": p.prefix}
	for _, group := range []string{"MAIN_DB_", "MESSAGE_DB_"} {
		host, port, _ := strings.Cut(p.server.Addr, ":")
		env[group+"HOST"] = host
		if port != "" {
			env[group+"PORT"] = port
		}
		env[group+"USERNAME"], env[group+"PASSWORD"] = p.server.User, p.server.Passwd
	}
	return env
}

// outcome is what one call of the tool came to.
type outcome struct {
	status   int
	out, err string
}

func (o outcome) String() string {
	return fmt.Sprintf("exit status %d\n--- out\n%s--- err\n%s", o.status, o.out, o.err)
}

// call runs the tool's command as a job without a terminal.
func (p *postal) call(args ...string) outcome {
	return p.callIn(p.t.Context(), surroundings{in: strings.NewReader("")}, args...)
}

// answer runs it as a person at a terminal who types this.
func (p *postal) answer(typed string, args ...string) outcome {
	return p.callIn(p.t.Context(), surroundings{in: strings.NewReader(typed), terminal: true}, args...)
}

func (p *postal) callIn(ctx context.Context, world surroundings, args ...string) outcome {
	return callWith(ctx, world, p.environment(), args...)
}

func callWith(ctx context.Context, world surroundings, env map[string]string, args ...string) outcome {
	var out, err bytes.Buffer
	world.out = &out
	if world.err == nil {
		world.err = io.Discard
	}
	world.err = io.MultiWriter(&err, world.err)
	world.lookupEnv = func(name string) (string, bool) { v, ok := env[name]; return v, ok }
	status := execute(ctx, world, args)
	return outcome{status, out.String(), err.String()}
}
