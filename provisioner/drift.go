package provisioner

import (
	"slices"
	"time"

	"github.com/mailretention/mailretention/internal/sqlname"
	"github.com/mailretention/mailretention/retention"
)

const (
	settledAfter = 2   // days: what is younger may be in the middle of being made or written
	danglingDays = 400 // how far back dangling pointers are looked for
)

// settledBefore returns the midnight before which bookkeeping, tables and pointers must agree.
func settledBefore(now time.Time) time.Time {
	return midnight(now).AddDate(0, 0, -settledAfter)
}

// nameRange are all names between two, both included.
type nameRange struct{ first, last string }

// absentDays are the tables that aren't there of the days for which dangling pointers are looked for, and the ranges that they make up.
// No range has a table that is there.
func (p *Provisioner) absentDays(v view) (names []string, ranges []nameRange) {
	limit, after := settledBefore(v.now), ""
	for back := 1; back <= danglingDays; back++ {
		name := p.days.Name(limit.AddDate(0, 0, -back))
		switch {
		case v.found(name).kind != "":
			after = ""
			continue
		case sqlname.Precedes(name, after):
			ranges[len(ranges)-1].first = name
		default:
			ranges = append(ranges, nameRange{name, name})
		}
		after = name
		names = append(names, name)
	}
	return names, ranges
}

// drift lists where bookkeeping, tables and pointers disagree. A name that is a view's has neither a table nor none: it is left alone.
func (p *Provisioner) drift(v view) []retention.Drift {
	list := []retention.Drift{}
	add := func(table string, kind retention.DriftKind) {
		list = append(list, retention.Drift{Table: table, Kind: kind, Bytes: claimed(v.found(table).booked)})
	}
	for _, table := range slices.Sorted(slices.Values(v.dangling)) {
		add(table, retention.DriftDangling)
	}
	if p.names.sizes == "" {
		return list
	}
	limit := settledBefore(v.now)
	var orphans []string
	for name, n := range v.names {
		if n.kind == "" && n.isDay && n.day.Before(limit) {
			orphans = append(orphans, name)
		}
	}
	for _, table := range slices.Sorted(slices.Values(orphans)) {
		add(table, retention.DriftOrphan)
	}
	for _, t := range v.tables {
		switch {
		case !t.day.Before(limit):
		case len(t.booked) > 1:
			add(t.name, retention.DriftDouble)
		case len(t.booked) == 0 || !usable(t.booked[0]):
			add(t.name, retention.DriftMissing)
		}
	}
	return list
}
