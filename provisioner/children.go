package provisioner

import (
	"context"
	"database/sql"
)

// orphans deletes children without a message, with ids up to last: that of a writer which added one while its message went,
// and whatever else was left. Above last, the message may be one whose writer has not committed yet.
func (r prune) orphans(ctx context.Context, last int64) error {
	for _, child := range r.p.names.children {
		_, err := r.walk(ctx, 0, step{
			find: func(ctx context.Context, after int64, limit int) ([]row, error) {
				return r.p.readRows(ctx, r.p.names.selectOrphans(child, after, last, limit))
			},
			apply: func(ctx context.Context, tx *sql.Tx, s selection) (int64, error) {
				if err := r.mustBeNone(ctx, tx, s.spans); err != nil {
					return 0, err
				}
				_, err := tx.ExecContext(ctx, r.p.names.deleteChildren(child, s.spans))
				return 0, err // progress counts messages
			},
			gap: 1,
		})
		if err != nil {
			return err
		}
	}
	return nil
}
