package provisioner

import (
	"context"
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
		done, err := p.repair(ctx, v, d)
		if done {
			repaired++
		}
		if err == nil {
			continue
		}
		failures = append(failures, fmt.Errorf("provisioner: reconcile %q: %s of %q: %w", p.cfg.Database, d.Kind, d.Table, explain(err)))
		if ctx.Err() != nil || errors.Is(err, retention.ErrStop) {
			break
		}
	}
	return repaired, errors.Join(failures...)
}

// repair removes one drift; done is false if it has gone by itself.
func (p *Provisioner) repair(ctx context.Context, v view, d retention.Drift) (done bool, err error) {
	switch d.Kind {
	case retention.DriftDangling:
		return p.clearDangling(ctx, d.Table)
	case retention.DriftOrphan:
		if _, err := p.clearDangling(ctx, d.Table); err != nil {
			return false, err
		}
		return p.closeBooks(ctx, d.Table)
	}
	var measured map[string]int64
	if _, agree := agreed(v.found(d.Table).booked); !agree {
		if measured, err = p.measure(ctx, []string{d.Table}); err != nil {
			return false, err
		}
	}
	return p.settleBooks(ctx, d.Table, measured)
}

// clearDangling takes away the pointers at a table that is gone; done is false if there are none.
func (p *Provisioner) clearDangling(ctx context.Context, table string) (done bool, err error) {
	err = p.clearGone(ctx, table, func(rows int64) error {
		done = done || rows > 0
		return nil
	})
	if errors.Is(err, retention.ErrInUse) {
		return false, nil
	}
	return done && err == nil, err
}
