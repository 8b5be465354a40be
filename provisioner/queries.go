package provisioner

import (
	"fmt"
	"strings"
	"time"

	"github.com/mailretention/mailretention/internal/sqlname"
)

// Times cross the wire as microseconds since 1970, so that neither the session's time zone nor the DSN's parseTime and loc matter.
// Names are compared twice: by the column's collation, which has the index, and byte for byte, since under that collation
// RAW-2026-06-03, a trailing space and full-width digits are equal to raw-2026-06-03.

const (
	serverMicros  = "TIMESTAMPDIFF(MICROSECOND, '1970-01-01 00:00:00', UTC_TIMESTAMP(6))"
	selectClock   = "SELECT " + serverMicros
	selectSession = "SELECT @@SESSION.autocommit, @@SESSION.character_set_client"
	autocommitOn  = "SET SESSION autocommit=1"
	autocommitOff = "SET SESSION autocommit=0"

	// The lists of tablespaces. MariaDB's has the names as they are on disk, in the character set that only it knows as filename.
	selectMariaDBTablespaces = "SELECT CONVERT(CAST(CAST(SUBSTRING_INDEX(NAME, '/', 1) AS BINARY) AS CHAR CHARACTER SET filename) USING utf8mb4)," +
		" CONVERT(CAST(CAST(SUBSTRING_INDEX(NAME, '/', -1) AS BINARY) AS CHAR CHARACTER SET filename) USING utf8mb4), FILE_SIZE" +
		" FROM information_schema.INNODB_SYS_TABLESPACES WHERE NAME LIKE '%/%'"
	selectMySQLTablespaces = "SELECT SUBSTRING_INDEX(NAME, '/', 1), SUBSTRING_INDEX(NAME, '/', -1), FILE_SIZE" +
		" FROM information_schema.INNODB_TABLESPACES WHERE NAME LIKE '%/%'"
	selectTableLengths = "SELECT TABLE_NAME, DATA_LENGTH + INDEX_LENGTH FROM information_schema.TABLES" +
		" WHERE TABLE_SCHEMA=? AND DATA_LENGTH IS NOT NULL"
	freshTableLengths = "SET SESSION information_schema_stats_expiry=0" // MySQL's are a day old otherwise

	// tableOptions stand behind the columns of each table that is created here.
	tableOptions = " ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_unicode_ci"

	newestMessages = 1000 // how many of the highest ids are looked at for the newest time
)

// What selectMessageFacts says of a value.
const (
	factNewest   = "newest"   // the latest time, in microseconds
	factHeld     = "held"     // a raw table that a held message needs
	factDangling = "dangling" // a raw table that messages point at
)

func setLockWaits(bound time.Duration) string {
	seconds := int64((bound + time.Second - 1) / time.Second)
	return fmt.Sprintf("SET @mailretention_rows=@@SESSION.innodb_lock_wait_timeout, @mailretention_tables=@@SESSION.lock_wait_timeout,"+
		" SESSION innodb_lock_wait_timeout=%[1]d, SESSION lock_wait_timeout=%[1]d", seconds)
}

const resetLockWaits = "SET SESSION innodb_lock_wait_timeout=@mailretention_rows, SESSION lock_wait_timeout=@mailretention_tables"

func (n names) createDatabase() string {
	return "CREATE DATABASE IF NOT EXISTS " + n.database + " CHARACTER SET utf8mb4 COLLATE utf8mb4_unicode_ci"
}

func (n names) dropDatabase() string { return "DROP DATABASE IF EXISTS " + n.database }

// createSizes makes the bookkeeping. Its name column tells apart what looks alike, and has one row for each name.
func (n names) createSizes() string {
	return createTable(n.sizes, fmt.Sprintf("id int NOT NULL AUTO_INCREMENT, %s varchar(255) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin, %s bigint,"+
		" PRIMARY KEY (id), UNIQUE KEY on_table_name (%s)", n.sizesTable, n.sizesBytes, n.sizesTable))
}

func createTable(table, columns string) string {
	return "CREATE TABLE IF NOT EXISTS " + table + " (" + columns + ")" + tableOptions
}

// readNothing fails if there is no such table, or if it can't be read.
func readNothing(table string) string { return "SELECT 1 FROM " + table + " LIMIT 0" }

func showColumns(table string) string { return "SHOW COLUMNS FROM " + table }

// showTables lists names and kinds. Beside information_schema.TABLES it is five times as fast on MariaDB, and it says
// when there is no such database.
func (n names) showTables() string { return "SHOW FULL TABLES FROM " + n.database }

// selectBooks reads the server's clock in one row, and the bookkeeping in the others.
func (n names) selectBooks() string {
	clock := selectClock + ", NULL, NULL"
	if n.sizes == "" {
		return clock
	}
	return clock + fmt.Sprintf(" UNION ALL SELECT NULL, %s, CAST(%s AS SIGNED) FROM %s", n.sizesTable, n.sizesBytes, n.sizes)
}

// selectMessageFacts reads all that an inventory needs of the messages. Its arguments are those of selectDangling.
func (n names) selectMessageFacts(dangling int) string {
	facts := []string{fmt.Sprintf("SELECT '%s', CAST(%s AS BINARY) FROM (SELECT %s AS t FROM %s ORDER BY %s DESC LIMIT %d) AS recent",
		factNewest, n.micros("NULLIF(MAX(t),0)"), n.time, n.messages, n.id, newestMessages)}
	if n.held != "" {
		facts = append(facts, fmt.Sprintf("SELECT DISTINCT '%s', %s FROM %s WHERE %s<>0 AND %s IS NOT NULL",
			factHeld, n.pointer(), n.messages, n.held, n.rawTable))
	}
	if dangling > 0 {
		facts = append(facts, n.selectDangling(dangling))
	}
	return strings.Join(facts, " UNION ALL ")
}

// selectDangling reads which raw tables in so many ranges of names messages point at. A list of all names would cost a look into the
// index for each.
func (n names) selectDangling(ranges int) string {
	return fmt.Sprintf("SELECT DISTINCT '%s', %s FROM %s %s WHERE %s", factDangling, n.pointer(), n.messages, n.forceIndex,
		strings.TrimSuffix(strings.Repeat(n.rawTable+" BETWEEN ? AND ? OR ", ranges), " OR "))
}

// pointer is the name of the raw table that a message points at, byte for byte; of a longer value as much as no table's name has. Whole values
// of 255 characters would make MariaDB keep the distinct ones in a table on disk.
func (n names) pointer() string {
	return fmt.Sprintf("CAST(LEFT(%s, %d) AS BINARY)", n.rawTable, sqlname.MaxLen+1)
}

// micros turns a value of the message time's kind into microseconds since 1970.
func (n names) micros(value string) string {
	if n.timeKind == DateTime {
		return "TIMESTAMPDIFF(MICROSECOND, '1970-01-01 00:00:00', " + value + ")"
	}
	return "CAST(" + value + " * 1000000 AS SIGNED)"
}

// selectPointers reads which raw tables the messages with these ids point at.
func (n names) selectPointers(ids int) string {
	return fmt.Sprintf("SELECT DISTINCT %s FROM %s WHERE %s IN (%s) AND %s IS NOT NULL",
		n.pointer(), n.messages, n.id, placeholders(ids), n.rawTable)
}

// selectMessageBytes adds up the sizes of the messages of each of these raw tables.
func (n names) selectMessageBytes(tables int) string {
	return fmt.Sprintf("SELECT %[1]s, CAST(SUM(CAST(%[2]s AS DECIMAL(30,0))) AS SIGNED) FROM %[3]s %[4]s WHERE %[5]s IN (%[6]s) GROUP BY %[1]s",
		n.pointer(), n.size, n.messages, n.forceIndex, n.rawTable, placeholders(tables))
}

func (n names) whereBooked() string { return " WHERE " + exactly(n.sizesTable) }

// lockBooked locks the rows of a raw table. It is an UPDATE, which changes nothing: no SELECT can be made to use an index whose name isn't
// known, on MariaDB.
func (n names) lockBooked() string {
	return fmt.Sprintf("UPDATE %s SET %[2]s=%[2]s%[3]s", n.sizes, n.sizesBytes, n.whereBooked())
}

func (n names) selectBooked() string {
	return "SELECT CAST(" + n.sizesBytes + " AS SIGNED) FROM " + n.sizes + n.whereBooked()
}

func (n names) insertBooked() string {
	return "INSERT INTO " + n.sizes + " (" + n.sizesTable + ", " + n.sizesBytes + ") VALUES (?, ?)"
}

func (n names) addBooked() string {
	return fmt.Sprintf("UPDATE %s SET %[2]s=COALESCE(%[2]s, 0)+?%s", n.sizes, n.sizesBytes, n.whereBooked())
}

func (n names) setBooked() string {
	return "UPDATE " + n.sizes + " SET " + n.sizesBytes + "=?" + n.whereBooked()
}

func (n names) deleteBooked() string { return "DELETE FROM " + n.sizes + n.whereBooked() }

// deleteDoubles leaves the row with the lowest id if it is given the number of the others.
func (n names) deleteDoubles() string { return n.deleteBooked() + " ORDER BY id DESC LIMIT ?" }

// exactly compares a column with a name; it takes the name twice.
func exactly(column string) string {
	return column + "=? AND CAST(" + column + " AS BINARY)=CAST(? AS BINARY)"
}

func placeholders(n int) string { return strings.TrimSuffix(strings.Repeat("?,", n), ",") }
