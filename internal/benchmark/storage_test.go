package benchmark

import (
	"context"
	"database/sql"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mailretention/mailretention/internal/faultsql"
	"github.com/mailretention/mailretention/provisioner"
)

// sizes reads the inventories of the fleet with sizes from storage, through one StorageSizes and through one each.
func (f *fleet) sizes(b *testing.B) {
	counted := faultsql.New(connector(b, f.server.dsn(""), 0))
	db := sql.OpenDB(counted)
	b.Cleanup(func() { require.NoError(b, db.Close()) })
	read := func(ctx context.Context, storage *provisioner.StorageSizes) (lists int) {
		counted.Reset()
		for _, m := range f.boxes {
			store, err := provisioner.New(db, provisioner.Config{Database: m.name, SizeFrom: provisioner.SizeFromStorage, Storage: storage})
			require.NoError(b, err)
			inv, err := store.Inventory(ctx)
			require.NoError(b, err)
			for _, table := range inv.Tables {
				require.True(b, table.SizeKnown)
			}
		}
		for _, statement := range counted.Log() {
			if strings.Contains(statement, "TABLESPACES") {
				lists++
			}
		}
		return lists
	}
	var shared int
	compare(b, func(ctx context.Context) error {
		shared = read(ctx, provisioner.NewStorageSizes(db))
		require.LessOrEqual(b, shared, 2, "one, and on MySQL one that MariaDB would have answered")
		return nil
	}, func(ctx context.Context) error {
		require.GreaterOrEqual(b, read(ctx, nil), len(f.boxes))
		return nil
	})
	b.ReportMetric(float64(shared), "lists")
}
