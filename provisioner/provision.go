package provisioner

import (
	"context"
	"database/sql"
	"fmt"
)

// Provision makes the database, the bookkeeping and the base tables where they are missing. It changes nothing that is there, and drops
// nothing. It may be repeated, and called by several at once. A table that is there in a shape that can't be used is [ErrSchemaMismatch].
//
// The bookkeeping that it makes has a unique key on the raw table's name; an existing one is used without.
func (p *Provisioner) Provision(ctx context.Context) error {
	statements := []string{p.names.createDatabase()}
	if p.names.sizes != "" {
		statements = append(statements, p.names.createSizes())
	}
	for _, base := range p.cfg.Schema.Base {
		statements = append(statements, createTable(p.Ident(base.Name), base.Columns))
	}
	if err := p.define(ctx, statements, p.cfg.Schema.shapes()...); err != nil {
		return fmt.Errorf("provisioner: provision %q: %w", p.cfg.Database, explain(err))
	}
	return nil
}

// DropDatabase drops the message database with all that is in it. So that it can't be the wrong one, name must be the configured one.
// A database that is gone already is no error.
func (p *Provisioner) DropDatabase(ctx context.Context, name string) error {
	if name != p.cfg.Database {
		return fmt.Errorf("provisioner: drop database %q: this is the Provisioner of %q", name, p.cfg.Database)
	}
	if err := p.define(ctx, []string{p.names.dropDatabase()}); err != nil {
		return fmt.Errorf("provisioner: drop database %q: %w", name, explain(err))
	}
	return nil
}

// define runs statements that create or drop something, and makes sure that tables are as they must be. Each waits for others to leave
// no longer than LockWait.
func (p *Provisioner) define(ctx context.Context, statements []string, wanted ...shape) error {
	return p.waiting(ctx, p.cfg.LockWait, func(c *sql.Conn) error {
		for _, statement := range statements {
			if _, err := c.ExecContext(ctx, statement); err != nil {
				return err
			}
		}
		for _, s := range wanted {
			if err := p.compare(ctx, c, s); err != nil {
				return err
			}
		}
		return nil
	})
}
