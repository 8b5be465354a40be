package provisioner

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/mailretention/mailretention/internal/mysqlerr"
	"github.com/mailretention/mailretention/retention"
)

// transact runs fn in a transaction, then the guard as its last statement, and commits. An error means that nothing was done,
// but for a commit whose answer was lost.
func (p *Provisioner) transact(ctx context.Context, fn func(*sql.Tx) error) error {
	return p.unfenced(ctx, func(tx *sql.Tx) error {
		if err := fn(tx); err != nil {
			return err
		}
		return p.guard(ctx, tx)
	})
}

// unfenced is transact without the guard, for writers: they hold no lease.
//
// It is READ COMMITTED, which locks rows alone: the gaps between them, that REPEATABLE READ locks too, are where the server's clients
// insert. Where statement-based logging refuses that it is REPEATABLE READ.
func (p *Provisioner) unfenced(ctx context.Context, fn func(*sql.Tx) error) error {
	err := p.isolated(ctx, sql.LevelReadCommitted, fn)
	if mysqlerr.Is(err, mysqlerr.BinlogStatementOnly) {
		return p.isolated(ctx, sql.LevelRepeatableRead, fn)
	}
	return err
}

func (p *Provisioner) isolated(ctx context.Context, isolation sql.IsolationLevel, fn func(*sql.Tx) error) error {
	return p.waiting(ctx, batchLockWait, func(c *sql.Conn) (err error) {
		tx, err := c.BeginTx(ctx, &sql.TxOptions{Isolation: isolation})
		if err != nil {
			return err
		}
		defer func() { // after Commit it does nothing
			if ended := tx.Rollback(); err != nil && ended != nil {
				discard(c) // the server may have the transaction open still, and its locks
			}
		}()
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
		return fmt.Errorf("guard: %w: %w", retention.ErrStop, err)
	}
	return nil
}

// retried calls fn again, with a bound, when it has come to nothing because of others.
func retried(ctx context.Context, fn func() error) error {
	for failures := 0; ; failures++ {
		err := fn()
		if err == nil || failures == maxRetries || !passing(err) {
			return err
		}
		if err := backOff(ctx, failures+1); err != nil {
			return err
		}
	}
}

// passing reports whether err comes from others that were in the way.
func passing(err error) bool {
	class := mysqlerr.Classify(err)
	return !errors.Is(err, retention.ErrStop) &&
		(errors.Is(err, errDecideAgain) || class == mysqlerr.Retry || class == mysqlerr.Busy || mysqlerr.Is(err, mysqlerr.AutoincReadFailed))
}
