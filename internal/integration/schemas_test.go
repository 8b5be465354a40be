package integration

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mailretention/mailretention/internal/mysqltest"
	"github.com/mailretention/mailretention/provisioner"
	"github.com/mailretention/mailretention/retention"
)

// Another mail system: BIGINT ids, DATETIME(6) times, names of its own, an upper-case prefix, a layout without dashes. It is run with
// and without bookkeeping, and with nothing but raw tables.
func TestRunOnOtherSchemas(t *testing.T) {
	const firstID = int64(1) << 40
	whole := provisioner.Schema{
		RawPrefix: "BLOBS_", RawLayout: "20060102", RawColumns: "n bigint AUTO_INCREMENT PRIMARY KEY, blob_data longblob",
		Sizes: provisioner.SizesTable{Name: "volumes", Table: "volume", Bytes: "octets"},
		Messages: provisioner.MessagesTable{
			Name: "mails", ID: "nr", Time: "came", TimeKind: provisioner.DateTime, RawTable: "volume", RawIndex: "by_volume", Size: "octets", Held: "frozen",
		},
		Children: []provisioner.ChildTable{{Name: "events", MessageID: "mail"}},
		Base: []provisioner.BaseTable{
			{Name: "mails", Columns: "nr bigint PRIMARY KEY, came datetime(6), volume varchar(64), octets bigint, frozen int, KEY by_volume (volume)"},
			{Name: "events", Columns: "id bigint AUTO_INCREMENT PRIMARY KEY, mail bigint, KEY (mail)"},
		},
	}
	unbooked := whole
	unbooked.Sizes = provisioner.SizesTable{}
	bare := provisioner.Schema{RawPrefix: whole.RawPrefix, RawLayout: whole.RawLayout, RawColumns: whole.RawColumns}
	for name, schema := range map[string]provisioner.Schema{"whole": whole, "without bookkeeping": unbooked, "only raw tables": bare} {
		t.Run(name, func(t *testing.T) {
			db, database := mysqltest.DB(t)
			m := openMailbox(t, db, database)
			m.store = m.provisioner(db, provisioner.Config{Schema: schema})
			require.NoError(t, m.store.Provision(t.Context()))
			table := func(back int) string { return schema.RawPrefix + m.day(back).Format(schema.RawLayout) }
			messages := schema.Messages.Name != ""
			for back := range 8 {
				m.exec("CREATE TABLE " + m.store.Ident(table(back)) + " (" + schema.RawColumns + ")")
				if schema.Sizes.Name != "" {
					m.exec("INSERT INTO volumes (volume, octets) VALUES (?, 1000)", table(back))
				}
				if messages {
					id := firstID - int64(back)
					m.exec("INSERT INTO mails VALUES (?, ?, ?, 1000, ?)", id, m.day(back).Add(24*time.Hour-time.Microsecond).Format("2006-01-02 15:04:05.000000"),
						table(back), back == 6)
					m.exec("INSERT INTO events (mail) VALUES (?)", id)
				}
			}
			m.exec("CREATE TABLE " + m.store.Ident("blobs_"+m.day(9).Format(schema.RawLayout)) + " (n int)") // no raw table's name
			policy := retention.Policy{RawDays: new(4), MessageDays: new(4), RawBytes: new(int64(1)), AllowEmpty: true}
			report := m.run(policy)
			gone := []string{table(7), table(6), table(5), table(4), table(3), table(2)}
			if messages {
				gone = []string{table(7), table(5), table(4), table(3), table(2)} // one of day 6 is frozen
				var stay []string
				for _, back := range []int64{6, 4, 3, 2, 1, 0} {
					stay = append(stay, fmt.Sprint(firstID-back))
				}
				require.Equal(t, stay, m.strings("SELECT nr FROM mails ORDER BY nr"))
				require.Equal(t, stay, m.strings("SELECT mail FROM events ORDER BY mail"))
				require.EqualValues(t, 3, m.count("SELECT COUNT(*) FROM mails WHERE volume IS NOT NULL"))
			}
			require.Equal(t, gone, dropped(report))
			require.Positive(t, report.Plan.Shortfall)
			if schema.Sizes.Name != "" {
				require.EqualValues(t, 8-len(gone), m.count("SELECT COUNT(*) FROM volumes"))
			}
			require.Equal(t, retention.OutcomeNothingToDo, m.run(policy).Outcome)
		})
	}
}
