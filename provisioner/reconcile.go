package provisioner

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/mailretention/mailretention/retention"
)

// Reconcile makes bookkeeping, tables and pointers agree, for days before (today − 2), and returns how many of the inventory's drifts it
// repaired. Each is judged again when it is repaired: what has come to agree, and what can't be read, is left as it is.
//
//   - Pointers at tables that are gone are set to NULL, and so is what Schema.Messages.Clear lists.
//   - Rows without a table are deleted, after the pointers.
//   - A table without a row gets one, with the size that is measured.
//   - Of several rows of a table the one with the lowest id stays, with the size that is measured if they differ.
//
// One that fails doesn't keep the others from being repaired; the error joins all failures.
func (p *Provisioner) Reconcile(ctx context.Context) (repaired int, err error) {
	v, err := p.look(ctx)
	if err != nil {
		return 0, fmt.Errorf("provisioner: reconcile %q: %w", p.cfg.Database, explain(err))
	}
	var failures []error
	for _, d := range p.drift(v) {
		done, err := p.repair(ctx, d)
		if err != nil {
			failures = append(failures, fmt.Errorf("provisioner: reconcile %q: %s of %q: %w", p.cfg.Database, d.Kind, d.Table, explain(err)))
		}
		if done {
			repaired++
		}
		if ctx.Err() != nil || errors.Is(err, retention.ErrStop) {
			break
		}
	}
	return repaired, errors.Join(failures...)
}

// repair removes one drift; done is false if it has gone by itself.
func (p *Provisioner) repair(ctx context.Context, d retention.Drift) (done bool, err error) {
	switch d.Kind {
	case retention.DriftDangling:
		return p.clearDangling(ctx, d.Table)
	case retention.DriftOrphan:
		if _, err := p.clearDangling(ctx, d.Table); err != nil {
			return false, err
		}
		return p.amend(ctx, d.Table, p.deleteOrphan)
	default:
		return p.settle(ctx, d.Table)
	}
}

// clearDangling takes away the pointers at a table that is gone.
func (p *Provisioner) clearDangling(ctx context.Context, table string) (done bool, err error) {
	if gone, err := p.absent(ctx, table); err != nil || !gone {
		return false, err
	}
	err = p.clearGone(ctx, table, nil)
	return err == nil, err
}

// amend calls fn in a fenced transaction in which the rows of a raw table are locked, with these rows, and whether the table is gone.
func (p *Provisioner) amend(ctx context.Context, table string, fn func(ctx context.Context, tx *sql.Tx, table string, booked []sql.NullInt64, gone bool) (bool, error)) (done bool, err error) {
	err = retried(ctx, func() error {
		return p.transact(ctx, sql.LevelRepeatableRead, func(tx *sql.Tx) error {
			booked, err := p.lockBooked(ctx, tx, table)
			if err != nil {
				return err
			}
			gone, err := p.gone(ctx, tx, table)
			if err != nil {
				return err
			}
			done, err = fn(ctx, tx, table, booked, gone)
			return err
		})
	})
	return done && err == nil, err
}

// deleteOrphan deletes the rows of a table that is gone.
func (p *Provisioner) deleteOrphan(ctx context.Context, tx *sql.Tx, table string, booked []sql.NullInt64, gone bool) (done bool, err error) {
	if len(booked) == 0 || !gone {
		return false, nil
	}
	_, err = tx.ExecContext(ctx, p.names.deleteBooked(), table, table)
	return true, err
}

// settle leaves a raw table that is there exactly one row, with a size.
func (p *Provisioner) settle(ctx context.Context, table string) (done bool, err error) {
	measured, err := p.measure(ctx, []string{table})
	if err != nil {
		return false, err
	}
	return p.amend(ctx, table, func(ctx context.Context, tx *sql.Tx, table string, booked []sql.NullInt64, gone bool) (bool, error) {
		_, agree := agreed(booked)
		if gone || agree && len(booked) == 1 {
			return false, nil
		}
		if len(booked) > 1 {
			if _, err := tx.ExecContext(ctx, p.names.deleteDoubles(), table, table, len(booked)-1); err != nil {
				return false, err
			}
		}
		if agree {
			return true, nil
		}
		bytes, known := measured[table]
		switch {
		case !known:
			return false, errors.New("its size can't be measured")
		case len(booked) == 0:
			_, err = tx.ExecContext(ctx, p.names.insertBooked(), table, bytes)
		default:
			_, err = tx.ExecContext(ctx, p.names.setBooked(), bytes, table, table)
		}
		return true, err
	})
}
