package retention

import (
	"cmp"
	"slices"
	"strings"
)

// read takes in the inventory so that its order is of no account and no table is there twice.
func (w *walk) read(inv Inventory) {
	var undated []Ignored
	w.tables, undated = byDay(inv.Tables)
	// Names that grow with the days, as those of day tables do, are all different. Looking is cheaper than a map.
	if undated != nil || !ascending(w.tables) {
		w.tables, undated = byDay(joined(inv.Tables))
		slices.SortFunc(w.tables, func(a, b candidate) int {
			return cmp.Or(cmp.Compare(a.day, b.day), strings.Compare(a.Name, b.Name))
		})
	}
	w.plan.Ignored = slices.Concat(inv.Ignored, undated)
	slices.SortFunc(w.plan.Ignored, func(a, b Ignored) int {
		return cmp.Or(strings.Compare(a.Name, b.Name), strings.Compare(a.Reason, b.Reason))
	})
	w.plan.Drift = slices.Clone(inv.Drift)
	slices.SortFunc(w.plan.Drift, func(a, b Drift) int {
		return cmp.Or(strings.Compare(a.Table, b.Table), strings.Compare(string(a.Kind), string(b.Kind)), cmp.Compare(a.Bytes, b.Bytes))
	})
}

// byDay sorts the tables by their days. One without a day could be of any: it is left alone.
// It sorts numbers, which is much faster than to sort tables.
func byDay(tables []Table) (sorted []candidate, undated []Ignored) {
	const indexBits = 36 // the days of all years take 23, and a sign
	keys := make([]int64, 0, len(tables))
	for i := range tables {
		if t := &tables[i]; t.dated() {
			keys = append(keys, int64(dayOf(t.Day))<<indexBits|int64(i))
		} else {
			undated = append(undated, Ignored{Name: t.Name, Reason: "listed without its day"})
		}
	}
	slices.Sort(keys)
	sorted = make([]candidate, len(keys))
	for i, k := range keys {
		sorted[i] = candidate{Table: &tables[k&(1<<indexBits-1)], day: day(k >> indexBits)}
	}
	return sorted, undated
}

// ascending reports whether each name is above the one before.
func ascending(tables []candidate) bool {
	for i := 1; i < len(tables); i++ {
		if tables[i-1].Name >= tables[i].Name {
			return false
		}
	}
	return true
}

// joined lists each name once.
func joined(tables []Table) []Table {
	once := make([]Table, 0, len(tables))
	index := make(map[string]int, len(tables))
	for _, t := range tables {
		if at, twice := index[t.Name]; twice {
			once[at] = moreCareful(once[at], t)
			continue
		}
		index[t.Name] = len(once)
		once = append(once, t)
	}
	return once
}

// moreCareful joins two accounts of one table, whichever came first: what either protects is protected.
func moreCareful(a, b Table) Table {
	if a.dated() && (!b.dated() || b.Day.After(a.Day)) {
		a.Day = b.Day
	}
	a.SizeKnown = a.SizeKnown && b.SizeKnown && a.Bytes == b.Bytes
	a.Bytes = max(a.Bytes, b.Bytes)
	a.InUse = max(a.InUse, b.InUse)
	return a
}

// dated reports whether the table has a day that can be written.
func (t *Table) dated() bool { return dayOf(t.Day).known() }

// sized reports whether the size can be counted on. A negative one is a fault of the books.
func (t *Table) sized() bool { return t.SizeKnown && t.Bytes >= 0 }
