package provisioner_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mailretention/mailretention/internal/mariadb"
	"github.com/mailretention/mailretention/internal/mysqltest"
	"github.com/mailretention/mailretention/provisioner"
)

const pageSize = 16 << 10

// private returns an account's pool on a server of the test's own, where the store s was provisioned by root.
func private(t *testing.T, options mariadb.Options, cfg provisioner.Config) *store {
	t.Helper()
	server := mysqltest.Server(t, options)
	db := openDSN(t, server.DSN(""))
	cfg.Database = "postal-server-17"
	p, err := provisioner.New(db, cfg)
	require.NoError(t, err)
	require.NoError(t, p.Provision(t.Context()))
	return &store{Provisioner: p, t: t, db: db, server: server, name: cfg.Database, today: today(t, db)}
}

func TestStorageSizesAreThoseOfTheFiles(t *testing.T) {
	s := private(t, mariadb.Options{}, provisioner.Config{SizeFrom: provisioner.SizeFromStorage})
	var directory string
	s.scan("SELECT @@datadir", nil, &directory)
	for ago := range 3 {
		s.addDay(ago, 0)
		s.execf("INSERT INTO %s (data) SELECT REPEAT('x', 50000) FROM information_schema.COLUMNS LIMIT %d", s.Ident(s.day(ago)), 100*ago)
	}
	files, err := filepath.Glob(filepath.Join(directory, "postal@002dserver@002d17", "raw@002d*.ibd"))
	require.NoError(t, err)
	require.Len(t, files, 3)
	inv := s.inventory()
	for i, file := range files {
		stat, err := os.Stat(file)
		require.NoError(t, err)
		require.True(t, inv.Tables[i].SizeKnown)
		require.InDelta(t, stat.Size(), inv.Tables[i].Bytes, pageSize, file)
	}
}

func TestStorageSizesAreReadOnceAMinute(t *testing.T) {
	db, first := mysqltest.DB(t)
	second := mysqltest.Unique(t)
	storage := provisioner.NewStorageSizes(db)
	for _, name := range []string{first, second} {
		p, err := provisioner.New(db, provisioner.Config{Database: name, SizeFrom: provisioner.SizeFromStorage, Storage: storage})
		require.NoError(t, err)
		require.NoError(t, p.Provision(t.Context()))
		s := &store{Provisioner: p, t: t, db: db, name: name, today: today(t, db)}
		s.addDay(3, 0)
		before := byName(s.inventory())[s.day(3)]
		require.True(t, before.SizeKnown, "a table that is younger than the list is known from the statistics")
	}
}
