package provisioner

import (
	"context"
	"database/sql"
	"fmt"
	"time"

	"github.com/mailretention/mailretention/retention"
)

// waiting runs fn on a connection of its own whose statements wait for others' locks no longer than bound, rounded up to the servers'
// whole seconds. MySQL's own bound for a table is a year. Then the session gets its own settings back.
func (p *Provisioner) waiting(ctx context.Context, bound time.Duration, fn func(*sql.Conn) error) error {
	return p.conn(ctx, func(c *sql.Conn) error {
		if _, err := c.ExecContext(ctx, setLockWaits(bound)); err != nil {
			return err
		}
		defer restore(ctx, c, resetLockWaits)
		return fn(c)
	})
}

// transact runs fn in a transaction, then the guard as its last statement, and commits. An error means that nothing was done,
// but for a commit whose answer was lost.
func (p *Provisioner) transact(ctx context.Context, isolation sql.IsolationLevel, fn func(*sql.Tx) error) error {
	return p.unfenced(ctx, isolation, func(tx *sql.Tx) error {
		if err := fn(tx); err != nil {
			return err
		}
		return p.guard(ctx, tx)
	})
}

// unfenced is transact without the guard, for writers: they hold no lease.
func (p *Provisioner) unfenced(ctx context.Context, isolation sql.IsolationLevel, fn func(*sql.Tx) error) error {
	return p.waiting(ctx, batchLockWait, func(c *sql.Conn) error {
		tx, err := c.BeginTx(ctx, &sql.TxOptions{Isolation: isolation})
		if err != nil {
			return err
		}
		defer tx.Rollback() // after Commit it does nothing
		if err := fn(tx); err != nil {
			return err
		}
		return tx.Commit()
	})
}

// guard fences tx.
func (p *Provisioner) guard(ctx context.Context, tx *sql.Tx) error {
	if p.cfg.Guard == nil {
		return nil
	}
	if err := p.cfg.Guard(ctx, tx); err != nil {
		return fmt.Errorf("provisioner: guard: %w: %w", retention.ErrStop, err)
	}
	return nil
}
