package retention_test

import (
	"time"

	"github.com/mailretention/mailretention/retention"
)

const mib = 1 << 20

// now is the clock of the tests, in the middle of a day.
var now = time.Date(2026, time.June, 15, 12, 30, 0, 0, time.UTC)

// midnight returns the day that is ago days before now's.
func midnight(ago int) time.Time {
	return time.Date(2026, time.June, 15-ago, 0, 0, 0, 0, time.UTC)
}

// table returns the table of 1 MiB of the day that is ago days before now's.
func table(ago int) retention.Table {
	return retention.Table{Name: "raw-" + midnight(ago).Format(time.DateOnly), Day: midnight(ago), Bytes: mib, SizeKnown: true}
}

// days returns an inventory of one table for each of the last n days, newest first.
func days(n int) retention.Inventory {
	inv := retention.Inventory{Now: now, Newest: now}
	for ago := range n {
		inv.Tables = append(inv.Tables, table(ago))
	}
	return inv
}
