package retention

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"
)

const (
	defaultKeepDays = 2
	graceHours      = 1                  // past midnight UTC, yesterday stays that long where only today is protected
	mostEmptied     = 3                  // tables that may go where none stays beside the protected days
	mostAbove       = 3 * 24 * time.Hour // that a cut may lie above the newest message
)

func (p Policy) keepDays() int { return cmp.Or(p.MinKeepDays, defaultKeepDays) }

// activeFrom returns the first of the newest days that no rule touches.
func (p Policy) activeFrom(now time.Time) day {
	keep := p.keepDays()
	if keep == 1 && now.Hour() < graceHours {
		keep = 2
	}
	return dayOf(now) - day(keep) + 1
}

// oldestKept is the one rule of age, for raw tables and messages alike: what is of an earlier day has expired.
// Today is not before the epoch, so nothing overflows.
func oldestKept(today day, days int) day { return today - day(days) }

// protect marks what no rule may take.
func (w *walk) protect() {
	for i := range w.tables {
		c := &w.tables[i]
		c.held = slices.ContainsFunc(w.plan.Policy.Holds, func(h Hold) bool { return h.covers(c.day) })
		c.blocked = c.InUse != "" || c.day >= w.active
		switch {
		case c.day > w.today:
			w.future.add(c.Name)
		case !c.sized():
		case c.day >= w.active:
			w.activeBytes = add(w.activeBytes, c.Bytes)
		case c.held || c.blocked:
			w.otherBytes = add(w.otherBytes, c.Bytes)
		}
	}
}

func (w *walk) byAge() {
	days := w.plan.Policy.RawDays
	if days == nil {
		return
	}
	for i := range w.tables {
		c := &w.tables[i]
		c.aged = !c.blocked && c.day < oldestKept(w.today, *days)
	}
}

// bySize takes whole days, oldest first, until the rest fits. It counts real tables of today and before. While
// a size is unknown, or the sum more than any disk holds, it takes none.
func (w *walk) bySize() {
	left := w.sum()
	limit := w.plan.Policy.RawBytes
	if limit == nil {
		return
	}
	for i := range w.tables {
		c := &w.tables[i]
		if left <= *limit || w.unknown.tables > 0 || w.plan.BytesAfter == math.MaxInt64 {
			break
		}
		if c.blocked || c.aged {
			continue
		}
		c.excess = true
		left -= c.Bytes
		if c.drops() {
			w.plan.BytesAfter -= c.Bytes
		}
	}
	w.plan.Shortfall = max(0, w.plan.BytesAfter-*limit)
}

// sum adds up what is there and what stays after the rule of age. It returns what would be left, were there no holds.
func (w *walk) sum() (left int64) {
	for i := range w.tables {
		c := &w.tables[i]
		switch {
		case c.day > w.today || !c.sized() && c.drops():
			continue
		case !c.sized():
			w.unknown.add(c.Name)
			continue
		}
		w.plan.Bytes = add(w.plan.Bytes, c.Bytes)
		if !c.drops() {
			w.plan.BytesAfter = add(w.plan.BytesAfter, c.Bytes)
		}
		if !c.aged {
			left = add(left, c.Bytes)
		}
	}
	return left
}

// conclude turns the candidates into the plan's lists.
func (w *walk) conclude() {
	drops := 0
	for i := range w.tables {
		if w.tables[i].drops() {
			drops++
		}
	}
	w.plan.Drops = make([]Drop, 0, drops)
	w.plan.Keeps = make([]Keep, 0, len(w.tables)-drops)
	reasons := make([]Reason, 0, len(w.tables)) // one array for all keeps
	for i := range w.tables {
		c := &w.tables[i]
		t := *c.Table
		t.Day = t.Day.UTC()
		switch {
		case c.drops() && c.aged:
			w.plan.Drops = append(w.plan.Drops, Drop{t, ReasonAge})
		case c.drops():
			w.plan.Drops = append(w.plan.Drops, Drop{t, ReasonSize})
		default:
			from := len(reasons)
			reasons = w.protections(reasons, c)
			if len(reasons) == from {
				w.within++
				reasons = append(reasons, ReasonWithinPolicy)
			}
			w.plan.Keeps = append(w.plan.Keeps, Keep{t, reasons[from:len(reasons):len(reasons)]})
		}
	}
}

// protections appends what protects the table, in order of precedence.
func (w *walk) protections(to []Reason, c *candidate) []Reason {
	if c.held {
		to = append(to, ReasonLegalHold)
	}
	if c.InUse != "" {
		to = append(to, ReasonInUse)
	}
	switch {
	case c.day > w.today:
		to = append(to, ReasonFuture)
	case c.day >= w.active:
		to = append(to, ReasonActive)
	}
	return to
}

func (w *walk) cut() {
	days := w.plan.Policy.MessageDays
	if days == nil {
		return
	}
	before := max(firstDay, min(oldestKept(w.today, *days), w.active))
	w.plan.MessageCut = &Cut{Before: before.start(), Except: w.plan.Policy.Holds}
}

// wouldEmpty refuses a plan after which no day stays but the protected ones, though the policy keeps more.
func (w *walk) wouldEmpty() error {
	p := w.plan.Policy
	switch {
	case p.AllowEmpty || len(w.plan.Drops) <= mostEmptied || w.within > 0:
		return nil
	case p.RawDays != nil && oldestKept(w.today, *p.RawDays) >= w.active:
		return nil // the rule of age keeps no more
	case p.RawBytes != nil && *p.RawBytes <= w.activeBytes:
		return nil // the limit leaves no room for more
	}
	return fmt.Errorf("%w: %d tables would go and none stay beside the protected ones; "+
		"look at the clock and the plan, and set AllowEmpty for one run if it is right", ErrWouldEmpty, len(w.plan.Drops))
}

func (w *walk) wouldPruneAll(newest time.Time) error {
	cut := w.plan.MessageCut
	if cut == nil || w.plan.Policy.AllowEmpty || newest.IsZero() || !cut.Before.After(newest.Add(mostAbove)) {
		return nil
	}
	return fmt.Errorf("%w: messages before %s would go, and the newest is of %s; "+
		"look at the clock, and set AllowEmpty for one run if it is right", ErrWouldEmpty, date(cut.Before), date(newest))
}

// add sums sizes, none of which is negative, and stops at the largest.
func add(a, b int64) int64 {
	if a > math.MaxInt64-b {
		return math.MaxInt64
	}
	return a + b
}
