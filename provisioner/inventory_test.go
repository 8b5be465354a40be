package provisioner_test

import (
	"context"
	"errors"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mailretention/mailretention/internal/mysqltest"
	"github.com/mailretention/mailretention/provisioner"
	"github.com/mailretention/mailretention/retention"
)

// tables returns an inventory's tables by name.
func byName(inv retention.Inventory) map[string]retention.Table {
	tables := map[string]retention.Table{}
	for _, table := range inv.Tables {
		tables[table.Name] = table
	}
	return tables
}

func (s *store) inventory() retention.Inventory {
	s.t.Helper()
	inv, err := s.Inventory(s.t.Context())
	require.NoError(s.t, err)
	return inv
}

func TestInventoryOfAnEmptyDatabase(t *testing.T) {
	inv := provisioned(t, provisioner.Config{}).inventory()
	require.WithinDuration(t, time.Now(), inv.Now, time.Hour)
	require.Equal(t, time.UTC, inv.Now.Location())
	require.Equal(t, retention.Inventory{Now: inv.Now, Tables: []retention.Table{}, Ignored: []retention.Ignored{}, Drift: []retention.Drift{}}, inv)
}

func TestInventoryListsTables(t *testing.T) {
	s := provisioned(t, provisioner.Config{})
	s.addDay(-1, 0)
	s.addDay(0, 10)
	s.addDay(900, math.MaxInt64)
	require.Equal(t, []retention.Table{
		{Name: s.day(900), Day: s.today.AddDate(0, 0, -900), Bytes: math.MaxInt64, SizeKnown: true},
		{Name: s.day(0), Day: s.today, Bytes: 10, SizeKnown: true},
		{Name: s.day(-1), Day: s.today.AddDate(0, 0, 1), SizeKnown: true},
	}, s.inventory().Tables)
}

func TestInventoryIgnoresBadNames(t *testing.T) {
	s := provisioned(t, provisioner.Config{})
	names := []string{
		"raw-2024-13-45", "raw-2024-02-30", "raw-2024-1-5", "raw-2024-01-05-old", "raw-backup", "RAW-2024-01-01", "raw-2024-01-0`1", "raw-２０２４-01-01",
	}
	for _, name := range names {
		s.addTable(name)
	}
	s.exec("CREATE VIEW " + s.Ident("raw-2024-01-02") + " AS SELECT 1 AS id")
	names = append(names, "raw-2024-01-02")
	if mysqltest.IsMariaDB(t) {
		s.exec("CREATE SEQUENCE " + s.Ident("raw-2024-01-03"))
		names = append(names, "raw-2024-01-03")
	}
	for _, name := range names {
		s.book(name, fiveGB)
	}
	s.addDay(5, 1)
	inv := s.inventory()
	require.Equal(t, []string{s.day(5)}, tableNames(inv))
	require.Empty(t, inv.Drift, "what isn't a day's is no drift, and a view's name is neither an orphan nor dangling")
	var ignored []string
	for _, i := range inv.Ignored {
		require.NotEmpty(t, i.Reason)
		ignored = append(ignored, i.Name)
	}
	require.ElementsMatch(t, names, ignored)

	before := s.tables()
	repaired, err := s.Reconcile(t.Context())
	require.NoError(t, err)
	require.Zero(t, repaired)
	require.Equal(t, before, s.tables())
	require.Len(t, s.books(), len(names)+1)
}

func tableNames(inv retention.Inventory) (names []string) {
	for _, table := range inv.Tables {
		names = append(names, table.Name)
	}
	return names
}

func TestInventoryNewest(t *testing.T) {
	s := provisioned(t, provisioner.Config{})
	add := func(timestamp any) {
		s.exec("INSERT INTO "+s.Ident("messages")+" (timestamp) VALUES (?)", timestamp)
	}
	add("1999999999.5")
	s.insertMany(995, "INSERT INTO "+s.Ident("messages")+" (timestamp) SELECT NULL")
	add(0)
	add("1780000000.123456")
	add("1770000000")
	require.Equal(t, time.Unix(1999999999, 5e8).UTC(), s.inventory().Newest, "the first is one of the 1,000 highest ids")
	for range 2 {
		add(nil)
	}
	require.Equal(t, time.Unix(1780000000, 123456000).UTC(), s.inventory().Newest)
}

func TestInventoryNewestOfNoTimes(t *testing.T) {
	datetimes := provisioner.Schema{
		RawPrefix: "raw-", RawLayout: "2006-01-02", RawColumns: "id int",
		Messages: provisioner.MessagesTable{Name: "messages", ID: "id", Time: "timestamp", TimeKind: provisioner.DateTime, RawTable: "raw_table"},
		Base:     []provisioner.BaseTable{{Name: "messages", Columns: "id int AUTO_INCREMENT PRIMARY KEY, timestamp datetime(6), raw_table varchar(50)"}},
	}
	for name, test := range map[string]struct {
		schema provisioner.Schema
		zero   string
		time   string
	}{
		"seconds":   {provisioner.PostalSchema(), "0", "1780000000.5"},
		"datetimes": {datetimes, "'0000-00-00'", "'2026-05-28 20:26:40.5'"},
	} {
		t.Run(name, func(t *testing.T) {
			s := provisioned(t, provisioner.Config{Schema: test.schema}, "sql_mode=''")
			for _, value := range []string{"NULL", test.zero} {
				s.exec("INSERT INTO " + s.Ident("messages") + " (timestamp) VALUES (" + value + ")")
				require.Zero(t, s.inventory().Newest, value)
			}
			s.exec("INSERT INTO " + s.Ident("messages") + " (timestamp) VALUES (" + test.time + ")")
			require.Equal(t, time.Unix(1780000000, 5e8).UTC(), s.inventory().Newest)
		})
	}
}

// A longer value than any name is no table's, though it begins with the name of one.
func TestInventoryOfPointersThatAreTooLong(t *testing.T) {
	var ids []int64
	schema := provisioner.PostalSchema()
	schema.RawPrefix = strings.Repeat("r", 54) // the longest: with a day it is 64
	s := provisioned(t, provisioner.Config{Schema: schema, Pending: func(context.Context) ([]int64, error) { return ids, nil }})
	day := func(ago int) string { return schema.RawPrefix + s.today.AddDate(0, 0, -ago).Format(time.DateOnly) }
	s.addTable(day(5))
	s.book(day(5), 1)
	point := func(tail string) {
		s.exec("INSERT INTO "+s.Ident("messages")+" (held, raw_table) VALUES (1, ?), (0, ?)", day(5)+tail, day(6)+tail)
		ids = s.ids("SELECT id FROM " + s.Ident("messages"))
	}
	point("x")
	inv := s.inventory()
	require.Empty(t, inv.Tables[0].InUse)
	require.Empty(t, inv.Drift)
	point("")
	inv = s.inventory()
	require.NotEmpty(t, inv.Tables[0].InUse)
	require.Equal(t, []retention.Drift{{Table: day(6), Kind: retention.DriftDangling}}, inv.Drift)
}

func TestInventorySaysWhyTablesCanNotGo(t *testing.T) {
	var ids []int64
	s := provisioned(t, provisioner.Config{Pending: func(context.Context) ([]int64, error) { return ids, nil }})
	for ago := 3; ago <= 6; ago++ {
		s.addDay(ago, 1)
		s.addMessage(ago, 10, false)
	}
	ids = append(ids, s.addMessage(3, 10, false))
	s.addMessage(4, 10, true)
	ids = append(ids, s.addMessage(5, 10, true), math.MaxInt64, -1)
	inv := byName(s.inventory())
	require.Contains(t, inv[s.day(3)].InUse, "still to be sent")
	require.Contains(t, inv[s.day(4)].InUse, "held")
	require.Contains(t, inv[s.day(5)].InUse, "still to be sent")
	require.Contains(t, inv[s.day(5)].InUse, "held")
	require.Empty(t, inv[s.day(6)].InUse)
}

func TestInventoryWithManyPending(t *testing.T) {
	ids := make([]int64, 200_000)
	s := provisioned(t, provisioner.Config{Pending: func(context.Context) ([]int64, error) { return ids, nil }})
	s.addDay(3, 1)
	id := s.addMessage(3, 10, false)
	for i := range ids {
		ids[i] = id + int64(i)
	}
	require.NotEmpty(t, byName(s.inventory())[s.day(3)].InUse)
}

func TestInventoryIsRefusedWhenPendingFails(t *testing.T) {
	down := errors.New("queue is down")
	s := provisioned(t, provisioner.Config{Pending: func(context.Context) ([]int64, error) { return nil, down }})
	_, err := s.Inventory(t.Context())
	require.ErrorIs(t, err, retention.ErrRefused)
	require.ErrorIs(t, err, down)
}

func TestInventoryDrift(t *testing.T) {
	bothBooks(t, func(t *testing.T, s *store) {
		for _, ago := range []int{0, 1, 2, 3, 402} {
			s.book(s.day(ago), fiveGB) // orphans
		}
		s.addTable(s.day(10)) // no row
		s.addTable(s.day(2))  // younger
		s.addMessage(403, 1, false)
		s.addMessage(402, 1, false)
		s.addMessage(401, 1, false)
		s.addMessage(2, 1, false)
		s.addMessage(20, 1, false)
		s.exec("CREATE VIEW " + s.Ident(s.day(30)) + " AS SELECT 1") // neither a table nor none
		s.addMessage(30, 1, false)
		s.book(s.day(30), 30)
		s.addDay(11, 1)
		s.exec("UPDATE " + s.Ident("raw_message_sizes") + " SET size=NULL WHERE size=1")
		want := []retention.Drift{
			{Table: s.day(402), Kind: retention.DriftDangling, Bytes: 5_000_000_000},
			{Table: s.day(401), Kind: retention.DriftDangling},
			{Table: s.day(20), Kind: retention.DriftDangling},
			{Table: s.day(402), Kind: retention.DriftOrphan, Bytes: 5_000_000_000},
			{Table: s.day(3), Kind: retention.DriftOrphan, Bytes: 5_000_000_000},
			{Table: s.day(11), Kind: retention.DriftMissing},
			{Table: s.day(10), Kind: retention.DriftMissing},
		}
		require.Equal(t, want, s.inventory().Drift)
	})
}

func TestInventoryOfPointersThatLookAlike(t *testing.T) {
	s := provisioned(t, provisioner.Config{})
	for _, name := range []string{strings.ToUpper(s.day(5)), s.day(5) + " ", strings.ReplaceAll(s.day(5), "2", "２"), "", "messages"} {
		s.exec("INSERT INTO "+s.Ident("messages")+" (raw_table) VALUES (?)", name)
	}
	require.Empty(t, s.inventory().Drift)
	s.addMessage(5, 1, false)
	require.Equal(t, []retention.Drift{{Table: s.day(5), Kind: retention.DriftDangling}}, s.inventory().Drift)
}

func TestInventorySizesThatAreNotBooked(t *testing.T) {
	s := provisioned(t, provisioner.Config{})
	s.withoutKey()
	s.addTable(s.day(1))
	s.addMessage(1, 100, false)
	s.addMessage(1, 23, false)
	s.addDay(3, 50)
	s.book(s.day(3), 50)
	s.addDay(4, 50)
	s.book(s.day(4), 60)
	s.addMessage(4, 77, false)
	s.addDay(5, -3)
	s.addMessage(5, 88, false)
	s.addTable(s.day(6))
	inv := byName(s.inventory())
	require.EqualValues(t, 123, inv[s.day(1)].Bytes, "a missing row is measured")
	require.EqualValues(t, 50, inv[s.day(3)].Bytes, "double rows agree")
	require.EqualValues(t, 77, inv[s.day(4)].Bytes, "double rows differ")
	require.EqualValues(t, 88, inv[s.day(5)].Bytes, "a size can't be negative")
	require.Greater(t, inv[s.day(6)].Bytes, int64(16<<10), "without messages the storage is measured")
	for name, table := range inv {
		require.True(t, table.SizeKnown, name)
	}
}

func TestInventoryNeedsAProvisionedDatabase(t *testing.T) {
	for name, breaks := range map[string]string{
		"no bookkeeping": "DROP TABLE raw_message_sizes", "no messages": "DROP TABLE messages",
	} {
		t.Run(name, func(t *testing.T) {
			s := provisioned(t, provisioner.Config{})
			s.exec(breaks)
			_, err := s.Inventory(t.Context())
			require.ErrorIs(t, err, provisioner.ErrNotProvisioned)
		})
	}
}

func TestInventoryOfManyAtOnce(t *testing.T) {
	s := provisioned(t, provisioner.Config{SizeFrom: provisioner.SizeFromStorage})
	for ago := range 10 {
		s.addDay(ago, 1)
	}
	s.db.SetMaxOpenConns(1) // nothing waits for a second connection while it holds one
	atOnce(t, 16, func(int) error {
		inv, err := s.Inventory(t.Context())
		if err == nil && !slices.ContainsFunc(inv.Tables, func(t retention.Table) bool { return t.SizeKnown }) {
			err = errors.New("no sizes")
		}
		return err
	})
}

func TestInventoryEndsWithItsContext(t *testing.T) {
	s := provisioned(t, provisioner.Config{})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := s.Inventory(ctx)
	require.ErrorIs(t, err, context.Canceled)
}
