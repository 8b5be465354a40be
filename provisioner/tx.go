package provisioner

import (
	"context"
	"database/sql"
	"fmt"
	"time"

	"github.com/mailretention/mailretention/retention"
)

// waiting runs fn on a connection of its own whose statements wait no longer than bound for such locks, in the servers' whole
// seconds, rounded up. Then the session gets its own setting back; a connection where that fails is closed.
func (p *Provisioner) waiting(ctx context.Context, kind lockKind, bound time.Duration, fn func(*sql.Conn) error) error {
	return p.conn(ctx, func(c *sql.Conn) error {
		if _, err := c.ExecContext(ctx, setLockWait(kind, bound)); err != nil {
			return err
		}
		defer func() {
			if _, err := c.ExecContext(context.WithoutCancel(ctx), resetLockWait(kind)); err != nil {
				discard(c)
			}
		}()
		return fn(c)
	})
}

// transact runs fn in a transaction, then the guard as its last statement, and commits. An error means that nothing was done,
// but for a commit whose answer was lost. fn may be called again after a connection that was dead from the start.
func (p *Provisioner) transact(ctx context.Context, isolation sql.IsolationLevel, fn func(*sql.Tx) error) error {
	return p.waiting(ctx, rowLocks, batchLockWait, func(c *sql.Conn) error {
		tx, err := c.BeginTx(ctx, &sql.TxOptions{Isolation: isolation})
		if err != nil {
			return err
		}
		defer tx.Rollback() // after Commit it does nothing
		if err := fn(tx); err != nil {
			return err
		}
		if err := p.guard(ctx, tx); err != nil {
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
