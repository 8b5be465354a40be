package provisioner

import (
	"context"
	"database/sql"
	"fmt"

	"github.com/mailretention/mailretention/retention"
)

// referencesAtOnce is how many references one reading finds. The index may be on a prefix of the name, as Postal's is, and then can't begin
// at an id: each reading passes over all that come before.
const referencesAtOnce = 100_000

// clear takes away the references to a table of messages that meet the condition and aren't pending, and returns whether any is left.
// It goes through them again until there is nothing to do: a writer may have added one behind. What confirm fails for is rolled back.
func (b *batches) clear(ctx context.Context, table, condition string, confirm func(context.Context, *sql.Tx) error) (left bool, err error) {
	n := b.p.names
	if n.rawTable == "" {
		return false, nil
	}
	for {
		left = false
		through := false // with a reading that found the last
		tried, err := b.walk(ctx, 0, step{
			find: func(ctx context.Context, after int64, _ int) ([]row, error) {
				if through {
					return nil, nil
				}
				rows, err := b.p.readRows(ctx, n.selectReferences(condition, after, referencesAtOnce), table, table)
				left = left || len(rows) > 0
				through = len(rows) < referencesAtOnce
				return rows, err
			},
			apply: func(ctx context.Context, tx *sql.Tx, s selection) (int64, error) {
				rows, err := affected(tx.ExecContext(ctx, n.clearReferences(condition, s.spans), table, table))
				if err != nil {
					return 0, err
				}
				if rows > int64(s.goes) { // one between the ids, which may be pending
					return 0, errDecideAgain
				}
				return rows, confirm(ctx, tx)
			},
			gap: maxGap,
		})
		if err != nil || !tried {
			return left, err
		}
	}
}

// clearGone takes away all references to a table that is gone: pending and held messages have lost their mail, too. Those that came
// after the table was made again stay, and it is [retention.ErrInUse]: the look at the table comes after the references were read.
func (p *Provisioner) clearGone(ctx context.Context, table string, progress func(rows int64) error) error {
	b := p.newBatches(progress)
	b.pending = pending{}
	_, err := b.clear(ctx, table, anybody, func(ctx context.Context, tx *sql.Tx) error {
		gone, err := p.gone(ctx, tx, table)
		if err == nil && !gone {
			err = fmt.Errorf("%w: it has been made again", retention.ErrInUse)
		}
		return err
	})
	return err
}

// affected returns how many rows a statement changed.
func affected(result sql.Result, err error) (int64, error) {
	if err != nil {
		return 0, err
	}
	return result.RowsAffected()
}
