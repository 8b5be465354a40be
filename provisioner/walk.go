package provisioner

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"slices"
	"time"
)

// fate says what becomes of a row.
type fate int

const (
	stays     fate = iota
	protected      // a rule would take it, but a hold protects it
	goes
)

// row is a row found by its id.
type row struct {
	id   int64
	fate fate
}

const (
	readAhead = 4   // batches of rows that one reading finds
	maxSpans  = 500 // of a batch: long lists are slow, and from 1,000 on MariaDB makes a table of them
	maxGap    = 16  // between two ids of one span: what lies between is looked at, too
)

// span is a range of ids, both ends included.
type span struct{ first, last int64 }

// selection is what a batch takes.
type selection struct {
	spans []span
	goes  int // how many rows of the spans are known to go
	used  int // how many rows were looked at for it
}

// gapless reports whether the spans have no room for a row that wasn't known.
func (s selection) gapless() bool {
	ids := int64(0)
	for _, span := range s.spans {
		ids += span.last - span.first + 1
	}
	return ids == int64(s.goes)
}

// step says how a walk finds rows, and what it does with those that go.
type step struct {
	find  func(ctx context.Context, after int64, limit int) ([]row, error) // above the id after, ascending; none: the walk ends
	apply func(ctx context.Context, tx *sql.Tx, s selection) (rows int64, err error)
	gap   int64 // most between two ids of one span
}

// walk applies s, batch by batch, to all rows above the id after that go and aren't pending. If it has tried to, if only to no known end,
// what was read before says nothing of what is left.
func (b *batches) walk(ctx context.Context, after int64, s step) (tried bool, err error) {
	for {
		rows, err := s.find(ctx, after, readAhead*b.rows)
		if err != nil || len(rows) == 0 {
			return tried, err
		}
		b.pending.until = time.Time{} // who releases a held message queues it first: what is unheld here is found in an answer from now on
		for len(rows) > 0 {
			if err := b.ready(ctx); err != nil {
				return tried, err
			}
			chosen := b.choose(rows, s.gap)
			if chosen.goes > 0 {
				tried = true
				err := b.run(ctx, chosen.goes, func(tx *sql.Tx) (int64, error) { return s.apply(ctx, tx, chosen) })
				if errors.Is(err, errDecideAgain) {
					break
				}
				if err != nil {
					return tried, err
				}
			}
			after = rows[chosen.used-1].id
			rows = rows[chosen.used:]
		}
	}
}

// choose selects the next batch from the beginning of rows. No span covers a row that stays or is pending.
func (b *batches) choose(rows []row, gap int64) (s selection) {
	open := false
	for _, r := range rows {
		last := len(s.spans) - 1
		switch {
		case r.fate != goes || b.pending.any(r.id, r.id):
			open = false
			s.used++
			continue
		case last < 0:
			b.begin(r.id)
		case s.goes == b.size() || last == maxSpans-1:
			return s
		}
		// A range also locks the row behind it, in a child too: after a failure, when that may be the one that is locked, each id stands alone.
		if open && r.id-s.spans[last].last <= gap && b.failures == 0 && !b.pending.any(s.spans[last].last, r.id) {
			s.spans[last].last = r.id
		} else {
			s.spans = append(s.spans, span{r.id, r.id})
		}
		open = true
		s.goes++
		s.used++
	}
	return s
}

// size is how many rows a batch may have. From the second failure on fewer, down to one, since others may be at work on the same rows,
// and faster: one row is either deleted or gone.
func (b *batches) size() int { return max(1, b.rows>>(batchShrink*max(0, b.failures-1))) }

// readRows reads ids and fates, and sorts what an index may have in another order.
func (p *Provisioner) readRows(ctx context.Context, query string, args ...any) (found []row, err error) {
	var r row
	err = p.each(ctx, query, args, []any{&r.id, &r.fate}, func() { found = append(found, r) })
	slices.SortFunc(found, func(a, b row) int { return cmp.Compare(a.id, b.id) })
	return found, err
}
