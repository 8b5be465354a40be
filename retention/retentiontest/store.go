package retentiontest

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/mailretention/mailretention/retention"
)

// batchRows is the size of the in-memory store's batches.
const batchRows = 10

var _ retention.Store = (*Store)(nil)

// Store is a message database in memory. It may be used by several goroutines.
type Store struct {
	now     time.Time
	ignored []retention.Ignored

	mu       sync.Mutex
	bytes    map[string]int64 // by table
	messages []message        // by id
}

type message struct {
	time    time.Time
	table   string // "" once it is detached
	pending bool
}

// NewStore returns a store that has what f says. A table whose name is not a day's is listed as ignored.
func NewStore(f Fixture) *Store {
	s := &Store{now: f.Now.UTC(), bytes: map[string]int64{}}
	for _, d := range f.Days {
		day, err := time.Parse(layout, d.Table)
		if err != nil {
			s.ignored = append(s.ignored, retention.Ignored{Name: d.Table, Reason: "not the name of a day"})
			continue
		}
		s.bytes[d.Table] = d.Bytes
		for i := range d.Messages {
			at := day.Add(time.Duration(i) * time.Second % (24 * time.Hour))
			s.messages = append(s.messages, message{time: at, table: d.Table, pending: i < d.Pending})
		}
	}
	return s
}

// Messages returns how many message rows there are.
func (s *Store) Messages() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.messages)
}

// Inventory lists the tables by name.
func (s *Store) Inventory(ctx context.Context) (retention.Inventory, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	inv := retention.Inventory{Now: s.now, Ignored: slices.Clone(s.ignored)}
	for _, name := range slices.Sorted(maps.Keys(s.bytes)) {
		day, err := time.Parse(layout, name)
		if err != nil {
			return retention.Inventory{}, err
		}
		inv.Tables = append(inv.Tables, retention.Table{Name: name, Day: day, Bytes: s.bytes[name], SizeKnown: true, InUse: s.inUse(name)})
	}
	const newest = 1000 // ids
	for _, m := range s.messages[max(0, len(s.messages)-newest):] {
		if m.time.After(inv.Newest) {
			inv.Newest = m.time
		}
	}
	return inv, ctx.Err()
}

func (s *Store) inUse(table string) string {
	pending := 0
	for _, m := range s.messages {
		if m.table == table && m.pending {
			pending++
		}
	}
	if pending == 0 {
		return ""
	}
	return fmt.Sprintf("messages still to be sent: %d", pending)
}

// Reconcile has nothing to repair.
func (s *Store) Reconcile(ctx context.Context) (repaired int, err error) { return 0, ctx.Err() }

// DropTable detaches the table's messages, ten in a batch, and removes it unless a pending one is left.
func (s *Store) DropTable(ctx context.Context, name string, progress func(rows int64) error) error {
	err := batches(ctx, progress, func() (rows int64) {
		s.mu.Lock()
		defer s.mu.Unlock()
		_, there := s.bytes[name]
		for i := range s.messages {
			if m := &s.messages[i]; there && m.table == name && !m.pending && rows < batchRows {
				m.table = ""
				rows++
			}
		}
		return rows
	})
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if why := s.inUse(name); why != "" {
		return fmt.Errorf("%s: %w: %s", name, retention.ErrInUse, why)
	}
	delete(s.bytes, name)
	return nil
}

// PruneMessages deletes what the cut says, ten in a batch, but for pending messages.
func (s *Store) PruneMessages(ctx context.Context, cut retention.Cut, progress func(rows int64) error) error {
	return batches(ctx, progress, func() (rows int64) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.messages = slices.DeleteFunc(s.messages, func(m message) bool {
			goes := rows < batchRows && !m.pending && m.time.Before(cut.Before) && !excepted(cut, m.time)
			if goes {
				rows++
			}
			return goes
		})
		return rows
	})
}

func excepted(cut retention.Cut, t time.Time) bool {
	day := t.Truncate(24 * time.Hour)
	return slices.ContainsFunc(cut.Except, func(h retention.Hold) bool {
		return (h.From.IsZero() || !day.Before(h.From)) && (h.To.IsZero() || !day.After(h.To))
	})
}

// batches runs batch until it finds no rows, and ends with the error of progress or the end of ctx.
func batches(ctx context.Context, progress func(rows int64) error, batch func() (rows int64)) error {
	for ctx.Err() == nil {
		rows := batch()
		if rows == 0 {
			return nil
		}
		if progress == nil {
			continue
		}
		if err := progress(rows); err != nil {
			return err
		}
	}
	return ctx.Err()
}
