package integration

import (
	"context"
	"database/sql"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mailretention/mailretention/internal/mariadb"
	"github.com/mailretention/mailretention/provisioner"
	"github.com/mailretention/mailretention/retention"
)

// written adds up the server's counters of commands that are more than reading, and of rows written to tables that aren't temporary.
func (m *mailbox) written() (total int64) {
	m.t.Helper()
	reading := []string{"com_select", "com_set_option", "com_change_db", "com_begin", "com_commit", "com_rollback"}
	rows, err := m.db.QueryContext(m.t.Context(), "SHOW GLOBAL STATUS WHERE Variable_name LIKE 'Com\\_%' OR Variable_name IN ('Handler_write', 'Handler_update', 'Handler_delete')")
	require.NoError(m.t, err)
	defer rows.Close()
	for rows.Next() {
		var name, value string
		require.NoError(m.t, rows.Scan(&name, &value))
		name = strings.ToLower(name)
		if strings.HasPrefix(name, "com_show_") || strings.HasPrefix(name, "com_stmt_") || slices.Contains(reading, name) {
			continue
		}
		n, err := strconv.ParseInt(value, 10, 64)
		require.NoError(m.t, err, name)
		total += n
	}
	require.NoError(m.t, rows.Err())
	return total
}

// A preview by an account that may only read shows what a run would do, and the server counts nothing that was written.
func TestDryRunWithoutWriteRightsWritesNothing(t *testing.T) {
	m, server := privateMailbox(t, mariadb.Options{Grants: true})
	for back := range 9 {
		m.fill(back, 3, 100)
	}
	m.exec("DELETE FROM raw_message_sizes WHERE table_name = ?", m.table(7)) // is missing
	m.exec("INSERT INTO raw_message_sizes (table_name, size) VALUES (?, 5)", m.table(60))
	m.exec("UPDATE messages SET raw_table = ? WHERE raw_table = ? LIMIT 1", m.table(50), m.table(3))
	m.exec("UPDATE messages SET held = 1 WHERE id = ?", m.ids(8)[0])
	m.queue = m.ids(6)[:1]
	m.grant("reader", "SELECT ON `"+m.name+"`.*")
	for name, source := range map[string]provisioner.SizeSource{"booked": provisioner.SizeFromBookkeeping, "stored": provisioner.SizeFromStorage} {
		t.Run(name, func(t *testing.T) {
			cfg := provisioner.Config{SizeFrom: source, Pending: func(context.Context) ([]int64, error) { return m.queue, nil }}
			plan := func(db *sql.DB) retention.Plan {
				runner, err := retention.New(m.provisioner(db, cfg), retention.Config{
					Name: "test", Policy: retention.Policy{RawDays: new(4), RawBytes: new(int64(1)), MessageDays: new(5)},
				})
				require.NoError(t, err)
				plan, err := runner.Plan(t.Context())
				require.NoError(t, err)
				return plan
			}
			reader := openAs(t, server, "reader", "")
			before, content := m.written(), m.state()
			seen := plan(reader)
			require.Equal(t, before, m.written())
			requireSame(t, content, m.state(), "")
			require.Len(t, seen.Drops, 5)
			require.Len(t, seen.Drift, 3)
			all := plan(m.db)
			all.Now = seen.Now
			if source == provisioner.SizeFromBookkeeping {
				require.Equal(t, all, seen, "who may do everything sees no more")
			}
			_, err := reader.ExecContext(t.Context(), "DELETE FROM "+m.store.Ident("messages"))
			require.Error(t, err, "the account may not write")
			m.exec("UPDATE messages SET status = ?", name)
			require.Greater(t, m.written(), before, "what is written is counted")
		})
	}
}
