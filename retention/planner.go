package retention

import (
	"cmp"
	"errors"
	"fmt"
)

// Plan says what goes and what stays. It is pure: no I/O, no clock.
//
// A hold only ever keeps: in the walk for RawBytes what it protects counts as gone, so that no other day goes in
// its place. Mail that is in use counts as there, and the next days go instead.
//
// Beside an error that matches [ErrWouldEmpty] the plan is whole, to be read; it is not to be carried out.
// Other errors match [ErrBadPolicy] or, where Inventory.Now can't be a server's time, [ErrSuspectClock].
func (p Policy) Plan(inv Inventory) (Plan, error) {
	plan := Plan{Now: inv.Now.UTC(), Policy: p}
	if err := p.Validate(); err != nil {
		return plan, err
	}
	today := dayOf(plan.Now)
	if today < epoch || today > lastDay {
		return plan, fmt.Errorf("%w: the database says it is %s", ErrSuspectClock, plan.Now)
	}
	w := walk{plan: &plan, today: today, active: p.activeFrom(plan.Now)}
	w.read(inv)
	w.protect()
	w.byAge()
	w.bySize()
	w.conclude()
	w.cut()
	w.warn()
	return plan, errors.Join(w.wouldEmpty(), w.wouldPruneAll(inv.Newest))
}

// walk is the making of one plan.
type walk struct {
	plan          *Plan
	today, active day         // active: the first of the newest days that no rule touches
	tables        []candidate // oldest first, none twice
	activeBytes   int64       // of the active days' tables
	otherBytes    int64       // of older tables that are protected
	future        tally       // tables of days to come
	unknown       tally       // tables of today and before that stay and whose size is unknown
	within        int         // tables that stay only because no rule takes them
}

// tally counts tables and remembers the first.
type tally struct {
	tables int
	first  string
}

func (t *tally) add(name string) {
	t.first = cmp.Or(t.first, name)
	t.tables++
}

// candidate is a table on its way to a verdict.
type candidate struct {
	*Table
	day     day
	held    bool
	blocked bool // protected otherwise than by a hold
	aged    bool // taken by the rule of age, were there no holds
	excess  bool // taken by the rule of size, were there no holds
}

func (c *candidate) drops() bool { return (c.aged || c.excess) && !c.held }
