package integration

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mailretention/mailretention/internal/mariadb"
	"github.com/mailretention/mailretention/provisioner"
	"github.com/mailretention/mailretention/retention"
)

// Right after a bulk load the rule of size goes by the files on disk. An account that may not see their sizes has the server's
// statistics, which can lag behind: then less goes, and never more.
func TestSizeRuleByStorageRightAfterABulkLoad(t *testing.T) {
	const days, mails, mail = 7, 20, 50_000
	m, server := privateMailbox(t, mariadb.Options{Grants: true})
	m.grant("worker", allRights+" ON `"+m.name+"`.*")
	var directory string
	require.NoError(t, m.db.QueryRowContext(t.Context(), "SELECT @@datadir").Scan(&directory))
	for back := range days {
		m.fill(back, 0, 0) // the bookkeeping says that there is nothing
		m.exec(fmt.Sprintf("INSERT INTO %s (data) SELECT REPEAT('x', %d) FROM information_schema.COLUMNS LIMIT %d", m.store.Ident(m.table(back)), mail, mails))
	}
	files, err := filepath.Glob(filepath.Join(directory, "postal@002dserver@002d17", "raw@002d*.ibd"))
	require.NoError(t, err)
	require.Len(t, files, days)
	total, bytes := int64(0), []int64{} // oldest first
	for _, file := range files {
		stat, err := os.Stat(file)
		require.NoError(t, err)
		require.Greater(t, stat.Size(), int64(mails*mail))
		bytes = append(bytes, stat.Size())
		total += stat.Size()
	}
	limit := total - bytes[0] - bytes[1] - 1 // three must go
	plan := func(account string) []string {
		runner, err := retention.New(m.provisioner(openAs(t, server, account, ""), provisioner.Config{SizeFrom: provisioner.SizeFromStorage}),
			retention.Config{Name: "test", Policy: sizeLimit(limit)})
		require.NoError(t, err)
		plan, err := runner.Plan(t.Context())
		require.NoError(t, err)
		require.Empty(t, plan.Warnings, "all sizes are known")
		names := []string{}
		for _, drop := range plan.Drops {
			names = append(names, drop.Table.Name)
		}
		return names
	}
	oldest := m.days(6, 5, 4)
	require.Equal(t, oldest, plan("root"))
	fewer := plan("worker")
	require.Equal(t, oldest[:len(fewer)], fewer)
	report, err := retention.Run(t.Context(), m.provisioner(m.db, provisioner.Config{SizeFrom: provisioner.SizeFromStorage}),
		retention.Config{Name: "test", Policy: sizeLimit(limit)})
	require.NoError(t, err)
	require.Equal(t, oldest, dropped(report))
	require.EqualValues(t, bytes[0]+bytes[1]+bytes[2], report.BytesFreed)
	left, err := filepath.Glob(filepath.Join(directory, "postal@002dserver@002d17", "raw@002d*.ibd"))
	require.NoError(t, err)
	require.Equal(t, files[3:], left)
}
