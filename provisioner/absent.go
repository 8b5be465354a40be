package provisioner

import (
	"context"
	"database/sql"

	"github.com/mailretention/mailretention/internal/mysqlerr"
)

// absent reports whether a table is proved not to be there, on a connection of its own. Behind a DROP it waits for its end, up to LockWait.
func (p *Provisioner) absent(ctx context.Context, table string) (gone bool, err error) {
	err = p.waiting(ctx, tableLocks, p.cfg.LockWait, func(c *sql.Conn) (err error) {
		rows, err := c.QueryContext(ctx, "SELECT 1 FROM "+p.Ident(table)+" LIMIT 0")
		if gone = mysqlerr.Is(err, mysqlerr.NoSuchTable); gone {
			return nil
		}
		if err != nil {
			return err
		}
		return rows.Close()
	})
	return gone, err
}
