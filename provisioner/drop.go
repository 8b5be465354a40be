package provisioner

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/mailretention/mailretention/internal/mysqlerr"
	"github.com/mailretention/mailretention/retention"
)

const (
	activeUntil = time.Hour       // past midnight nothing of yesterday goes: its last mails are still being written
	dropGrace   = 5 * time.Second // what a DROP may take beyond LockWait before it is killed
)

// DropTable takes away the references of messages to a day's raw table, then the table, then its row in the bookkeeping: see
// [retention.Store]. A name that isn't a day's, and the table of today, of a day to come, or of yesterday in the first hour of
// a day by the server's clock are [retention.ErrRefused]. A table that lacks a column of Schema.RawColumns, or has one of another type
// family, is not known to be a raw table and stays as it is: [ErrSchemaMismatch]. If messages are pending, held or still coming, the table
// stays: [retention.ErrInUse]. It also stays if others use it for longer than LockWait; the references may be gone then, and
// the next call goes on. A context that ends while the server drops is heeded after that.
func (p *Provisioner) DropTable(ctx context.Context, name string, progress func(rows int64) error) error {
	if err := p.dropDay(ctx, name, progress); err != nil {
		return fmt.Errorf("provisioner: drop %q of %q: %w", name, p.cfg.Database, explain(err))
	}
	return nil
}

func (p *Provisioner) dropDay(ctx context.Context, name string, progress func(rows int64) error) error {
	there, err := p.mayDrop(ctx, name)
	if err != nil {
		return err
	}
	if !there {
		return p.forget(ctx, name, progress)
	}
	b := p.newBatches(progress)
	if err := b.pending.refresh(ctx); err != nil {
		return err
	}
	left, err := b.clear(ctx, name, p.names.unheld(), func(context.Context, *sql.Tx) error { return nil })
	if err != nil {
		return err
	}
	if left {
		return fmt.Errorf("%w: a message that needs it points at it", retention.ErrInUse)
	}
	if err := p.fence(ctx); err != nil {
		return err
	}
	if err := p.drop(ctx, name); err != nil {
		return err
	}
	finish, cancel := p.undisturbed(ctx)
	defer cancel()
	return p.forget(finish, name, progress)
}

// mayDrop reports whether there is a table to drop. That there is none is proved.
func (p *Provisioner) mayDrop(ctx context.Context, name string) (there bool, err error) {
	day, ok := p.days.Parse(name)
	if !ok {
		return false, fmt.Errorf("%w: it is not the name of a day's table", retention.ErrRefused)
	}
	err = p.waiting(ctx, p.cfg.LockWait, func(c *sql.Conn) (err error) {
		if there, err = p.inspect(ctx, c, name, day); err != nil || there {
			return err
		}
		gone, err := p.gone(ctx, c, name)
		if err == nil && !gone {
			err = errors.New("it is there, but can't be seen in the information schema")
		}
		return err
	})
	return there, p.busy(err)
}

// inspect reports whether a table is seen, and fails unless it can go.
func (p *Provisioner) inspect(ctx context.Context, on querier, name string, day time.Time) (seen bool, err error) {
	var micros int64
	var kind sql.NullString
	if err := each(ctx, on, selectKind(), []any{p.cfg.Database, name, name}, []any{&micros, &kind}, func() {}); err != nil {
		return false, err
	}
	if active := midnight(time.UnixMicro(micros).Add(-activeUntil)); !day.Before(active) {
		return false, fmt.Errorf("%w: it is in use, only days before %s can go now", retention.ErrRefused, active.Format(time.DateOnly))
	}
	switch kind.String {
	case "":
		return false, nil
	case baseTable:
		err := p.fits(ctx, on, name)
		if mysqlerr.Is(err, mysqlerr.NoSuchTable) { // another has dropped it since
			return false, nil
		}
		return err == nil, err
	}
	return false, fmt.Errorf("it is not a table but a %s", kind.String)
}

// fits fails unless the table has a raw table's columns: another's isn't ours to drop.
func (p *Provisioner) fits(ctx context.Context, on querier, name string) error {
	err := p.compare(ctx, on, p.cfg.Schema.rawShape(name))
	if errors.Is(err, ErrSchemaMismatch) {
		return fmt.Errorf("%w: alter it to fit Schema.RawColumns, or drop it by hand if it is not needed", err)
	}
	return err
}

// fence asks the guard, in a transaction of its own.
func (p *Provisioner) fence(ctx context.Context) error {
	if p.cfg.Guard == nil {
		return nil
	}
	return p.transact(ctx, func(*sql.Tx) error { return nil })
}

// drop drops a table that nothing points at. The statement isn't ended with ctx: on MySQL it would go on by itself.
func (p *Provisioner) drop(ctx context.Context, name string) error {
	undisturbed, cancel := p.undisturbed(ctx)
	defer cancel()
	var connection uint64
	var gone bool
	err := p.waiting(undisturbed, p.cfg.LockWait, func(c *sql.Conn) (err error) {
		if err := p.lastLook(ctx, c, name, &connection); err != nil {
			return err
		}
		if _, err := c.ExecContext(undisturbed, dropTable(p.Ident(name))); err != nil {
			return err
		}
		gone, err = p.gone(undisturbed, c, name)
		return err
	})
	if gone || errors.Is(err, retention.ErrInUse) {
		return err
	}
	return p.outcome(ctx, name, connection, err)
}

// lastLook makes sure that ctx hasn't ended and no message has come that points at the table.
func (p *Provisioner) lastLook(ctx context.Context, c *sql.Conn, name string, connection *uint64) error {
	var needed bool
	var args []any
	if p.names.rawTable != "" {
		args = []any{name, name}
	}
	if err := each(ctx, c, p.names.selectLastLook(), args, []any{connection, &needed}, func() {}); err != nil {
		return err
	}
	if needed {
		return fmt.Errorf("%w: a message has come that points at it", retention.ErrInUse)
	}
	return nil
}

// outcome finds out what became of a table that isn't known to be gone, when its DROP ended with err. One whose connection is lost may still
// be waiting or at work.
func (p *Provisioner) outcome(ctx context.Context, name string, connection uint64, err error) error {
	undisturbed, cancel := p.undisturbed(ctx)
	defer cancel()
	if err != nil && mysqlerr.Number(err) == 0 && connection != 0 {
		if err := p.kill(undisturbed, connection, dropTable(p.Ident(name))); err != nil {
			p.cfg.Logger.WarnContext(ctx, "provisioner: a DROP TABLE whose connection was lost could not be ended", "table", name, "error", err)
		}
	}
	gone, unknown := p.absent(undisturbed, name)
	switch {
	case gone:
		return nil
	case err == nil && unknown == nil:
		err = errors.New("the server says that it was dropped, but it is there")
	}
	return errors.Join(context.Cause(ctx), p.busy(err), unknown)
}

// busy adds to an error that says that others kept us waiting how long that was.
func (p *Provisioner) busy(err error) error {
	if mysqlerr.Classify(err) == mysqlerr.Busy {
		return fmt.Errorf("others have used it for longer than %v: %w", p.cfg.LockWait, err)
	}
	return err
}

// kill ends the statement on a connection that was lost. After a failover its number may be another's, whose statement is left alone.
func (p *Provisioner) kill(ctx context.Context, connection uint64, statement string) error {
	return p.conn(ctx, func(c *sql.Conn) error {
		runs := false
		err := each(ctx, c, selectRunning, []any{connection, statement}, []any{&connection}, func() { runs = true })
		if err != nil || !runs {
			return err
		}
		_, err = c.ExecContext(ctx, killQuery(connection))
		return err
	})
}

// undisturbed returns a context that doesn't end with ctx, but soon.
func (p *Provisioner) undisturbed(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(ctx), p.cfg.LockWait+dropGrace)
}

// forget takes away what is left of a table that is gone: references of writers that were late, and its row in the bookkeeping.
func (p *Provisioner) forget(ctx context.Context, name string, progress func(rows int64) error) error {
	if err := p.clearGone(ctx, name, progress); err != nil {
		return err
	}
	if p.names.sizes == "" {
		return nil
	}
	_, err := p.closeBooks(ctx, name)
	return err
}

// absent reports whether a table is proved not to be there, on a connection of its own. Behind a DROP it waits for its end, up to LockWait.
func (p *Provisioner) absent(ctx context.Context, table string) (gone bool, err error) {
	err = p.waiting(ctx, p.cfg.LockWait, func(c *sql.Conn) (err error) {
		gone, err = p.gone(ctx, c, table)
		return err
	})
	return gone, err
}

// gone reports whether a table is proved not to be there. Only 1146 from a read of it is a proof: the information schema doesn't show
// what the account has no right to either.
func (p *Provisioner) gone(ctx context.Context, on querier, table string) (bool, error) {
	err := each(ctx, on, readNothing(p.Ident(table)), nil, nil, func() {})
	if mysqlerr.Is(err, mysqlerr.NoSuchTable) {
		return true, nil
	}
	return false, err
}
