// Package mysqlerr sorts the errors of MySQL and MariaDB by their numbers, and by what a caller can do about them.
//
// Numbers: MySQL 9 "Server Error Message Reference", MariaDB "Error Code Reference".
package mysqlerr

import (
	"context"
	"database/sql/driver"
	"errors"
	"io"
	"net"
	"slices"

	"github.com/go-sql-driver/mysql"
)

// Error numbers that some code asks for by name.
const (
	ChangedSinceRead    = 1020 // ER_CHECKREAD: innodb_snapshot_isolation of MariaDB
	DatabaseDenied      = 1044 // ER_DBACCESS_DENIED_ERROR
	AccessDenied        = 1045 // ER_ACCESS_DENIED_ERROR
	BadDatabase         = 1049 // ER_BAD_DB_ERROR
	UnknownTable        = 1051 // ER_BAD_TABLE_ERROR
	UnknownColumn       = 1054 // ER_BAD_FIELD_ERROR
	Duplicate           = 1062 // ER_DUP_ENTRY
	NoSuchThread        = 1094 // ER_NO_SUCH_THREAD
	TableDenied         = 1142 // ER_TABLEACCESS_DENIED_ERROR
	ColumnDenied        = 1143 // ER_COLUMNACCESS_DENIED_ERROR
	UnknownInformation  = 1109 // ER_UNKNOWN_TABLE: the information schema has no such table
	UnknownCharset      = 1115 // ER_UNKNOWN_CHARACTER_SET
	NoSuchTable         = 1146 // ER_NO_SUCH_TABLE
	NoKeyUsed           = 1175 // ER_UPDATE_WITHOUT_KEY_IN_SAFE_MODE
	LockWaitTimeout     = 1205 // ER_LOCK_WAIT_TIMEOUT
	Deadlock            = 1213 // ER_LOCK_DEADLOCK
	SpecialDenied       = 1227 // ER_SPECIFIC_ACCESS_DENIED_ERROR
	QueryInterrupted    = 1317 // ER_QUERY_INTERRUPTED
	DataTooLong         = 1406 // ER_DATA_TOO_LONG
	AutoincReadFailed   = 1467 // ER_AUTOINC_READ_FAILED
	BinlogStatementOnly = 1665 // ER_BINLOG_STMT_MODE_AND_ROW_ENGINE
	StatementTimeout    = 1969 // ER_STATEMENT_TIMEOUT of MariaDB
	QueryTimeout        = 3024 // ER_QUERY_TIMEOUT of MySQL
	LockNotAvailable    = 3572 // ER_LOCK_NOWAIT of MySQL

	tooManyConnections  = 1040 // ER_CON_COUNT_ERROR
	notReady            = 1047 // ER_UNKNOWN_COM_ERROR: a Galera node that has left its cluster
	shuttingDown        = 1053 // ER_SERVER_SHUTDOWN
	commitFailed        = 1180 // ER_ERROR_DURING_COMMIT
	tooManyUserConns    = 1203 // ER_TOO_MANY_USER_CONNECTIONS
	userLimitReached    = 1226 // ER_USER_LIMIT_REACHED
	optionPrevents      = 1290 // ER_OPTION_PREVENTS_STATEMENT: read_only
	readOnlyTransaction = 1792 // ER_CANT_EXECUTE_IN_READ_ONLY_TRANSACTION
	readOnlyMode        = 1836 // ER_READ_ONLY_MODE
	connectionKilled    = 1927 // ER_CONNECTION_KILLED of MariaDB
	readOnlyNode        = 3100 // ER_RUN_HOOK_ERROR: group replication refuses
	rolledBackByPlugin  = 3101 // ER_TRANSACTION_ROLLBACK_DURING_COMMIT
)

// Class says what a caller can do about an error.
type Class string

// The classes. The zero Class is an error that no rule knows: treat it as [Final].
const (
	Retry       Class = "retry"        // rolled back whole by the server: the same transaction again at once
	Busy        Class = "busy"         // a lock wait ended; only the statement was rolled back: roll back, then again
	NotWritable Class = "not writable" // this server doesn't take writes: another connection may lead to one that does
	BackOff     Class = "back off"     // the server takes no work just now
	Ambiguous   Class = "ambiguous"    // the statement may have run or may still run
	Final       Class = "final"        // the same statement fails again
)

// Number returns the server's error number, 0 if err isn't an error of a server.
func Number(err error) uint16 {
	if e, ok := errors.AsType[*mysql.MySQLError](err); ok {
		return e.Number
	}
	return 0
}

// Is reports whether err is a server's error with one of the numbers.
func Is(err error, numbers ...uint16) bool {
	n := Number(err)
	return n != 0 && slices.Contains(numbers, n)
}

// Classify sorts err, which is not nil.
func Classify(err error) Class {
	switch Number(err) {
	case 0:
		if lost(err) {
			return Ambiguous
		}
		return ""
	case Deadlock, ChangedSinceRead:
		return Retry
	case LockWaitTimeout, LockNotAvailable:
		return Busy
	case optionPrevents, readOnlyTransaction, readOnlyMode, readOnlyNode, rolledBackByPlugin:
		return NotWritable
	case notReady, tooManyConnections, tooManyUserConns, userLimitReached, shuttingDown:
		return BackOff
	case commitFailed, QueryInterrupted, StatementTimeout, QueryTimeout, connectionKilled:
		return Ambiguous
	case TableDenied, ColumnDenied, DatabaseDenied, AccessDenied, SpecialDenied, NoSuchTable, DataTooLong, BadDatabase, UnknownColumn:
		return Final
	}
	return ""
}

// lost reports whether err leaves open what became of a statement: the connection broke or the caller gave up.
func lost(err error) bool {
	_, network := errors.AsType[net.Error](err)
	return network ||
		errors.Is(err, driver.ErrBadConn) || errors.Is(err, mysql.ErrInvalidConn) ||
		errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, net.ErrClosed) ||
		errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)
}
