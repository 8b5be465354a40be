package retentiontest

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mailretention/mailretention/retention"
	"github.com/stretchr/testify/require"
)

// faulty is a store with one method that breaks a rule.
type faulty struct {
	*Store
	inventory func(s *Store, ctx context.Context) (retention.Inventory, error)
	reconcile func(s *Store, ctx context.Context) (int, error)
	drop      func(s *Store, ctx context.Context, name string, progress func(int64) error) error
	prune     func(s *Store, ctx context.Context, cut retention.Cut, progress func(int64) error) error
}

func (f faulty) Inventory(ctx context.Context) (retention.Inventory, error) {
	if f.inventory == nil {
		return f.Store.Inventory(ctx)
	}
	return f.inventory(f.Store, ctx)
}

func (f faulty) Reconcile(ctx context.Context) (int, error) {
	if f.reconcile == nil {
		return f.Store.Reconcile(ctx)
	}
	return f.reconcile(f.Store, ctx)
}

func (f faulty) DropTable(ctx context.Context, name string, progress func(int64) error) error {
	if f.drop == nil {
		return f.Store.DropTable(ctx, name, progress)
	}
	return f.drop(f.Store, ctx, name, progress)
}

func (f faulty) PruneMessages(ctx context.Context, cut retention.Cut, progress func(int64) error) error {
	if f.prune == nil {
		return f.Store.PruneMessages(ctx, cut, progress)
	}
	return f.prune(f.Store, ctx, cut, progress)
}

// listing changes the inventory.
func listing(change func(inv *retention.Inventory)) faulty {
	return faulty{inventory: func(s *Store, ctx context.Context) (retention.Inventory, error) {
		inv, err := s.Inventory(ctx)
		change(&inv)
		return inv, err
	}}
}

// tables changes each table of the inventory.
func tables(change func(t *retention.Table)) faulty {
	return listing(func(inv *retention.Inventory) {
		for i := range inv.Tables {
			change(&inv.Tables[i])
		}
	})
}

// cutting changes what is pruned.
func cutting(change func(cut retention.Cut) retention.Cut) faulty {
	return faulty{prune: func(s *Store, ctx context.Context, cut retention.Cut, progress func(int64) error) error {
		return s.PruneMessages(ctx, change(cut), progress)
	}}
}

// dropping hands drops on with another context, name and progress.
func dropping(change func(ctx context.Context, name string, progress func(int64) error) (context.Context, string, func(int64) error)) faulty {
	return faulty{drop: func(s *Store, ctx context.Context, name string, progress func(int64) error) error {
		ctx, name, progress = change(ctx, name, progress)
		return s.DropTable(ctx, name, progress)
	}}
}

// pruning hands prunings on with another context and progress.
func pruning(change func(ctx context.Context, progress func(int64) error) (context.Context, func(int64) error)) faulty {
	return faulty{prune: func(s *Store, ctx context.Context, cut retention.Cut, progress func(int64) error) error {
		ctx, progress = change(ctx, progress)
		return s.PruneMessages(ctx, cut, progress)
	}}
}

// alter changes what is in the store.
func (s *Store) alter(change func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change()
}

func deaf(progress func(int64) error) func(int64) error {
	return func(rows int64) error {
		if progress != nil {
			_ = progress(rows)
		}
		return nil
	}
}

func doubled(progress func(int64) error) func(int64) error {
	return func(rows int64) error {
		if progress == nil {
			return nil
		}
		return progress(2 * rows)
	}
}

var errGone = errors.New("unknown table")

func TestStoreCatches(t *testing.T) {
	faults := map[string]faulty{
		"drops a table that is in use": {drop: func(s *Store, ctx context.Context, name string, progress func(int64) error) error {
			s.alter(func() {
				for i := range s.messages {
					s.messages[i].pending = s.messages[i].pending && s.messages[i].table != name
				}
			})
			return s.DropTable(ctx, name, progress)
		}},
		"detaches pending messages and keeps the table": {drop: func(s *Store, ctx context.Context, name string, progress func(int64) error) error {
			err := s.DropTable(ctx, name, progress)
			s.alter(func() {
				for i := range s.messages {
					if s.messages[i].table == name {
						s.messages[i].table = ""
					}
				}
			})
			return err
		}},
		"fails for a table in use": {drop: func(s *Store, ctx context.Context, name string, progress func(int64) error) error {
			if err := s.DropTable(ctx, name, progress); errors.Is(err, retention.ErrInUse) {
				return errGone
			}
			return nil
		}},
		"fails for a table that is gone": {drop: func(s *Store, ctx context.Context, name string, progress func(int64) error) error {
			there := false
			s.alter(func() { _, there = s.bytes[name] })
			if !there {
				return errGone
			}
			return s.DropTable(ctx, name, progress)
		}},
		"drops the messages too": {drop: func(s *Store, ctx context.Context, name string, progress func(int64) error) error {
			err := s.DropTable(ctx, name, progress)
			s.alter(func() {
				s.messages = slices.DeleteFunc(s.messages, func(m message) bool { return m.table == "" })
			})
			return err
		}},
		"drops all tables": {drop: func(s *Store, ctx context.Context, name string, progress func(int64) error) error {
			err := s.DropTable(ctx, name, progress)
			s.alter(func() { clear(s.bytes) })
			return err
		}},
		"drops nothing": {drop: func(*Store, context.Context, string, func(int64) error) error { return nil }},
		"drops by prefix": {drop: func(s *Store, ctx context.Context, name string, progress func(int64) error) error {
			var errs []error
			var all []string
			s.alter(func() { all = slices.Collect(maps.Keys(s.bytes)) })
			for _, table := range all {
				if strings.HasPrefix(table, name) {
					errs = append(errs, s.DropTable(ctx, table, progress))
				}
			}
			return errors.Join(errs...)
		}},
		"compares names as a collation does": dropping(func(ctx context.Context, name string, progress func(int64) error) (context.Context, string, func(int64) error) {
			return ctx, strings.ToLower(strings.TrimSpace(name)), progress
		}),
		"a drop ignores its context": dropping(func(ctx context.Context, name string, progress func(int64) error) (context.Context, string, func(int64) error) {
			return context.WithoutCancel(ctx), name, progress
		}),
		"a drop looks at its context only before": {drop: func(s *Store, ctx context.Context, name string, progress func(int64) error) error {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			return s.DropTable(context.WithoutCancel(ctx), name, progress)
		}},
		"a drop ignores the error of progress": dropping(func(ctx context.Context, name string, progress func(int64) error) (context.Context, string, func(int64) error) {
			return ctx, name, deaf(progress)
		}),
		"a drop tells the error of progress at its end": {drop: func(s *Store, ctx context.Context, name string, progress func(int64) error) error {
			var stop error
			err := s.DropTable(ctx, name, func(rows int64) error {
				if progress != nil && stop == nil {
					stop = progress(rows)
				}
				return nil
			})
			return errors.Join(stop, err)
		}},
		"a drop hides the error of progress": {drop: func(s *Store, ctx context.Context, name string, progress func(int64) error) error {
			if err := s.DropTable(ctx, name, progress); err != nil && !errors.Is(err, retention.ErrInUse) && ctx.Err() == nil {
				return fmt.Errorf("drop: %v", err) //nolint:errorlint // the fault
			}
			return nil
		}},
		"a drop counts rows twice": dropping(func(ctx context.Context, name string, progress func(int64) error) (context.Context, string, func(int64) error) {
			return ctx, name, doubled(progress)
		}),
		"a drop needs progress": dropping(func(ctx context.Context, name string, progress func(int64) error) (context.Context, string, func(int64) error) {
			if progress == nil {
				return ctx, "", nil
			}
			return ctx, name, progress
		}),
		"a drop tells no progress": dropping(func(ctx context.Context, name string, _ func(int64) error) (context.Context, string, func(int64) error) {
			return ctx, name, nil
		}),

		"prunes by id": {prune: func(s *Store, ctx context.Context, cut retention.Cut, progress func(int64) error) error {
			s.alter(func() {
				highest := -1
				for i, m := range s.messages {
					if m.time.Before(cut.Before) && !excepted(cut, m.time) {
						highest = i
					}
				}
				for i := range highest + 1 {
					s.messages[i].time = time.Unix(0, 0)
				}
			})
			return s.PruneMessages(ctx, cut, progress)
		}},
		"prunes by the day": cutting(func(cut retention.Cut) retention.Cut {
			cut.Before = cut.Before.Add(time.Second)
			return cut
		}),
		"prunes a day too few": cutting(func(cut retention.Cut) retention.Cut {
			cut.Before = cut.Before.AddDate(0, 0, -1)
			return cut
		}),
		"prunes pending messages": {prune: func(s *Store, ctx context.Context, cut retention.Cut, progress func(int64) error) error {
			s.alter(func() {
				for i := range s.messages {
					s.messages[i].pending = false
				}
			})
			return s.PruneMessages(ctx, cut, progress)
		}},
		"prunes held days": cutting(func(cut retention.Cut) retention.Cut {
			cut.Except = nil
			return cut
		}),
		"reads only the first hold": cutting(func(cut retention.Cut) retention.Cut {
			cut.Except = cut.Except[:min(1, len(cut.Except))]
			return cut
		}),
		"takes the end of a hold as outside": cutting(func(cut retention.Cut) retention.Cut {
			cut.Except = slices.Clone(cut.Except)
			for i := range cut.Except {
				if h := &cut.Except[i]; !h.To.IsZero() {
					h.To = h.To.AddDate(0, 0, -1)
				}
			}
			return cut
		}),
		"does not know the day after the last": cutting(func(cut retention.Cut) retention.Cut {
			cut.Except = slices.DeleteFunc(slices.Clone(cut.Except), func(h retention.Hold) bool { return h.To.AddDate(0, 0, 1).Year() > 9999 })
			return cut
		}),
		"takes an open end as the first moment": cutting(func(cut retention.Cut) retention.Cut {
			cut.Except = slices.DeleteFunc(slices.Clone(cut.Except), func(h retention.Hold) bool { return h.To.IsZero() })
			return cut
		}),
		"pruning ignores its context": pruning(func(ctx context.Context, progress func(int64) error) (context.Context, func(int64) error) {
			return context.WithoutCancel(ctx), progress
		}),
		"pruning ignores the error of progress": pruning(func(ctx context.Context, progress func(int64) error) (context.Context, func(int64) error) {
			return ctx, deaf(progress)
		}),
		"pruning counts rows twice": pruning(func(ctx context.Context, progress func(int64) error) (context.Context, func(int64) error) {
			return ctx, doubled(progress)
		}),
		"pruning takes the tables": {prune: func(s *Store, ctx context.Context, cut retention.Cut, progress func(int64) error) error {
			s.alter(func() { clear(s.bytes) })
			return s.PruneMessages(ctx, cut, progress)
		}},

		"lists a table twice":         listing(func(inv *retention.Inventory) { inv.Tables = append(inv.Tables, inv.Tables[0]) }),
		"leaves a table out":          listing(func(inv *retention.Inventory) { inv.Tables = inv.Tables[1:] }),
		"gives local times":           listing(func(inv *retention.Inventory) { inv.Now = inv.Now.In(time.FixedZone("", 3600)) }),
		"gives a wrong clock":         listing(func(inv *retention.Inventory) { inv.Now = inv.Now.AddDate(0, 0, 1) }),
		"does not know the newest":    listing(func(inv *retention.Inventory) { inv.Newest = time.Time{} }),
		"takes the newest by id":      listing(func(inv *retention.Inventory) { inv.Newest = inv.Newest.AddDate(0, 0, 1-oldest) }),
		"shows drift":                 listing(func(inv *retention.Inventory) { inv.Drift = []retention.Drift{{Kind: retention.DriftOrphan}} }),
		"does not say what is in use": tables(func(t *retention.Table) { t.InUse = "" }),
		"says that all are in use":    tables(func(t *retention.Table) { t.InUse = "backup" }),
		"knows no sizes":              tables(func(t *retention.Table) { t.SizeKnown = false }),
		"gives wrong sizes":           tables(func(t *retention.Table) { t.Bytes++ }),
		"gives another day":           tables(func(t *retention.Table) { t.Day = t.Day.AddDate(0, 0, 1) }),
		"gives no day":                tables(func(t *retention.Table) { t.Day = time.Time{} }),
		"reading ignores its context": {inventory: func(s *Store, ctx context.Context) (retention.Inventory, error) {
			return s.Inventory(context.WithoutCancel(ctx))
		}},
		"reading changes something": {inventory: func(s *Store, ctx context.Context) (retention.Inventory, error) {
			s.bytes["raw-2001-01-01"]++
			return s.Inventory(ctx)
		}},
		"always finds work": {reconcile: func(*Store, context.Context) (int, error) { return 1, nil }},
		"reconciling fails": {reconcile: func(*Store, context.Context) (int, error) { return 0, errGone }},
		"repairs by deleting the table": {reconcile: func(s *Store, ctx context.Context) (int, error) {
			s.alter(func() { clear(s.bytes) })
			return s.Reconcile(ctx)
		}},
	}
	require.Empty(t, failing(t, faulty{}), "a store without a fault")
	for name, f := range faults {
		t.Run(name, func(t *testing.T) { require.NotEmpty(t, failing(t, f)) })
	}
}

// failing returns the checks that a store fails.
func failing(t *testing.T, f faulty) (names []string) {
	for _, c := range storeChecks {
		s := subject{fixture: fixture(time.Now())}
		f.Store = NewStore(s.fixture)
		s.Store = f
		if err := c.check(t.Context(), s); err != nil {
			names = append(names, c.name)
		}
	}
	return names
}
