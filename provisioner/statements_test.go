package provisioner_test

import (
	"errors"
	"testing"
	"time"

	"github.com/DATA-DOG/go-sqlmock"
	"github.com/go-sql-driver/mysql"
	"github.com/stretchr/testify/require"

	"github.com/mailretention/mailretention/provisioner"
	"github.com/mailretention/mailretention/retention"
)

// mocked returns a Provisioner on a server that answers as the test says, and expects these statements in this order and no others.
func mocked(t *testing.T, cfg provisioner.Config) (*provisioner.Provisioner, sqlmock.Sqlmock) {
	t.Helper()
	db, mock, err := sqlmock.New()
	require.NoError(t, err)
	cfg.Database = "d"
	p, err := provisioner.New(db, cfg)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, mock.ExpectationsWereMet()) })
	mock.ExpectQuery("SELECT @@SESSION.autocommit").WillReturnRows(sqlmock.NewRows([]string{"autocommit", "charset"}).AddRow(1, "utf8mb4"))
	return p, mock
}

var mockedNow = time.Date(2026, time.June, 3, 12, 0, 0, 0, time.UTC)

func tableRows(names ...string) *sqlmock.Rows {
	rows := sqlmock.NewRows([]string{"Tables_in_d", "Table_type"})
	for _, name := range names {
		rows.AddRow(name, "BASE TABLE")
	}
	return rows
}

func bookRows() *sqlmock.Rows { return sqlmock.NewRows([]string{"now", "table_name", "size"}) }

func factRows() *sqlmock.Rows { return sqlmock.NewRows([]string{"fact", "value"}) }

func TestInventoryTakesThreeStatements(t *testing.T) {
	p, mock := mocked(t, provisioner.Config{})
	for range 2 {
		mock.ExpectQuery("^SHOW FULL TABLES FROM `d`$").WillReturnRows(tableRows("raw-2026-05-01", "messages"))
		mock.ExpectQuery("raw_message_sizes").WillReturnRows(bookRows().AddRow(mockedNow.UnixMicro(), "raw-2026-05-01", 17))
		mock.ExpectQuery("FROM `d`.`messages`.* UNION ALL .*held.* UNION ALL .*BETWEEN").WillReturnRows(factRows().AddRow("newest", mockedNow.UnixMicro()))
		inv, err := p.Inventory(t.Context())
		require.NoError(t, err)
		require.Equal(t, retention.Inventory{
			Now: mockedNow, Newest: mockedNow, Ignored: []retention.Ignored{}, Drift: []retention.Drift{},
			Tables: []retention.Table{{Name: "raw-2026-05-01", Day: time.Date(2026, time.May, 1, 0, 0, 0, 0, time.UTC), Bytes: 17, SizeKnown: true}},
		}, inv)
	}
}

func TestInventoryFailsWithEachStatement(t *testing.T) {
	broken := errors.New("broken")
	for failing := range 3 {
		for _, midway := range []bool{false, true} {
			p, mock := mocked(t, provisioner.Config{})
			expect := func(at int, query string, rows *sqlmock.Rows) {
				switch {
				case at > failing:
				case at == failing && midway:
					mock.ExpectQuery(query).WillReturnRows(rows.RowError(0, broken))
				case at == failing:
					mock.ExpectQuery(query).WillReturnError(broken)
				default:
					mock.ExpectQuery(query).WillReturnRows(rows)
				}
			}
			expect(0, "SHOW FULL TABLES", tableRows("raw-2026-05-01"))
			expect(1, "raw_message_sizes", bookRows().AddRow(mockedNow.UnixMicro(), "raw-2026-05-01", 17))
			expect(2, "messages", factRows().AddRow("newest", nil))
			inv, err := p.Inventory(t.Context())
			require.ErrorIs(t, err, broken)
			require.Zero(t, inv)
		}
	}
}

func TestStorageSizesWithoutTheListOfTablespaces(t *testing.T) {
	p, mock := mocked(t, provisioner.Config{SizeFrom: provisioner.SizeFromStorage})
	inventory := func() {
		mock.ExpectQuery("SHOW FULL TABLES").WillReturnRows(tableRows("raw-2026-05-01", "raw-2026-05-02"))
		mock.ExpectQuery("raw_message_sizes").WillReturnRows(bookRows().
			AddRow(mockedNow.UnixMicro(), "raw-2026-05-01", 1).AddRow(mockedNow.UnixMicro(), "raw-2026-05-02", 1))
		mock.ExpectQuery("messages").WillReturnRows(factRows().AddRow("newest", nil))
	}
	lengths := func() {
		mock.ExpectExec("SET SESSION information_schema_stats_expiry=0").WillReturnError(&mysql.MySQLError{Number: 1193})
		mock.ExpectQuery("DATA_LENGTH").WithArgs("d").WillReturnRows(sqlmock.NewRows([]string{"TABLE_NAME", "bytes"}).AddRow("raw-2026-05-01", 4711))
	}
	inventory()
	mock.ExpectQuery("INNODB_SYS_TABLESPACES").WillReturnError(&mysql.MySQLError{Number: 1227})
	mock.ExpectQuery("INNODB_TABLESPACES").WillReturnError(&mysql.MySQLError{Number: 1109})
	lengths()
	inv, err := p.Inventory(t.Context())
	require.NoError(t, err)
	require.EqualValues(t, 4711, inv.Tables[0].Bytes)
	require.True(t, inv.Tables[0].SizeKnown)
	require.False(t, inv.Tables[1].SizeKnown, "one that is nowhere is unknown")

	inventory()
	lengths() // within a minute nobody asks for the list again
	_, err = p.Inventory(t.Context())
	require.NoError(t, err)
}

func TestStorageSizesAreReadOnceForAllProvisioners(t *testing.T) {
	db, mock, err := sqlmock.New()
	require.NoError(t, err)
	storage := provisioner.NewStorageSizes(db)
	mock.ExpectQuery("INNODB_SYS_TABLESPACES").WillReturnRows(sqlmock.NewRows([]string{"database", "table", "bytes"}).
		AddRow("d", "raw-2026-05-01", 100).AddRow("e", "raw-2026-05-01", 200))
	for range 3 {
		p, own := mocked(t, provisioner.Config{SizeFrom: provisioner.SizeFromStorage, Storage: storage})
		own.ExpectQuery("SHOW FULL TABLES").WillReturnRows(tableRows("raw-2026-05-01"))
		own.ExpectQuery("raw_message_sizes").WillReturnRows(bookRows().AddRow(mockedNow.UnixMicro(), "raw-2026-05-01", 1))
		own.ExpectQuery("messages").WillReturnRows(factRows().AddRow("newest", nil))
		inv, err := p.Inventory(t.Context())
		require.NoError(t, err)
		require.EqualValues(t, 100, inv.Tables[0].Bytes)
	}
	require.NoError(t, mock.ExpectationsWereMet())
}
