package provisioner

import (
	"context"
	"database/sql"
)

// absent reports whether a table is proved not to be there, on a connection of its own. Behind a DROP it waits for its end, up to LockWait.
func (p *Provisioner) absent(ctx context.Context, table string) (gone bool, err error) {
	err = p.waiting(ctx, tableLocks, p.cfg.LockWait, func(c *sql.Conn) (err error) {
		gone, err = p.gone(ctx, c, table)
		return err
	})
	return gone, err
}
