package retentiontest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/mailretention/mailretention/retention"
)

var errStopHere = errors.New("stop here")

func checkInventory(ctx context.Context, s subject) error {
	inv, err := s.Inventory(ctx)
	if err != nil {
		return err
	}
	if d := inv.Now.Sub(s.fixture.Now); d.Abs() > time.Hour || inv.Now.Location() != time.UTC {
		return fmt.Errorf("the inventory's Now is %s, want about %s, in UTC", inv.Now, s.fixture.Now)
	}
	if got, want := inv.Newest.UTC().Truncate(24*time.Hour), s.fixture.midnight(newest); !got.Equal(want) {
		return fmt.Errorf("the inventory's Newest is of %s, want the day of the newest message, %s", got, want)
	}
	for _, t := range inv.Tables {
		for _, d := range s.fixture.Days {
			if d.Table != t.Name {
				continue
			}
			day, _ := time.Parse(layout, d.Table)
			if !t.Day.Equal(day) || t.Bytes != d.Bytes || !t.SizeKnown || (t.InUse != "") != (d.Pending > 0) {
				err = errors.Join(err, fmt.Errorf("the inventory has %+v for %+v", t, d))
			}
		}
	}
	return errors.Join(err, s.has(ctx))
}

func checkReading(ctx context.Context, s subject) error {
	var read [2]retention.Inventory
	for i := range read {
		inv, err := s.Inventory(ctx)
		if err != nil {
			return err
		}
		slices.SortFunc(inv.Tables, func(a, b retention.Table) int { return strings.Compare(a.Name, b.Name) })
		inv.Now = s.fixture.Now
		read[i] = inv
	}
	if !reflect.DeepEqual(read[0], read[1]) {
		return fmt.Errorf("a second inventory is %+v, the first %+v", read[1], read[0])
	}
	return nil
}

func checkDrop(ctx context.Context, s subject) error {
	rows, err := s.drop(ctx, old)
	if want := int64(s.fixture.day(old).Messages); err != nil || rows != want {
		return fmt.Errorf("DropTable told progress of %d rows and returned %v, want %d and no error", rows, err, want)
	}
	if err := s.has(ctx, old); err != nil {
		return err
	}
	if err := s.DropTable(ctx, s.fixture.table(empty), nil); err != nil {
		return fmt.Errorf("DropTable of an empty table without progress: %w", err)
	}
	return s.has(ctx, old, empty)
}

func checkDropKeepsMessages(ctx context.Context, s subject) error {
	if _, err := s.drop(ctx, oldest); err != nil {
		return err
	}
	return s.pruned(ctx, retention.Cut{Before: s.fixture.midnight(recent)}, oldest, old, pending)
}

func checkDropGone(ctx context.Context, s subject) error {
	for range 2 {
		if _, err := s.drop(ctx, oldest); err != nil {
			return fmt.Errorf("DropTable of a table, twice: %w", err)
		}
	}
	if rows, err := s.drop(ctx, 40); err != nil || rows != 0 {
		return fmt.Errorf("DropTable of a day that never was told progress of %d rows and returned %v, want 0 and no error", rows, err)
	}
	return s.has(ctx, oldest)
}

// checkDropOther leaves it to the store whether such a name is an error.
func checkDropOther(ctx context.Context, s subject) error {
	if _, err := s.drop(ctx, oldest); err != nil {
		return err
	}
	name := s.fixture.table(old)
	for _, other := range []string{"", "messages", "raw-backup", name + "-old", name + " ", "RAW" + name[3:], name[:len(name)-1], "raw-%"} {
		_ = s.DropTable(ctx, other, nil)
	}
	// The messages are all there, and still point at their tables.
	rows, err := s.drop(ctx, old)
	if want := int64(s.fixture.day(old).Messages); err != nil || rows != want {
		return fmt.Errorf("after drops of other names a drop told progress of %d rows and returned %v, want %d and no error", rows, err, want)
	}
	return cmp.Or(s.has(ctx, oldest, old), s.pruned(ctx, retention.Cut{Before: s.fixture.midnight(recent)}, oldest, old, pending))
}

func checkDropPending(ctx context.Context, s subject) error {
	for range 2 {
		_, err := s.drop(ctx, pending)
		if err := wants("DropTable with a pending message", err, retention.ErrInUse); err != nil {
			return err
		}
	}
	return cmp.Or(checkInventory(ctx, s), s.has(ctx))
}

func checkDropProgress(ctx context.Context, s subject) error {
	var rows int64
	err := s.DropTable(ctx, s.fixture.table(old), func(n int64) error {
		rows += n
		return errStopHere
	})
	if err := cmp.Or(wants("DropTable with an error of progress", err, errStopHere), s.has(ctx)); err != nil {
		return err
	}
	rest, err := s.drop(ctx, old)
	if want := int64(s.fixture.day(old).Messages); err != nil || rows+rest != want {
		return fmt.Errorf("a stopped drop and a second one told of %d and %d rows and returned %v, want %d in all", rows, rest, err, want)
	}
	return s.has(ctx, old)
}

func checkDropCancelled(ctx context.Context, s subject) error {
	inner, cancel := context.WithCancel(ctx)
	defer cancel()
	err := s.DropTable(inner, s.fixture.table(old), func(int64) error {
		cancel()
		return nil
	})
	return cmp.Or(wants("DropTable whose context ends between batches", err, context.Canceled), s.has(ctx))
}

func checkPruneTime(ctx context.Context, s subject) error {
	f := s.fixture
	for _, step := range []struct {
		before time.Time
		days   []int
	}{
		{time.Time{}, nil},
		{f.midnight(oldest), nil}, // its first moment is not before it
		{f.midnight(oldest - 1), []int{oldest}},
		{f.midnight(oldest - 1), nil}, // again
		{f.midnight(recent), []int{old, pending}},
		{f.midnight(newest), []int{recent}},
		{f.midnight(0), []int{newest}},
	} {
		if err := s.pruned(ctx, retention.Cut{Before: step.before}, step.days...); err != nil {
			return err
		}
	}
	return s.has(ctx)
}

func checkPrunePending(ctx context.Context, s subject) error {
	if err := s.PruneMessages(ctx, retention.Cut{Before: s.fixture.midnight(0)}, nil); err != nil {
		return err
	}
	_, err := s.drop(ctx, pending)
	return wants("DropTable, all but the pending messages being pruned", err, retention.ErrInUse)
}

func checkPruneExcept(ctx context.Context, s subject) error {
	f := s.fixture
	before := f.midnight(recent)
	cut := func(holds ...retention.Hold) retention.Cut { return retention.Cut{Before: before, Except: holds} }
	day := func(ago int) retention.Hold { return retention.Hold{From: f.midnight(ago), To: f.midnight(ago)} }
	lastDay := time.Date(9999, time.December, 31, 0, 0, 0, 0, time.UTC) // the day after it can't be written
	return cmp.Or(
		s.pruned(ctx, cut(retention.Hold{})),
		s.pruned(ctx, cut(retention.Hold{From: f.midnight(oldest), To: lastDay})),
		s.pruned(ctx, cut(retention.Hold{To: f.midnight(pending)})),
		s.pruned(ctx, cut(retention.Hold{From: f.midnight(oldest)})),
		s.pruned(ctx, cut(day(oldest), day(pending)), old),
		s.pruned(ctx, cut(retention.Hold{From: f.midnight(pending)}), oldest),
		s.pruned(ctx, cut(day(recent)), pending),
	)
}

func checkPruneProgress(ctx context.Context, s subject) error {
	cut := retention.Cut{Before: s.fixture.midnight(old - 1)}
	var rows int64
	err := s.PruneMessages(ctx, cut, func(n int64) error {
		rows += n
		return errStopHere
	})
	if err := wants("PruneMessages with an error of progress", err, errStopHere); err != nil {
		return err
	}
	rest, err := s.prune(ctx, cut)
	if want := int64(s.fixture.day(old).Messages + s.fixture.day(oldest).Messages); err != nil || rows+rest != want {
		return fmt.Errorf("a stopped pruning and a second one told of %d and %d rows and returned %v, want %d in all", rows, rest, err, want)
	}
	return nil
}

func checkEnded(ctx context.Context, s subject) error {
	ended, cancel := context.WithCancel(ctx)
	cancel()
	cut := retention.Cut{Before: s.fixture.midnight(recent)}
	_, inventory := s.Inventory(ended)
	_, reconcile := s.Reconcile(ended)
	_, drop := s.drop(ended, oldest)
	_, prune := s.prune(ended, cut)
	return errors.Join(
		wants("Inventory", inventory, context.Canceled),
		wants("Reconcile", reconcile, context.Canceled),
		wants("DropTable", drop, context.Canceled),
		wants("PruneMessages", prune, context.Canceled),
		s.has(ctx),
		s.pruned(ctx, cut, oldest, old, pending),
	)
}

// checkTwo has each row told of once, by whoever took it.
func checkTwo(ctx context.Context, s subject) error {
	var wg sync.WaitGroup
	var drops, prunes [2]int64
	var errs [4]error
	for i := range 2 {
		wg.Go(func() { drops[i], errs[i] = s.drop(ctx, recent) })
		wg.Go(func() { prunes[i], errs[2+i] = s.prune(ctx, retention.Cut{Before: s.fixture.midnight(pending)}) })
	}
	wg.Wait()
	err := errors.Join(errs[:]...)
	if want := int64(s.fixture.day(recent).Messages); err != nil || drops[0]+drops[1] != want {
		return fmt.Errorf("two drops at once told of %v rows and returned %v, want %d in all", drops, err, want)
	}
	if want := int64(s.fixture.day(oldest).Messages + s.fixture.day(old).Messages); prunes[0]+prunes[1] != want {
		return fmt.Errorf("two prunings at once told of %v rows, want %d in all", prunes, want)
	}
	return s.has(ctx, recent)
}

func checkReconcile(ctx context.Context, s subject) error {
	for range 2 {
		if n, err := s.Reconcile(ctx); n != 0 || err != nil {
			return fmt.Errorf("Reconcile repaired %d places and returned %v, want 0 and no error", n, err)
		}
	}
	if _, err := s.drop(ctx, oldest); err != nil {
		return err
	}
	if n, err := s.Reconcile(ctx); n != 0 || err != nil {
		return fmt.Errorf("after a drop Reconcile repaired %d places and returned %v, want 0 and no error", n, err)
	}
	return s.has(ctx, oldest)
}

func checkRun(ctx context.Context, s subject) error {
	days := 10
	cfg := retention.Config{Name: "contract", Policy: retention.Policy{RawDays: &days, MessageDays: &days}}
	report, err := retention.Run(ctx, s, cfg)
	if err != nil || report.Outcome != retention.OutcomeDone {
		return fmt.Errorf("the first run: %s: %w", report, err)
	}
	if err := s.has(ctx, oldest, old, empty); err != nil {
		return err
	}
	report, err = retention.Run(ctx, s, cfg)
	if err != nil || report.Outcome != retention.OutcomeNothingToDo {
		return fmt.Errorf("the second run: %s: %v", report, err)
	}
	return s.has(ctx, oldest, old, empty)
}
