package provisioner_test

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"
	"github.com/stretchr/testify/require"

	"github.com/mailretention/mailretention/internal/faultsql"
	"github.com/mailretention/mailretention/internal/mariadb"
	"github.com/mailretention/mailretention/internal/mysqltest"
	"github.com/mailretention/mailretention/provisioner"
)

func TestMain(m *testing.M) { mysqltest.Main(m) }

const fiveGB int64 = 5_000_000_000 // what the bookkeeping's orphan claimed that once made a size limit drop everything

// store is a message database of a test's own.
type store struct {
	*provisioner.Provisioner
	t      testing.TB
	db     *sql.DB
	server *mariadb.Server // its own, or nil
	name   string
	today  time.Time // by the server's clock
}

// provisioned returns a new database in the schema of cfg, Postal's unless it says otherwise. Params are as in mysqltest.DSN.
func provisioned(t testing.TB, cfg provisioner.Config, params ...string) *store {
	t.Helper()
	s := existing(t, cfg, params...)
	require.NoError(t, s.Provision(t.Context()))
	return s
}

// existing returns a new database with nothing in it.
func existing(t testing.TB, cfg provisioner.Config, params ...string) *store {
	t.Helper()
	db, name := mysqltest.DB(t, params...)
	cfg.Database = name
	p, err := provisioner.New(db, cfg)
	require.NoError(t, err)
	return &store{Provisioner: p, t: t, db: db, name: name, today: today(t, db)}
}

func openDSN(t testing.TB, dsn string) *sql.DB {
	t.Helper()
	db, err := sql.Open("mysql", dsn)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, db.Close()) })
	return db
}

// today returns the server's day.
func today(t testing.TB, db *sql.DB) time.Time {
	t.Helper()
	var text string
	require.NoError(t, db.QueryRowContext(t.Context(), "SELECT CAST(UTC_DATE() AS CHAR)").Scan(&text))
	day, err := time.Parse(time.DateOnly, text)
	require.NoError(t, err)
	return day
}

// day returns the name of Postal's raw table of the day so many days ago.
func (s *store) day(ago int) string {
	return "raw-" + s.today.AddDate(0, 0, -ago).Format(time.DateOnly)
}

// addDay makes a raw table of a day with a row in the bookkeeping.
func (s *store) addDay(ago int, bytes int64) (table string) {
	s.t.Helper()
	table = s.day(ago)
	s.addTable(table)
	s.book(table, bytes)
	return table
}

func (s *store) addTable(table string) {
	s.t.Helper()
	s.exec("CREATE TABLE " + s.Ident(table) + " (" + provisioner.PostalSchema().RawColumns + ") ENGINE=InnoDB")
}

func (s *store) book(table, bytes any) {
	s.t.Helper()
	s.exec("INSERT INTO "+s.Ident("raw_message_sizes")+" (table_name, size) VALUES (?, ?)", table, bytes)
}

// withoutKey makes the bookkeeping what it is in existing installations: without a unique key.
func (s *store) withoutKey() {
	s.t.Helper()
	s.exec("DROP TABLE " + s.Ident("raw_message_sizes"))
	s.exec("CREATE TABLE " + s.Ident("raw_message_sizes") + ` (id int NOT NULL AUTO_INCREMENT, table_name varchar(255), size bigint,
		PRIMARY KEY (id), KEY on_table_name (table_name(14))) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_unicode_ci`)
}

// addMessage adds a message of a day whose mail is in that day's raw table, and returns its id.
func (s *store) addMessage(ago int, bytes int64, held bool) (id int64) {
	s.t.Helper()
	result, err := s.db.ExecContext(s.t.Context(), "INSERT INTO "+s.Ident("messages")+
		" (scope, spam, timestamp, held, size, raw_table, raw_headers_id, raw_body_id) VALUES ('incoming', 0, ?, ?, ?, ?, 1, 2)",
		s.today.AddDate(0, 0, -ago).Unix()+3600, held, bytes, s.day(ago))
	require.NoError(s.t, err)
	id, err = result.LastInsertId()
	require.NoError(s.t, err)
	return id
}

// books returns the bookkeeping's rows as text, in order of ids.
func (s *store) books() []string {
	s.t.Helper()
	return s.column("SELECT CONCAT(COALESCE(table_name, 'NULL'), ' ', COALESCE(size, 'NULL')) FROM " + s.Ident("raw_message_sizes") + " ORDER BY id")
}

// tables returns the names of all tables and views that begin with raw- in any case.
func (s *store) tables() []string {
	s.t.Helper()
	return s.column("SELECT TABLE_NAME FROM information_schema.TABLES WHERE TABLE_SCHEMA=? AND LOWER(TABLE_NAME) LIKE 'raw-%' ORDER BY 1", s.name)
}

func (s *store) exec(query string, args ...any) {
	s.t.Helper()
	_, err := s.db.ExecContext(s.t.Context(), query, args...)
	require.NoError(s.t, err, query)
}

func (s *store) scan(query string, args []any, dest ...any) {
	s.t.Helper()
	require.NoError(s.t, s.db.QueryRowContext(s.t.Context(), query, args...).Scan(dest...), query)
}

func (s *store) column(query string, args ...any) (values []string) {
	s.t.Helper()
	rows, err := s.db.QueryContext(s.t.Context(), query, args...)
	require.NoError(s.t, err, query)
	defer rows.Close()
	for rows.Next() {
		var value string
		require.NoError(s.t, rows.Scan(&value))
		values = append(values, value)
	}
	require.NoError(s.t, rows.Err())
	return values
}

// insert is what a mail server does with InsertInto: it stores one mail of so many bytes.
func (s *store) insert(ctx context.Context, t time.Time, bytes int64) error {
	return s.InsertInto(ctx, t, func(ctx context.Context, table string) (int64, error) {
		tx, err := s.db.BeginTx(ctx, nil)
		if err != nil {
			return 0, err
		}
		defer tx.Rollback() // after Commit it does nothing
		if _, err := tx.ExecContext(ctx, "INSERT INTO "+s.Ident(table)+" (data) VALUES (REPEAT('x', ?))", bytes); err != nil {
			return 0, fmt.Errorf("store the mail: %w", err)
		}
		return bytes, tx.Commit()
	})
}

func (s *store) execf(format string, args ...any) {
	s.t.Helper()
	s.exec(fmt.Sprintf(format, args...))
}

// queue is a Config.Pending that tests change while it is asked.
type queue struct {
	ids  atomic.Pointer[[]int64]
	fail atomic.Pointer[error]
}

func (q *queue) add(ids ...int64) {
	var all []int64
	if known := q.ids.Load(); known != nil {
		all = slices.Clone(*known)
	}
	all = append(all, ids...)
	q.ids.Store(&all)
}

func (q *queue) Pending(context.Context) ([]int64, error) {
	if err := q.fail.Load(); err != nil {
		return nil, *err
	}
	if ids := q.ids.Load(); ids != nil {
		return *ids, nil
	}
	return nil, nil
}

// pointing returns the ids of the messages that point at a raw table.
func (s *store) pointing() []int64 {
	s.t.Helper()
	return s.ids("SELECT id FROM " + s.Ident("messages") + " WHERE raw_table IS NOT NULL ORDER BY id")
}

// pointingAt returns how many messages point at a day's table.
func (s *store) pointingAt(ago int) (n int) {
	s.t.Helper()
	s.scan("SELECT COUNT(*) FROM "+s.Ident("messages")+" WHERE raw_table=?", []any{s.day(ago)}, &n)
	return n
}

func (s *store) ids(query string, args ...any) (ids []int64) {
	s.t.Helper()
	for _, text := range s.column(query, args...) {
		var id int64
		_, err := fmt.Sscan(text, &id)
		require.NoError(s.t, err)
		ids = append(ids, id)
	}
	return ids
}

// addMessages adds n messages of a day with following ids, and returns the first.
func (s *store) addMessages(ago, n int) (first int64) {
	s.t.Helper()
	s.scan("SELECT COALESCE(MAX(id), 0) + 1 FROM "+s.Ident("messages"), nil, &first)
	s.insertMany(n, "INSERT INTO "+s.Ident("messages")+" (id, scope, spam, timestamp, held, size, raw_table, raw_headers_id, raw_body_id) "+
		fmt.Sprintf("SELECT %d+n, 'incoming', 0, %d+n/1000, 0, 10, '%s', 1, 2", first, s.today.AddDate(0, 0, -ago).Unix(), s.day(ago)))
	return first
}

// insertMany completes an INSERT … SELECT of one row for each number n from 0 on.
func (s *store) insertMany(count int, insert string) {
	s.t.Helper()
	digits := "(SELECT 0 AS d UNION ALL SELECT 1 UNION ALL SELECT 2 UNION ALL SELECT 3 UNION ALL SELECT 4 UNION ALL SELECT 5 UNION ALL SELECT 6" +
		" UNION ALL SELECT 7 UNION ALL SELECT 8 UNION ALL SELECT 9)"
	s.exec(insert + " FROM (SELECT a.d+10*b.d+100*c.d+1000*d.d+10000*e.d AS n FROM " +
		digits + " AS a, " + digits + " AS b, " + digits + " AS c, " + digits + " AS d, " + digits + " AS e) AS numbers WHERE n<" + fmt.Sprint(count))
}

// faulty returns a provisioner for the database of s whose statements can be made to fail.
func (s *store) faulty(cfg provisioner.Config) (*provisioner.Provisioner, *faultsql.Connector) {
	s.t.Helper()
	dsn, err := mysql.ParseDSN(mysqltest.DSN(s.t, s.name))
	require.NoError(s.t, err)
	connector, err := mysql.NewConnector(dsn)
	require.NoError(s.t, err)
	faults := faultsql.New(connector)
	db := sql.OpenDB(faults)
	s.t.Cleanup(func() { db.Close() })
	cfg.Database = s.name
	p, err := provisioner.New(db, cfg)
	require.NoError(s.t, err)
	return p, faults
}

// addChildren adds one row for the message to each table of children.
func (s *store) addChildren(id int64) {
	s.t.Helper()
	for _, child := range provisioner.PostalSchema().Children {
		s.exec(fmt.Sprint("INSERT INTO ", s.Ident(child.Name), " (message_id) VALUES (", id, ")"))
	}
}

// requireMessages says which messages there must be, and that each has its children, and nobody else.
func (s *store) requireMessages(ids []int64) {
	s.t.Helper()
	require.Equal(s.t, ids, s.ids("SELECT id FROM "+s.Ident("messages")+" ORDER BY id"))
	for _, child := range provisioner.PostalSchema().Children {
		require.Equal(s.t, ids, s.ids("SELECT message_id FROM "+s.Ident(child.Name)+" ORDER BY message_id"), child.Name)
	}
}
