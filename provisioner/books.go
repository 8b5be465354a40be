package provisioner

import (
	"context"
	"database/sql"
	"math"

	"github.com/mailretention/mailretention/internal/mysqlerr"
)

// openBooks makes the bookkeeping's row of a raw table where there is none. A row from before the table was made says 0 afterwards.
func (p *Provisioner) openBooks(ctx context.Context, table string) error {
	if p.names.sizes == "" {
		return nil
	}
	return retried(ctx, func() error {
		return p.unfenced(ctx, func(tx *sql.Tx) error {
			booked, err := p.lockBooked(ctx, tx, table)
			if err != nil {
				return err
			}
			if len(booked) == 0 {
				return p.insertBooked(ctx, tx, table, 0)
			}
			if bytes, ok := agreed(booked); ok && bytes == 0 {
				return nil
			}
			// With the row locked: whoever makes the table now can't book anything before this transaction ends.
			if gone, err := p.gone(ctx, tx, table); err != nil || !gone {
				return err
			}
			_, err = p.change(ctx, tx, p.names.setBooked(), 0, table, table)
			return err
		})
	})
}

// closeBooks deletes the rows of a raw table that is gone; done is false if there is none, or the table is there.
func (p *Provisioner) closeBooks(ctx context.Context, table string) (done bool, err error) {
	return p.amend(ctx, table, func(tx *sql.Tx, booked []sql.NullInt64, gone bool) (bool, error) {
		if len(booked) == 0 || !gone {
			return false, nil
		}
		_, err := p.change(ctx, tx, p.names.deleteBooked(), table, table)
		return true, err
	})
}

// settleBooks leaves a raw table that is there exactly one row, with a size: the measured one if those that are booked don't agree. done
// is false if there is nothing to do, or, as while a table is made, no size to be had.
func (p *Provisioner) settleBooks(ctx context.Context, table string, measured map[string]int64) (done bool, err error) {
	return p.amend(ctx, table, func(tx *sql.Tx, booked []sql.NullInt64, gone bool) (bool, error) {
		_, agree := agreed(booked)
		bytes, known := measured[table]
		if gone || agree && len(booked) == 1 || !agree && !known {
			return false, nil
		}
		if len(booked) > 1 {
			if _, err := p.change(ctx, tx, p.names.deleteDoubles(), table, table, len(booked)-1); err != nil {
				return false, err
			}
		}
		switch {
		case agree:
		case len(booked) == 0:
			err = p.insertBooked(ctx, tx, table, bytes)
		default:
			_, err = p.change(ctx, tx, p.names.setBooked(), bytes, table, table)
		}
		return true, err
	})
}

// amend calls fn in a fenced transaction in which the rows of a raw table are locked, with what they say, and whether the table is gone.
func (p *Provisioner) amend(ctx context.Context, table string, fn func(tx *sql.Tx, booked []sql.NullInt64, gone bool) (done bool, err error)) (done bool, err error) {
	err = retried(ctx, func() error {
		return p.transact(ctx, func(tx *sql.Tx) error {
			booked, err := p.lockBooked(ctx, tx, table)
			if err != nil {
				return err
			}
			gone, err := p.gone(ctx, tx, table)
			if err != nil {
				return err
			}
			done, err = fn(tx, booked, gone)
			return err
		})
	})
	return done && err == nil, err
}

// lockBooked reads what is booked for a raw table. Nobody else changes these rows until the transaction ends.
func (p *Provisioner) lockBooked(ctx context.Context, tx *sql.Tx, table string) (rows []sql.NullInt64, err error) {
	if _, err := p.change(ctx, tx, p.names.lockBooked(), table, table); err != nil {
		return nil, err
	}
	var bytes sql.NullInt64
	err = each(ctx, tx, p.names.selectBooked(), []any{table, table}, []any{&bytes}, func() { rows = append(rows, bytes) })
	return rows, err
}

// insertBooked makes the row of a raw table that has none. Nothing keeps another from that meanwhile, since what would, the lock of a gap
// between names, is also in the way of others' rows. So it looks whether it was alone: who was not comes again, and finds a row.
func (p *Provisioner) insertBooked(ctx context.Context, tx *sql.Tx, table string, bytes int64) error {
	_, err := tx.ExecContext(ctx, p.names.insertBooked(), table, bytes)
	if mysqlerr.Is(err, mysqlerr.Duplicate) {
		return errDecideAgain
	}
	if err != nil {
		return err
	}
	booked, err := p.lockBooked(ctx, tx, table)
	if err == nil && len(booked) > 1 {
		return errDecideAgain
	}
	return err
}

// change runs a statement that changes what is booked, by the index on the name. Where there is none MariaDB refuses that.
func (p *Provisioner) change(ctx context.Context, on querier, statement string, args ...any) (sql.Result, error) {
	result, err := on.ExecContext(ctx, p.names.byIndex(p.names.sizes, statement), args...)
	if mysqlerr.Is(err, mysqlerr.NoKeyUsed) {
		return on.ExecContext(ctx, byScan(statement), args...)
	}
	return result, err
}

// usable reports whether a booked size can be one: NULL and what is below zero can't.
func usable(bytes sql.NullInt64) bool { return bytes.Valid && bytes.Int64 >= 0 }

// agreed returns the size that all rows of a table have; false if there is none or they differ.
func agreed(rows []sql.NullInt64) (bytes int64, ok bool) {
	if len(rows) == 0 || !usable(rows[0]) {
		return 0, false
	}
	for _, row := range rows {
		if row != rows[0] {
			return 0, false
		}
	}
	return rows[0].Int64, true
}

// claimed adds up what the rows of a table claim, as far as a number goes.
func claimed(rows []sql.NullInt64) (bytes int64) {
	for _, row := range rows {
		if usable(row) {
			bytes += min(row.Int64, math.MaxInt64-bytes)
		}
	}
	return bytes
}
