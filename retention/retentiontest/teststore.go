package retentiontest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/mailretention/mailretention/retention"
)

// TestStore checks what [retention.Store] promises. open is called for each check, and returns a store of its own
// that has what the fixture says, with no drift and nothing ignored.
//
// Its days are far enough from midnight's changes to run at any time of the day.
func TestStore(t *testing.T, open func(*testing.T, Fixture) retention.Store) {
	for _, c := range storeChecks {
		t.Run(c.name, func(t *testing.T) {
			s := subject{fixture: fixture(time.Now())}
			s.Store = open(t, s.fixture)
			if err := c.check(t.Context(), s); err != nil {
				t.Error(err)
			}
		})
	}
}

// The ages of the fixture's days, in the order of their message ids: the oldest mail came last.
const (
	recent  = 3
	newest  = 1
	pending = 16
	empty   = 12
	old     = 18
	oldest  = 20
)

func fixture(now time.Time) Fixture {
	f := Fixture{Now: now.UTC().Truncate(time.Second)}
	for i, ago := range []int{recent, newest, pending, empty, old, oldest} {
		d := Day{Table: f.table(ago), Messages: 25 + i, Bytes: 10_000 + int64(i)}
		switch ago {
		case pending:
			d.Pending = 4
		case empty:
			d.Messages, d.Bytes = 0, 0
		}
		f.Days = append(f.Days, d)
	}
	return f
}

func (f Fixture) midnight(ago int) time.Time {
	return f.Now.Truncate(24*time.Hour).AddDate(0, 0, -ago)
}

func (f Fixture) table(ago int) string { return f.midnight(ago).Format(layout) }

func (f Fixture) day(ago int) Day {
	i := slices.IndexFunc(f.Days, func(d Day) bool { return d.Table == f.table(ago) })
	return f.Days[i]
}

// subject is a store that is checked, and what it began with.
type subject struct {
	retention.Store
	fixture Fixture
}

// storeChecks are functions of their own, so that they can be tried on stores that break a rule.
var storeChecks = []struct {
	name  string
	check func(context.Context, subject) error
}{
	{"the inventory has each table with its day, size and use", checkInventory},
	{"reading changes nothing", checkReading},
	{"a drop takes one table and says its rows", checkDrop},
	{"a dropped table's messages stay", checkDropKeepsMessages},
	{"dropping what is gone is no error", checkDropGone},
	{"a name that is no day's drops nothing", checkDropOther},
	{"a table with a pending message is in use", checkDropPending},
	{"a drop stops with the error of progress", checkDropProgress},
	{"a drop ends with its context", checkDropCancelled},
	{"a message goes by its own time", checkPruneTime},
	{"a pending message is not pruned", checkPrunePending},
	{"excepted days are not pruned", checkPruneExcept},
	{"pruning stops with the error of progress", checkPruneProgress},
	{"nothing begins after the end of its context", checkEnded},
	{"two at once do the work once", checkTwo},
	{"reconciling what agrees repairs nothing", checkReconcile},
	{"a run does all, the next one nothing", checkRun},
}

// drop drops the table of the day and returns its rows.
func (s subject) drop(ctx context.Context, ago int) (rows int64, err error) {
	err = s.DropTable(ctx, s.fixture.table(ago), func(n int64) error {
		rows += n
		return nil
	})
	return rows, err
}

// prune prunes and returns the rows.
func (s subject) prune(ctx context.Context, cut retention.Cut) (rows int64, err error) {
	err = s.PruneMessages(ctx, cut, func(n int64) error {
		rows += n
		return nil
	})
	return rows, err
}

// pruned prunes, and says what is wrong unless exactly the messages of the days go.
func (s subject) pruned(ctx context.Context, cut retention.Cut, days ...int) error {
	var want int64
	for _, ago := range days {
		d := s.fixture.day(ago)
		want += int64(d.Messages - d.Pending)
	}
	rows, err := s.prune(ctx, cut)
	if err != nil {
		return fmt.Errorf("PruneMessages(%s, except %v): %w", cut.Before, cut.Except, err)
	}
	if rows != want {
		return fmt.Errorf("PruneMessages(%s, except %v) told progress of %d rows, want %d", cut.Before, cut.Except, rows, want)
	}
	return nil
}

// has says what is wrong unless exactly the tables of the fixture but for those of the days are there.
func (s subject) has(ctx context.Context, but ...int) error {
	inv, err := s.Inventory(ctx)
	if err != nil {
		return fmt.Errorf("Inventory: %w", err)
	}
	var want, got []string
	for _, d := range s.fixture.Days {
		if !slices.ContainsFunc(but, func(ago int) bool { return d.Table == s.fixture.table(ago) }) {
			want = append(want, d.Table)
		}
	}
	for _, t := range inv.Tables {
		got = append(got, t.Name)
	}
	slices.Sort(want)
	slices.Sort(got)
	if !slices.Equal(got, want) {
		return fmt.Errorf("the tables are %v, want %v", got, want)
	}
	if len(inv.Drift) > 0 || len(inv.Ignored) > 0 {
		return fmt.Errorf("the inventory shows drift %v and ignores %v, want neither", inv.Drift, inv.Ignored)
	}
	return nil
}

// wants says what is wrong unless err matches target.
func wants(what string, err, target error) error {
	if !errors.Is(err, target) {
		return fmt.Errorf("%s: the error is %v, want one that matches %v", what, err, target)
	}
	return nil
}
