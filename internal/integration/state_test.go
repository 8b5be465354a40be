package integration

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// What the lines of a state begin with.
const (
	columnLine  = "column"  // a column of a table, and its type
	bookLine    = "book"    // a raw table and a size booked for it; ids differ between two repairs of the same row
	pointerLine = "pointer" // what a message says of its raw mail

	leaseTable = "leases"
)

// state is the content of a message database: a line for each column, row and pointer, each as often as it is there.
type state map[string]int

// state reads everything that is in the database but the leases.
func (m *mailbox) state() state {
	m.t.Helper()
	columns := map[string][]string{}
	s := state{}
	for _, line := range m.strings("SELECT CAST(CONCAT_WS('|', TABLE_NAME, COLUMN_NAME, COLUMN_TYPE) AS CHAR) FROM information_schema.COLUMNS"+
		" WHERE TABLE_SCHEMA = ? ORDER BY TABLE_NAME, ORDINAL_POSITION", m.name) {
		table, column, _ := strings.Cut(line, "|")
		if table == leaseTable {
			continue
		}
		s[columnLine+"|"+line]++
		column, _, _ = strings.Cut(column, "|")
		columns[table] = append(columns[table], column)
	}
	var parts []string
	for _, table := range slices.Sorted(maps.Keys(columns)) {
		switch table {
		case "raw_message_sizes":
			parts = append(parts, m.lines(table, bookLine, []string{"table_name", "size"}, "TRUE"))
		case "messages":
			parts = append(parts, m.lines(table, pointerLine, append([]string{"id"}, pointerColumns()...), "raw_table IS NOT NULL"))
			parts = append(parts, m.lines(table, table, without(columns[table], pointerColumns()), "TRUE"))
		default:
			parts = append(parts, m.lines(table, table, columns[table], "TRUE"))
		}
	}
	if len(parts) > 0 {
		for _, line := range m.strings(strings.Join(parts, " UNION ALL ")) {
			s[line]++
		}
	}
	return s
}

func pointerColumns() []string { return []string{"raw_table", "raw_headers_id", "raw_body_id", "size"} }

// lines is a query for the rows of a table, each as a line.
func (m *mailbox) lines(table, label string, columns []string, where string) string {
	values := make([]string, len(columns))
	for i, column := range columns {
		values[i] = "COALESCE(CAST(`" + column + "` AS BINARY), 'NULL')"
	}
	return fmt.Sprintf("SELECT CONCAT_WS('|', '%s', %s) FROM %s WHERE %s", label, strings.Join(values, ", "), m.store.Ident(table), where)
}

func without(all, some []string) []string {
	return slices.DeleteFunc(slices.Clone(all), func(s string) bool { return slices.Contains(some, s) })
}

// rows are the lines of s but the columns, whose types each kind of server spells in its own way.
func (s state) rows() state {
	rows := maps.Clone(s)
	maps.DeleteFunc(rows, func(line string, _ int) bool { return strings.HasPrefix(line, columnLine+"|") })
	return rows
}

// missing lists the lines of s that other lacks.
func (s state) missing(other state) []string {
	var lines []string
	for line, n := range s {
		if other[line] < n {
			lines = append(lines, line)
		}
	}
	slices.Sort(lines)
	return lines
}

// both has the lines that s and other have.
func (s state) both(other state) state {
	common := state{}
	for line, n := range s {
		if n = min(n, other[line]); n > 0 {
			common[line] = n
		}
	}
	return common
}

// fields lists what the field number i of the lines with this label says, each once.
func (s state) fields(label string, i int) []string {
	all := map[string]bool{}
	for line := range s {
		if parts := strings.Split(line, "|"); parts[0] == label {
			all[parts[i]] = true
		}
	}
	return slices.Sorted(maps.Keys(all))
}

// requireSame wants two states to have the same content.
func requireSame(t *testing.T, want, got state, why string) {
	t.Helper()
	require.Empty(t, want.missing(got), "missing %s", why)
	require.Empty(t, got.missing(want), "too much %s", why)
}

// requireNothingLost wants what holds at any moment between before and after: all that both have is there, no message points at a
// table that is gone unless it did before, and what was booked is booked for as long as its table is there.
func requireNothingLost(t *testing.T, before, now, after state, why string) {
	t.Helper()
	require.Empty(t, before.both(after).missing(now), "lost %s", why)
	tables, booked := now.fields(columnLine, 1), now.fields(bookLine, 1)
	for _, table := range without(now.fields(pointerLine, 2), before.dangling()) {
		require.Contains(t, tables, table, "a pointer is left %s", why)
	}
	for _, table := range before.fields(bookLine, 1) {
		if slices.Contains(tables, table) {
			require.Contains(t, booked, table, "the bookkeeping is gone before its table %s", why)
		}
	}
}

// dangling lists the raw tables that messages point at and that aren't there.
func (s state) dangling() []string {
	return without(s.fields(pointerLine, 2), s.fields(columnLine, 1))
}
