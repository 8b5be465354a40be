package provisioner

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/mailretention/mailretention/internal/mysqlerr"
)

// maxCreations is how often one InsertInto makes the day's table: once, and again if it is dropped before fn comes to it.
const maxCreations = 3

// InsertInto calls fn with the name of the raw table of t's UTC day, and then books the bytes that fn returns. fn runs a transaction
// of its own, inserts into [Provisioner.Ident] of the table, commits, and returns the length of the mail that it stored.
// When fn's error wraps the server's 1146, no such table, the table is made as by [Provisioner.EnsureDay] and fn is called again: it
// must have rolled back. It may be called four times. Any other error of fn is returned as it is. If fn succeeded but the booking fails, that is [ErrNotBooked].
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
			result, err := p.change(ctx, c, p.names.addBooked(), bytes, table, table)
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
