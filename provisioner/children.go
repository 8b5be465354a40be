package provisioner

import (
	"context"
	"database/sql"
)

// orphans deletes children without a message, with ids up to passed: that of a writer which added one while its message went,
// and whatever else was left, by an earlier call that was ended too. Above passed are the ids of writers that have not committed yet.
func (r prune) orphans(ctx context.Context, passed int64) error {
	children, err := r.withOrphans(ctx, passed)
	if err != nil {
		return err
	}
	for _, child := range children {
		_, err := r.walk(ctx, 0, step{
			find: func(ctx context.Context, after int64, limit int) ([]row, error) {
				return r.p.readRows(ctx, r.p.names.selectOrphans(child, after, passed, limit))
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

// withOrphans asks, once for all, which children there are without a message.
func (r prune) withOrphans(ctx context.Context, passed int64) (children []childNames, err error) {
	all := r.p.names.children
	if len(all) == 0 || passed <= 0 {
		return nil, nil
	}
	var i int
	err = r.p.each(ctx, r.p.names.selectWhichHaveOrphans(passed), nil, []any{&i}, func() { children = append(children, all[i]) })
	return children, err
}
