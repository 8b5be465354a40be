package retention_test

import (
	"fmt"
	"slices"
	"strings"
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
	return retention.Table{Name: name(ago), Day: midnight(ago), Bytes: mib, SizeKnown: true}
}

func name(ago int) string { return "raw-" + midnight(ago).Format(time.DateOnly) }

// days returns an inventory of one table for each of the last n days, newest first.
func days(n int) retention.Inventory {
	inv := retention.Inventory{Now: now, Newest: now}
	for ago := range n {
		inv.Tables = append(inv.Tables, table(ago))
	}
	return inv
}

// with returns days(n) with the tables changed, by their ages.
func with(n int, change func(t *retention.Table), ages ...int) retention.Inventory {
	inv := days(n)
	for _, ago := range ages {
		change(&inv.Tables[ago])
	}
	return inv
}

func inUse(t *retention.Table) { t.InUse = "queued" }

func unsized(t *retention.Table) { t.SizeKnown = false }

// hold covers the days from older to newer, by their ages.
func hold(older, newer int) retention.Hold {
	return retention.Hold{From: midnight(older), To: midnight(newer), Reason: "case 17"}
}

// verdicts writes a plan as ages and reasons, oldest first: "5:age 4:in_use,active".
func verdicts(p retention.Plan) string {
	type entry struct {
		day  time.Time
		text string
	}
	var all []entry
	add := func(t retention.Table, reasons ...retention.Reason) {
		ago := int(midnight(0).Sub(t.Day) / (24 * time.Hour))
		all = append(all, entry{t.Day, fmt.Sprintf("%d:%s", ago, strings.Trim(fmt.Sprint(reasons), "[]"))})
	}
	for _, d := range p.Drops {
		add(d.Table, d.Reason)
	}
	for _, k := range p.Keeps {
		add(k.Table, k.Reasons...)
	}
	slices.SortStableFunc(all, func(a, b entry) int { return a.day.Compare(b.day) })
	texts := make([]string, len(all))
	for i, e := range all {
		texts[i] = strings.ReplaceAll(e.text, " ", ",")
	}
	return strings.Join(texts, " ")
}
