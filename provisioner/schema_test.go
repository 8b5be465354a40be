package provisioner_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mailretention/mailretention/internal/mysqltest"
	"github.com/mailretention/mailretention/provisioner"
	"github.com/mailretention/mailretention/retention"
)

// otherSchema is another mail system's: other names, BIGINT ids, DATETIME(6) times, an upper-case prefix, a layout without dashes.
func otherSchema() provisioner.Schema {
	return provisioner.Schema{
		RawPrefix:  "MAIL_",
		RawLayout:  "20060102",
		RawColumns: "`mail id` bigint unsigned NOT NULL, body longblob, checksum binary(20) COMMENT 'SHA-1, of (body)', PRIMARY KEY (`mail id`), KEY (checksum)",
		Sizes:      provisioner.SizesTable{Name: "mail_volumes", Table: "volume", Bytes: "octets"},
		Messages: provisioner.MessagesTable{
			Name: "mails", ID: "mail id", Time: "received_at", TimeKind: provisioner.DateTime,
			RawTable: "volume", Size: "octets", Held: "on_hold", Clear: []string{"volume", "position"},
		},
		Children: []provisioner.ChildTable{{Name: "events", MessageID: "mail"}},
		Base: []provisioner.BaseTable{
			{Name: "mails", Columns: "`mail id` bigint unsigned NOT NULL AUTO_INCREMENT PRIMARY KEY, received_at datetime(6), volume varchar(64), position int," +
				" octets bigint unsigned, on_hold bool, KEY (volume), KEY (on_hold)"},
			{Name: "events", Columns: "id bigint AUTO_INCREMENT PRIMARY KEY, mail bigint unsigned, KEY (mail)"},
		},
	}
}

func TestOtherSchema(t *testing.T) {
	var ids []int64
	s := provisioned(t, provisioner.Config{Schema: otherSchema(), Pending: func(context.Context) ([]int64, error) { return ids, nil }}, "time_zone='+05:30'")
	day := func(ago int) string { return "MAIL_" + s.today.AddDate(0, 0, -ago).Format("20060102") }
	add := func(id int64, ago int, octets int64, hold bool) {
		received := s.today.AddDate(0, 0, -ago).Add(13*time.Hour + 123456*time.Microsecond)
		s.exec("INSERT INTO "+s.Ident("mails")+" VALUES (?, ?, ?, 1, ?, ?)", id, received.Format("2006-01-02 15:04:05.000000"), day(ago), octets, hold)
	}
	s.exec("INSERT INTO " + s.Ident("mails") + " (received_at) VALUES (NULL)")

	table, err := s.EnsureDay(t.Context(), s.today)
	require.NoError(t, err)
	require.Equal(t, day(0), table)
	require.NoError(t, s.InsertInto(t.Context(), s.today.AddDate(0, 0, 1), func(ctx context.Context, table string) (int64, error) {
		_, err := s.db.ExecContext(ctx, "INSERT INTO "+s.Ident(table)+" VALUES (1, 'abc', '')")
		return 3, err
	}))
	for _, ago := range []int{5, 6, 7} {
		s.exec("CREATE TABLE " + s.Ident(day(ago)) + " (" + otherSchema().RawColumns + ")")
		add(1000000000000+int64(ago), ago, 100, ago == 6)
	}
	ids = []int64{1000000000007}
	add(9, 9, 1, false)

	inv := s.inventory()
	require.Empty(t, inv.Ignored, "a table that the schema names is not taken for a raw table's bad name")
	require.Equal(t, s.today.AddDate(0, 0, -5).Add(13*time.Hour+123456*time.Microsecond), inv.Newest)
	tables := byName(inv)
	require.Len(t, tables, 5)
	require.EqualValues(t, 3, tables[day(-1)].Bytes)
	require.EqualValues(t, 100, tables[day(5)].Bytes)
	require.Empty(t, tables[day(5)].InUse)
	require.NotEmpty(t, tables[day(6)].InUse)
	require.NotEmpty(t, tables[day(7)].InUse)
	require.Equal(t, []retention.Drift{
		{Table: day(9), Kind: retention.DriftDangling},
		{Table: day(7), Kind: retention.DriftMissing},
		{Table: day(6), Kind: retention.DriftMissing},
		{Table: day(5), Kind: retention.DriftMissing},
	}, inv.Drift)
	s.reconcile(4)
	require.Equal(t, []string{"2"}, s.column("SELECT COUNT(*) FROM "+s.Ident("mails")+" WHERE volume IS NULL AND position IS NULL"))
}

func TestSchemaWithoutBookkeeping(t *testing.T) {
	schema := otherSchema()
	schema.Sizes = provisioner.SizesTable{}
	s := provisioned(t, provisioner.Config{Schema: schema})
	table, err := s.EnsureDay(t.Context(), s.today)
	require.NoError(t, err)
	require.NoError(t, s.InsertInto(t.Context(), s.today, func(context.Context, string) (int64, error) { return 5, nil }))
	s.exec("INSERT INTO " + s.Ident("mails") + " (volume) VALUES ('MAIL_" + s.today.AddDate(0, 0, -9).Format("20060102") + "')")
	inv := s.inventory()
	require.Equal(t, table, inv.Tables[0].Name)
	require.True(t, inv.Tables[0].SizeKnown)
	require.GreaterOrEqual(t, inv.Tables[0].Bytes, int64(pageSize))
	s.reconcile(1)
}

func TestSchemaWithoutMessages(t *testing.T) {
	schema := otherSchema()
	schema.Messages, schema.Children, schema.Base = provisioner.MessagesTable{}, nil, nil
	s := provisioned(t, provisioner.Config{Schema: schema})
	require.NoError(t, s.InsertInto(t.Context(), s.today, func(ctx context.Context, table string) (int64, error) {
		_, err := s.db.ExecContext(ctx, "INSERT INTO "+s.Ident(table)+" VALUES (1, 'abc', '')")
		return 3, err
	}))
	orphan := "MAIL_" + s.today.AddDate(0, 0, -9).Format("20060102")
	s.exec("INSERT INTO "+s.Ident("mail_volumes")+" (volume, octets) VALUES (?, 7)", orphan)
	inv := s.inventory()
	require.EqualValues(t, 3, inv.Tables[0].Bytes)
	require.Zero(t, inv.Newest)
	require.Equal(t, []retention.Drift{{Table: orphan, Kind: retention.DriftOrphan, Bytes: 7}}, inv.Drift)
	s.reconcile(1)
}

func TestSchemaOfRawTablesAlone(t *testing.T) {
	schema := provisioner.Schema{RawPrefix: "m", RawLayout: "2006_01_02", RawColumns: "body longblob"}
	s := provisioned(t, provisioner.Config{Schema: schema})
	table, err := s.EnsureDay(t.Context(), s.today)
	require.NoError(t, err)
	inv := s.inventory()
	require.Equal(t, []string{table}, tableNames(inv))
	require.True(t, inv.Tables[0].SizeKnown)
	s.reconcile(0)
}

// Another mail system's shape.
func TestOtherSchemas(t *testing.T) {
	bare := provisioner.Schema{
		RawPrefix: "BLOB", RawLayout: "20060102", RawColumns: "n bigint PRIMARY KEY",
		Messages: provisioner.MessagesTable{Name: "mail", ID: "n", Time: "came", TimeKind: provisioner.DateTime, RawTable: "blob_table"},
		Base: []provisioner.BaseTable{
			{Name: "mail", Columns: "n bigint PRIMARY KEY, came datetime(6), blob_table varchar(100), frozen int"},
			{Name: "parts", Columns: "mail bigint, KEY (mail)"},
		},
	}
	indexed := bare
	indexed.Messages.RawIndex, indexed.Messages.Held, indexed.Messages.Probe = "by_table", "frozen", "came IS NOT NULL"
	indexed.Base = slices.Clone(bare.Base)
	indexed.Base[0].Columns += ", KEY by_table (blob_table), KEY (came)"
	indexed.Children = []provisioner.ChildTable{{Name: "parts", MessageID: "mail"}}
	for name, schema := range map[string]provisioner.Schema{"bare": bare, "indexed": indexed} {
		t.Run(name, func(t *testing.T) {
			s := provisioned(t, provisioner.Config{Schema: schema})
			raw := "BLOB" + s.today.AddDate(0, 0, -9).Format("20060102")
			s.exec("CREATE TABLE " + s.Ident(raw) + " (n bigint PRIMARY KEY)")
			yesterday, today := s.today.AddDate(0, 0, -1).Format(time.DateOnly), s.today.Format(time.DateOnly)
			for n, came := range []string{"'" + yesterday + " 23:59:59.999999'", "'" + today + "'", "NULL", "'1970-01-01'", "'" + yesterday + "'"} {
				s.exec(fmt.Sprintf("INSERT INTO %s VALUES (%d, %s, '%s', 0)", s.Ident("mail"), int64(1)<<40+int64(n), came, raw))
			}
			s.exec(fmt.Sprint("UPDATE ", s.Ident("mail"), " SET frozen=1 WHERE n=", int64(1)<<40+4))
			if schema.Messages.Held != "" {
				require.ErrorIs(t, s.DropTable(t.Context(), raw, nil), retention.ErrInUse)
				require.Equal(t, []int64{1<<40 + 4}, s.ids("SELECT n FROM "+s.Ident("mail")+" WHERE blob_table IS NOT NULL"))
			} else {
				require.NoError(t, s.DropTable(t.Context(), raw, nil))
			}
			cut := retention.Cut{Before: s.today, Except: []retention.Hold{{To: time.Unix(0, 0).UTC()}}}
			require.NoError(t, s.PruneMessages(t.Context(), cut, nil))
			stay := []int64{1<<40 + 1, 1<<40 + 2, 1<<40 + 3}
			if schema.Messages.Held != "" {
				stay = append(stay, 1<<40+4)
			}
			require.Equal(t, stay, s.ids("SELECT n FROM "+s.Ident("mail")+" ORDER BY n"))
		})
	}
}

// What the server takes for the columns of a raw table is seen as these columns, so that its tables can be made and dropped.
func TestRawColumnsInAnySyntax(t *testing.T) {
	for name, test := range map[string]struct {
		columns, mode string
		mariaDBOnly   bool
	}{
		"comments":                {columns: "id int, -- the key, it's (here\n#, so, what\n data longblob /* ), , ' */,/**/next int/*,*/"},
		"quotes in quotes":        {columns: `id int COMMENT 'it\'s, here', data longblob COMMENT "a "" b\", c", next int COMMENT 'it''s, too'`},
		"quoted names":            {columns: "`the ``id``, (1` int, `KEY` longblob, `-- x, y` int"},
		"names in ANSI quotes":    {columns: `"the ""id"", (1" int, "KEY" longblob, "data" varchar(5) DEFAULT 'x,y'`, mode: "ANSI_QUOTES"},
		"synonyms":                {columns: "a character varying(5), b national char(5), c dec(5,2), d double precision, e long varchar, f int8, g bool, h nvarchar(5), i serial"},
		"text that is bytes":      {columns: "a char byte, b varchar(5) CHARACTER SET binary, c longtext charset BINARY, d varchar(5) binary"},
		"types of no family":      {columns: "a timestamp NULL, b date, c time, d year, e json, f enum('a,b','c)'), g geometry"},
		"computed":                {columns: "a int, b int AS (a+1) VIRTUAL, c varchar(5) GENERATED ALWAYS AS (concat(a,',',b)) STORED"},
		"keys and constraints":    {columns: "a int, b int, UNIQUE(a), KEY `k` (b), INDEX(a,b), CONSTRAINT CHECK (a>0), CHECK(b<9), primary key\n(a)"},
		"a period":                {columns: "a date, b date, PERIOD FOR app (a, b)", mariaDBOnly: true},
		"for one kind of servers": {columns: "a int /*!50000 NOT NULL */ /*M! COMMENT 'a, b' */, b int"},
	} {
		t.Run(name, func(t *testing.T) {
			if test.mariaDBOnly && !mysqltest.IsMariaDB(t) {
				t.Skip("only MariaDB has them")
			}
			schema := provisioner.Schema{RawPrefix: "raw-", RawLayout: "2006-01-02", RawColumns: test.columns}
			s := provisioned(t, provisioner.Config{Schema: schema}, "sql_mode='"+test.mode+"'")
			_, err := s.EnsureDay(t.Context(), s.today)
			require.NoError(t, err)
			s.execf("CREATE TABLE %s (%s)", s.Ident(s.day(9)), test.columns)
			require.NoError(t, s.DropTable(t.Context(), s.day(9), nil))
			require.Equal(t, []string{s.day(0)}, s.tables())
		})
	}
}

// A DATETIME has no day behind the last that a hold can have.
func TestPruneKeepsAHoldToTheLastDay(t *testing.T) {
	s := provisioned(t, provisioner.Config{Schema: provisioner.Schema{
		RawPrefix: "raw-", RawLayout: "2006-01-02", RawColumns: "id int",
		Messages: provisioner.MessagesTable{Name: "m", ID: "id", Time: "at", TimeKind: provisioner.DateTime, RawTable: "raw"},
		Base:     []provisioner.BaseTable{{Name: "m", Columns: "id int PRIMARY KEY, at datetime(6), raw varchar(50)"}},
	}})
	s.exec("INSERT INTO m (id, at) VALUES (1, '2018-12-31 23:59:59.9'), (2, '2019-01-01'), (3, '2020-01-01 00:00:00.5')")
	hold := retention.Hold{From: time.Date(2019, time.January, 1, 0, 0, 0, 0, time.UTC), To: time.Date(9999, time.December, 31, 0, 0, 0, 0, time.UTC)}
	require.NoError(t, s.PruneMessages(t.Context(), retention.Cut{Before: s.today, Except: []retention.Hold{hold}}, nil))
	require.Equal(t, []int64{2, 3}, s.ids("SELECT id FROM m ORDER BY id"))
}

func TestWithoutMessages(t *testing.T) {
	s := provisioned(t, provisioner.Config{Schema: provisioner.Schema{RawPrefix: "d", RawLayout: "2006-01-02", RawColumns: "n int"}})
	raw := "d" + s.today.AddDate(0, 0, -9).Format(time.DateOnly)
	s.exec("CREATE TABLE " + s.Ident(raw) + " (n int)")
	require.NoError(t, s.prune())
	require.NoError(t, s.DropTable(t.Context(), raw, nil))
	require.Empty(t, s.column("SELECT TABLE_NAME FROM information_schema.TABLES WHERE TABLE_SCHEMA=?", s.name))
}
