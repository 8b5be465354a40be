package provisioner

import (
	"context"
	"database/sql"

	"github.com/mailretention/mailretention/internal/mysqlerr"
)

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
