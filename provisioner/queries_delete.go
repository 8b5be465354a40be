package provisioner

import (
	"fmt"
	"strings"
	"time"

	"github.com/mailretention/mailretention/internal/sqlname"
	"github.com/mailretention/mailretention/retention"
)

// selectKind reads the server's clock and what the name given is: NULL for nothing, or nothing that the account may see. It doesn't wait
// for whoever has the table locked: MariaDB would, twice, and then say the same.
func selectKind() string {
	return "/*M! SET STATEMENT lock_wait_timeout=0 FOR */ SELECT " + serverMicros + ", (SELECT TABLE_TYPE FROM information_schema.TABLES WHERE TABLE_SCHEMA=? AND " + exactly("TABLE_NAME") + ")"
}

func dropTable(table string) string { return "DROP TABLE IF EXISTS " + table }

// selectLastLook reads the connection's id and whether any message points at a table.
func (n names) selectLastLook() string {
	if n.rawTable == "" {
		return "SELECT CONNECTION_ID(), FALSE"
	}
	return "SELECT CONNECTION_ID(), EXISTS (SELECT 1 FROM " + n.messages + " " + n.forceIndex + " WHERE " + exactly(n.rawTable) + ")"
}

// selectRunning reads the number of a connection if it runs this statement.
const selectRunning = "SELECT ID FROM information_schema.PROCESSLIST WHERE ID=? AND INFO=?"

func killQuery(connection uint64) string { return "KILL QUERY " + sqlname.Uint(connection) }

// where is the condition that a column is in one of spans. Of each the last id stands alone: a range also locks the row behind it,
// which then is one of the span's own.
func where(column string, spans []span) string {
	var ranges, single []string
	for _, s := range spans {
		if s.first < s.last {
			ranges = append(ranges, column+" BETWEEN "+sqlname.Int(s.first)+" AND "+sqlname.Int(s.last-1))
		}
		single = append(single, sqlname.Int(s.last))
	}
	return "(" + strings.Join(append(ranges, column+" IN ("+strings.Join(single, ",")+")"), " OR ") + ")"
}

// fates reads the fate of a row of which these conditions say what becomes of it.
func fates(goesIf, protectedIf string) string {
	return fmt.Sprintf("CASE WHEN %s THEN %d WHEN %s THEN %d ELSE %d END", goesIf, goes, protectedIf, protected, stays)
}

// anybody is a condition that all rows meet.
const anybody = "TRUE"

// unheld is the condition that a message isn't held.
func (n names) unheld() string {
	if n.held == "" {
		return anybody
	}
	return "COALESCE(" + n.held + ",0)=0"
}

// selectReferences reads the messages above an id that point at a table: those that meet the condition go.
// Without ORDER BY, which would sort them all: the index has them in the order of ids.
func (n names) selectReferences(condition string, after int64, limit int) string {
	return fmt.Sprintf("SELECT %s, %s FROM %s %s WHERE %s AND %s>%d LIMIT %d",
		n.id, fates(condition, anybody), n.messages, n.forceIndex, exactly(n.rawTable), n.id, after, limit)
}

// clearReferences takes from the messages that point at a table, and meet the condition, all that says where their mail is.
func (n names) clearReferences(condition string, spans []span) string {
	return fmt.Sprintf("UPDATE %s FORCE INDEX (PRIMARY) SET %s=NULL WHERE %s AND %s AND %s",
		n.messages, strings.Join(n.clear, "=NULL, "), where(n.id, spans), exactly(n.rawTable), condition)
}

// isOld is the condition that a message has a time, and one before t and before the server's day: by no cut goes what comes today.
func (n names) isOld(t time.Time) string {
	none, today := "0", "TIMESTAMPDIFF(SECOND, '1970-01-01 00:00:00', UTC_DATE())"
	if n.timeKind == DateTime {
		none, today = "'1000-01-01'", "UTC_DATE()" // the first that the servers promise to hold
	}
	return n.time + ">" + none + " AND " + n.time + "<" + n.instant(t) + " AND " + n.time + "<" + today
}

// mayGo is the condition that cut takes a message.
func (n names) mayGo(cut retention.Cut) string {
	all := []string{n.isOld(cut.Before), n.unheld()}
	for _, hold := range cut.Except {
		all = append(all, n.outside(hold))
	}
	return strings.Join(all, " AND ")
}

// lastYear is the last that a DATETIME holds: what ends with it has nothing behind.
const lastYear = 9999

// outside is the condition that a message is of no day that hold has. An index can pass over these days by it.
func (n names) outside(hold retention.Hold) string {
	either := []string{"FALSE"}
	if !hold.From.IsZero() {
		either = append(either, n.time+"<"+n.instant(midnight(hold.From)))
	}
	if end := midnight(hold.To).AddDate(0, 0, 1); !hold.To.IsZero() && end.Year() <= lastYear {
		either = append(either, n.time+">="+n.instant(end))
	}
	return "(" + strings.Join(either, " OR ") + ")"
}

// instant is t as a literal of the kind that messages have.
func (n names) instant(t time.Time) string {
	if n.timeKind == DateTime {
		return "'" + t.UTC().Format("2006-01-02 15:04:05.000000") + "'"
	}
	return sqlname.Int(t.Unix()) + t.UTC().Format(".000000")
}

// selectFates reads the messages above an id, with their fates.
func (n names) selectFates(goesIf, protectedIf string, after int64, limit int) string {
	return fmt.Sprintf("SELECT %[1]s, %[2]s FROM %[3]s FORCE INDEX (PRIMARY) WHERE %[1]s>%[4]d ORDER BY %[1]s LIMIT %[5]d",
		n.id, fates(goesIf, protectedIf), n.messages, after, limit)
}

// selectOld reads messages above an id that go, in any order: ORDER BY would sort them all. The probe leads to an index, and the id,
// with 0 added, not away from it.
func (n names) selectOld(probe, goesIf string, after int64, limit int) string {
	return fmt.Sprintf("SELECT %[1]s, %[2]d FROM %[3]s WHERE (%[4]s) AND %[5]s AND %[1]s+0>%[6]d LIMIT %[7]d",
		n.id, goes, n.messages, probe, goesIf, after, limit)
}

// lockMessages reads one message of the spans, after it has waited for all that aren't committed yet. It reads the time, not the id:
// with what the index has alone the servers would read all of it in a small table, and wait for the rows of others.
func (n names) lockMessages(spans []span) string {
	return fmt.Sprintf("SELECT %s FROM %s FORCE INDEX (PRIMARY) WHERE %s LIMIT 1 FOR UPDATE", n.time, n.messages, where(n.id, spans))
}

func (n names) deleteMessages(goesIf string, spans []span) string {
	return n.byIndex(n.messages, "DELETE FROM "+n.messages+" WHERE "+where(n.id, spans)+" AND "+goesIf)
}

func (n names) deleteChildren(child childNames, spans []span) string {
	return n.byIndex(child.table, "DELETE FROM "+child.table+" WHERE "+where(child.messageID, spans))
}

// byIndex makes a DELETE or UPDATE look its rows up by an index, whichever serves, however small the table is, or however much of it the
// rows are: reading all of it would lock, and wait for, the rows of others. MariaDB is made to by safe updates, for this statement alone,
// and fails where no index serves; MySQL is by the hint. Each takes the other's for a comment.
func (n names) byIndex(table, statement string) string {
	verb, rest, _ := strings.Cut(statement, " ")
	hinted := strings.ReplaceAll(strings.TrimPrefix(table, n.database+"."), "*/", "")
	return "/*M! SET STATEMENT sql_safe_updates=1 FOR */ " + verb + " /*+ INDEX(" + hinted + ") */ " + rest
}

// byScan makes an UPDATE that reads all rows wait only for those that it changes, as it does by itself on MariaDB before 11.6.2, where
// innodb_snapshot_isolation isn't the default.
func byScan(statement string) string {
	return "/*M!110602 SET STATEMENT innodb_snapshot_isolation=0 FOR */ " + statement
}

// selectOrphans reads the ids above after, up to last, that a child has and no message.
func (n names) selectOrphans(child childNames, after, last int64, limit int) string {
	return fmt.Sprintf("SELECT DISTINCT c.%s, %d%s ORDER BY c.%[1]s LIMIT %[4]d", child.messageID, goes, n.orphans(child, after, last), limit)
}

// selectWhichHaveOrphans reads the numbers of the children that have ids up to last that no message has.
func (n names) selectWhichHaveOrphans(last int64) string {
	var which []string
	for i, child := range n.children {
		which = append(which, fmt.Sprintf("SELECT %d FROM DUAL WHERE EXISTS (SELECT 1%s)", i, n.orphans(child, 0, last)))
	}
	return strings.Join(which, " UNION ALL ")
}

// orphans are the rows of a child whose id is above after, up to last, and no message's.
func (n names) orphans(child childNames, after, last int64) string {
	return fmt.Sprintf(" FROM %s AS c LEFT JOIN %s AS m ON m.%s=c.%s WHERE c.%[4]s>%d AND c.%[4]s<=%[6]d AND m.%[3]s IS NULL",
		child.table, n.messages, n.id, child.messageID, after, last)
}
