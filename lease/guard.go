package lease

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
)

// Guard fences a transaction: call it as the last statement, with a context of [Leases.Do] or [Lease.Heartbeat]. Unless the
// innermost lease of these Leases in it is still held, it fails with an error that matches [ErrLost]. After success the lease can't
// change hands before the transaction ends. After any error Guard has rolled the transaction back whole, as a lock wait
// timeout, for example, does not: a commit fails then, and another rollback has no effect but [sql.ErrTxDone]. The
// transaction must be on the server that the lease table is on.
//
// Where a transaction reads from a snapshot that is older than the last renewal, MariaDB with innodb_snapshot_isolation refuses with
// error 1020: use READ COMMITTED, or run the transaction again.
func (l *Leases) Guard(ctx context.Context, tx *sql.Tx) error {
	err := l.guard(ctx, tx)
	if err != nil {
		_ = tx.Rollback() // all it can say is that the transaction or its connection has ended already
	}
	return err
}

func (l *Leases) guard(ctx context.Context, tx *sql.Tx) error {
	in := innermost(ctx)
	for in != nil && in.lease.leases != l {
		in = in.outer
	}
	if in == nil {
		return errors.New("lease: the context has no lease of these Leases: " +
			"pass the one that Do gave to its function, or that Heartbeat returned")
	}
	return in.lease.guard(ctx, tx)
}

func (l *Lease) guard(ctx context.Context, tx *sql.Tx) error {
	if lost := l.lost.Load(); lost != nil {
		return lost
	}
	s, err := l.leases.session(ctx)
	if err != nil {
		return err
	}
	result, err := tx.ExecContext(ctx, s.table.guard(l.term))
	if lost := l.lost.Load(); err != nil && lost != nil {
		return errors.Join(lost, err)
	}
	if err != nil {
		return fmt.Errorf("lease %q: guard, rolled back: %w", l.term.name, s.table.explain(err))
	}
	n, err := result.RowsAffected()
	if err != nil {
		return fmt.Errorf("lease %q: guard, rolled back: %w", l.term.name, err)
	}
	if n != 1 {
		return l.lose(ctx, (*Lease).taken)
	}
	return nil
}
