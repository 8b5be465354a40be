package provisioner

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/mailretention/mailretention/internal/mysqlerr"
	"github.com/mailretention/mailretention/retention"
)

// maxCreations is how often one InsertInto makes the day's table: once, and again if it is dropped before fn comes to it.
const maxCreations = 3

// InsertInto calls fn with the name of the raw table of t's UTC day, and then books the bytes that fn returns. fn runs a transaction
// of its own, inserts into [Provisioner.Ident] of the table, commits, and returns the length of the mail that it stored.
// When fn's error wraps the server's 1146, no such table, the table is made as by [Provisioner.EnsureDay] and fn is called again: it
// must have rolled back. Any other error of fn is returned as it is. If fn succeeded but the booking fails, that is [ErrNotBooked].
func (p *Provisioner) InsertInto(ctx context.Context, t time.Time, fn func(ctx context.Context, table string) (bytes int64, err error)) error {
	table := p.days.Name(t)
	bytes, err := fn(ctx, table)
	for range maxCreations {
		if !mysqlerr.Is(err, mysqlerr.NoSuchTable) {
			break
		}
		if _, err := p.EnsureDay(ctx, t); err != nil {
			return err
		}
		bytes, err = fn(ctx, table)
	}
	if err != nil {
		return err
	}
	if err := p.book(ctx, table, bytes); err != nil {
		return fmt.Errorf("%w: %d bytes in %q: %w", ErrNotBooked, bytes, table, explain(err))
	}
	return nil
}

// book adds bytes to what is booked for a raw table. Where there is no row it makes one.
func (p *Provisioner) book(ctx context.Context, table string, bytes int64) error {
	switch {
	case p.names.sizes == "" || bytes == 0:
		return nil
	case bytes < 0:
		return errors.New("a size can't be negative")
	}
	added, err := p.addBooked(ctx, table, bytes)
	if err != nil || added {
		return err
	}
	if err := p.openBooks(ctx, table); err != nil {
		return err
	}
	_, err = p.addBooked(ctx, table, bytes)
	return err
}

// addBooked adds bytes to the rows of a raw table; false if there is none.
func (p *Provisioner) addBooked(ctx context.Context, table string, bytes int64) (added bool, err error) {
	err = retried(ctx, func() error {
		return p.conn(ctx, func(c *sql.Conn) error {
			result, err := c.ExecContext(ctx, p.names.addBooked(), bytes, table, table)
			if err != nil {
				return err
			}
			rows, err := result.RowsAffected()
			added = rows > 0
			return err
		})
	})
	return added, err
}

// openBooks makes the bookkeeping's row of a raw table where there is none. A row from before the table was made says 0 afterwards.
func (p *Provisioner) openBooks(ctx context.Context, table string) error {
	if p.names.sizes == "" {
		return nil
	}
	return retried(ctx, func() error {
		return p.unfenced(ctx, sql.LevelRepeatableRead, func(tx *sql.Tx) error {
			booked, err := p.lockBooked(ctx, tx, table)
			if err != nil {
				return err
			}
			if len(booked) == 0 {
				_, err := tx.ExecContext(ctx, p.names.insertBooked(), table, 0)
				return err
			}
			if bytes, ok := agreed(booked); ok && bytes == 0 {
				return nil
			}
			// With the row locked: whoever makes the table now can't book anything before this transaction ends.
			if gone, err := p.gone(ctx, tx, table); err != nil || !gone {
				return err
			}
			_, err = tx.ExecContext(ctx, p.names.setBooked(), 0, table, table)
			return err
		})
	})
}

// lockBooked reads what is booked for a raw table. Until the transaction ends, which is REPEATABLE READ, nobody else changes it or inserts
// where there is nothing: two that insert at once meet as a deadlock, and the one that comes again finds the other's row.
func (p *Provisioner) lockBooked(ctx context.Context, tx *sql.Tx, table string) ([]sql.NullInt64, error) {
	var rows []sql.NullInt64
	var bytes sql.NullInt64
	err := each(ctx, tx, p.names.lockBooked(), []any{table, table}, []any{&bytes}, func() { rows = append(rows, bytes) })
	return rows, err
}

// retried calls fn again, with a bound, when the server has rolled it back for others' sake.
func retried(ctx context.Context, fn func() error) error {
	for failures := 0; ; failures++ {
		err := fn()
		if err == nil || failures == maxRetries || !passing(err) {
			return err
		}
		delay := min(firstDelay<<failures, maxDelay)
		if err := sleep(ctx, rand.N(delay)); err != nil {
			return err
		}
	}
}

// passing reports whether err comes from others that were in the way.
func passing(err error) bool {
	class := mysqlerr.Classify(err)
	return !errors.Is(err, retention.ErrStop) &&
		(class == mysqlerr.Retry || class == mysqlerr.Busy || mysqlerr.Is(err, mysqlerr.AutoincReadFailed))
}
