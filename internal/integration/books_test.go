package integration

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mailretention/mailretention/retention"
)

const orphanBytes = 5_000_000_000

func sizeLimit(bytes int64) retention.Policy { return retention.Policy{RawBytes: &bytes} }

// One stale row above the limit once made the size rule drop every raw table, today's too.
func TestOrphanBookkeepingRowDropsNothing(t *testing.T) {
	m := newMailbox(t)
	for back := range 6 {
		m.fill(back, 2, 1000)
	}
	m.exec("INSERT INTO raw_message_sizes (table_name, size) VALUES (?, ?)", m.table(60), int64(orphanBytes))
	report := m.run(sizeLimit(1 << 30))
	require.Empty(t, report.Tables)
	require.Equal(t, 1, report.Repaired)
	require.Equal(t, m.days(0, 1, 2, 3, 4, 5), m.tables())
	m.requireBooksAgree()
}

func TestOnlyOrphansAndNoTable(t *testing.T) {
	m := newMailbox(t)
	m.exec("INSERT INTO raw_message_sizes (table_name, size) VALUES (?, ?), (?, ?)", m.table(60), int64(orphanBytes), m.table(61), int64(orphanBytes))
	report := m.run(sizeLimit(1 << 30))
	require.Empty(t, report.Tables)
	require.Equal(t, 2, report.Repaired)
	require.Equal(t, retention.OutcomeDone, report.Outcome)
	require.Empty(t, m.tables())
	m.requireBooksAgree()
	require.Equal(t, retention.OutcomeNothingToDo, m.run(sizeLimit(1<<30)).Outcome)
}

// Existing installations have no unique key on the bookkeeping's name.
func TestDoubleRowsCountOnce(t *testing.T) {
	m := newMailbox(t)
	m.exec("DROP TABLE raw_message_sizes")
	m.exec("CREATE TABLE raw_message_sizes (id INT AUTO_INCREMENT PRIMARY KEY, table_name VARCHAR(255), size BIGINT, KEY on_table_name (table_name(14)))")
	for back := range 6 {
		m.fill(back, 2, 1000)
	}
	m.exec("INSERT INTO raw_message_sizes (table_name, size) VALUES (?, 2000), (?, ?)", m.table(4), m.table(5), int64(orphanBytes))
	report := m.run(sizeLimit(12_000))
	require.Empty(t, report.Tables, "six days of 2,000 bytes are within 12,000")
	require.Equal(t, 2, report.Repaired)
	m.requireBooksAgree()
	require.EqualValues(t, 12_000, m.count("SELECT SUM(size) FROM raw_message_sizes"), "rows that differ are measured")
}

func TestTableWithoutRowIsMeasured(t *testing.T) {
	m := newMailbox(t)
	for back := range 6 {
		m.fill(back, 2, 1000)
	}
	m.exec("DELETE FROM raw_message_sizes WHERE table_name = ?", m.table(5))
	report := m.run(sizeLimit(10_000))
	require.Equal(t, m.days(5), dropped(report), "its 2,000 bytes count")
	require.EqualValues(t, 2000, report.BytesFreed)
	m.requireBooksAgree()
}

func TestSizeLimitThatCannotBeMet(t *testing.T) {
	m := newMailbox(t)
	for back := range 4 {
		m.fill(back, 2, 1000)
	}
	report := m.run(sizeLimit(1))
	require.Equal(t, []string{m.table(3), m.table(2)}, dropped(report), "oldest first")
	require.EqualValues(t, 3999, report.Plan.Shortfall, "today and yesterday stay")
	require.Equal(t, m.days(0, 1), m.tables())
	report = m.run(sizeLimit(1))
	require.Equal(t, retention.OutcomeNothingToDo, report.Outcome)
	require.EqualValues(t, 3999, report.Plan.Shortfall)
}

// What looks like a raw table but is no day's is never touched, and stops nothing.
func TestBadNamesAreIgnoredAndTheExpiredTableBesideThemGoes(t *testing.T) {
	m := newMailbox(t)
	bad := []string{"RAW-2024-01-01", "raw-2024-02-30", "raw-2024-1-5", "raw-2024-01-05-old", "raw-2024-13-45", "raw-backup", "raw-`2024-01-01"}
	for _, name := range bad {
		m.createTable(name)
	}
	m.exec("CREATE VIEW " + m.store.Ident("raw-2024-01-07") + " AS SELECT 1 AS id")
	bad = append(bad, "raw-2024-01-07")
	if _, err := m.db.ExecContext(t.Context(), "CREATE SEQUENCE "+m.store.Ident("raw-2024-01-08")); err == nil { // MySQL has none
		bad = append(bad, "raw-2024-01-08")
	}
	m.fill(0, 1, 10)
	m.fill(1, 1, 10)
	m.fill(9, 1, 10)
	before := m.tables()
	report := m.run(retention.Policy{RawDays: new(5)})
	require.Equal(t, m.days(9), dropped(report))
	var ignored []string
	for _, i := range report.Plan.Ignored {
		require.NotEmpty(t, i.Reason)
		ignored = append(ignored, i.Name)
	}
	require.ElementsMatch(t, bad, ignored)
	require.ElementsMatch(t, before, append(m.tables(), m.table(9)))
}
