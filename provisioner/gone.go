package provisioner

import (
	"context"

	"github.com/mailretention/mailretention/internal/mysqlerr"
)

// gone reports whether a table is proved not to be there: only 1146 from a read of it says so.
func (p *Provisioner) gone(ctx context.Context, on querier, table string) (bool, error) {
	var one int
	err := each(ctx, on, "SELECT 1 FROM "+p.Ident(table)+" LIMIT 0", nil, []any{&one}, func() {})
	if mysqlerr.Is(err, mysqlerr.NoSuchTable) {
		return true, nil
	}
	return false, err
}
