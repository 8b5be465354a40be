package provisioner_test

import (
	"context"
	"database/sql"
	"math"
	"strings"
	"testing"

	_ "github.com/go-sql-driver/mysql"
	"github.com/stretchr/testify/require"

	"github.com/mailretention/mailretention/provisioner"
)

// unopened returns a pool that has no server: what New accepts, it accepts without one.
func unopened(t *testing.T) *sql.DB {
	t.Helper()
	db, err := sql.Open("mysql", "nobody@tcp(127.0.0.1:1)/")
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, db.Close()) })
	return db
}

func TestNewAcceptsADatabaseAlone(t *testing.T) {
	p, err := provisioner.New(unopened(t), provisioner.Config{Database: "postal-server-17"})
	require.NoError(t, err)
	require.Equal(t, "`postal-server-17`.`raw-2026-06-03`", p.Ident("raw-2026-06-03"))
}

func TestNewJoinsAllFaults(t *testing.T) {
	ask := func(context.Context) ([]int64, error) { return nil, nil }
	_, err := provisioner.New(nil, provisioner.Config{
		Storage:  &provisioner.StorageSizes{},
		Database: strings.Repeat("x", 65), SizeFrom: "disk", LockWait: -1, BatchTime: -1, Pause: math.NaN(), Pending: ask,
		Schema: provisioner.Schema{RawPrefix: "raw-", RawLayout: "2006-01"},
	})
	require.Error(t, err)
	for _, fault := range []string{
		"no database handle", "Config.Database", "Config.SizeFrom", "Config.LockWait", "Config.BatchTime", "Config.Pause", "Config.Pending",
		"Config.Storage",
		"Schema.RawPrefix, RawLayout", "Schema.RawColumns",
	} {
		require.ErrorContains(t, err, fault)
	}
}

func TestNewRefusesASchemaThatCanNotBe(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*provisioner.Schema)
		fault  string
	}{
		"a layout that doesn't tell days apart": {func(s *provisioner.Schema) { s.RawLayout = "2006-01" }, "RawLayout"},
		"no prefix":                             {func(s *provisioner.Schema) { s.RawPrefix = "" }, "RawPrefix"},
		"no columns":                            {func(s *provisioner.Schema) { s.RawColumns = "" }, "RawColumns"},
		"bookkeeping without a column":          {func(s *provisioner.Schema) { s.Sizes.Bytes = "" }, "Sizes.Bytes"},
		"bookkeeping named like a day":          {func(s *provisioner.Schema) { s.Sizes.Name = "raw-2026-06-03" }, "Sizes.Name"},
		"messages named like a day":             {func(s *provisioner.Schema) { s.Messages.Name = "raw-2026-06-03" }, "Messages.Name"},
		"messages without an id":                {func(s *provisioner.Schema) { s.Messages.ID = "" }, "Messages.ID"},
		"messages without a time":               {func(s *provisioner.Schema) { s.Messages.Time = "" }, "Messages.Time"},
		"messages without a pointer":            {func(s *provisioner.Schema) { s.Messages.RawTable = "" }, "Messages.RawTable"},
		"an unknown kind of time":               {func(s *provisioner.Schema) { s.Messages.TimeKind = "date" }, "Messages.TimeKind"},
		"a column that can't be cleared":        {func(s *provisioner.Schema) { s.Messages.Clear = []string{"x "} }, "Messages.Clear[0]"},
		"a child without a column":              {func(s *provisioner.Schema) { s.Children[1].MessageID = "" }, "Children[1].MessageID"},
		"children without messages":             {func(s *provisioner.Schema) { s.Messages = provisioner.MessagesTable{} }, "Schema.Children"},
		"a child named like another":            {func(s *provisioner.Schema) { s.Children[1].Name = "Clicks" }, "named twice"},
		"a base table named like a day":         {func(s *provisioner.Schema) { s.Base[2].Name = "raw-2026-06-03" }, "Base[2].Name"},
		"a base table without columns":          {func(s *provisioner.Schema) { s.Base[2].Columns = "" }, "Base[2].Columns"},
		"a base table named twice":              {func(s *provisioner.Schema) { s.Base[2].Name = s.Base[1].Name }, "named twice"},
	} {
		t.Run(name, func(t *testing.T) {
			schema := provisioner.PostalSchema()
			test.change(&schema)
			_, err := provisioner.New(unopened(t), provisioner.Config{Database: "d", Schema: schema})
			require.ErrorContains(t, err, test.fault)
		})
	}
}

func TestNewRefusesDatabases(t *testing.T) {
	for _, name := range []string{"", "x ", "a\x00b", "mysql", "Information_Schema", "performance_schema", "sys", strings.Repeat("ü", 65), "\xff", "😀"} {
		_, err := provisioner.New(unopened(t), provisioner.Config{Database: name})
		require.ErrorContains(t, err, "Config.Database", name)
	}
}

func TestIdentOfANameThatCanNotBe(t *testing.T) {
	p, err := provisioner.New(unopened(t), provisioner.Config{Database: "a`b"})
	require.NoError(t, err)
	require.Equal(t, "`a``b`.`raw``2026`", p.Ident("raw`2026"))
	require.Empty(t, p.Ident(""))
	require.Empty(t, p.Ident(strings.Repeat("x", 65)))
}
