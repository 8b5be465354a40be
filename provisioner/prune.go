package provisioner

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"

	"github.com/mailretention/mailretention/retention"
)

// PruneMessages deletes the messages that cut says and what belongs to them, but for pending and held ones: see [retention.Store].
// Each is judged by its own time; one without a time stays. They are looked for in the order of their ids, up to where the next are
// too young; what is old behind these is found by Schema.Messages.Probe, and without one by going on to the last.
// What was deleted before an error stays deleted.
func (p *Provisioner) PruneMessages(ctx context.Context, cut retention.Cut, progress func(rows int64) error) error {
	if p.names.messages == "" {
		return nil
	}
	r := prune{batches: p.newBatches(progress), old: p.names.isOld(cut.Before), goes: p.names.mayGo(cut)}
	if err := r.all(ctx); err != nil {
		return fmt.Errorf("provisioner: prune the messages of %q: %w", p.cfg.Database, explain(err))
	}
	return nil
}

// prune is one call of PruneMessages.
type prune struct {
	*batches
	old, goes string // conditions of a message
}

func (r prune) all(ctx context.Context) error {
	passed, err := r.front(ctx)
	if err == nil && r.p.cfg.Schema.Messages.Probe != "" {
		err = r.rest(ctx, passed)
	}
	if err != nil {
		return err
	}
	return r.orphans(ctx, passed)
}

// front deletes from the first message on, and returns up to which id there is nothing left to do: with a probe, to where the next
// messages are too young, and without one to the last.
func (r prune) front(ctx context.Context) (passed int64, err error) {
	all := r.p.cfg.Schema.Messages.Probe == ""
	find := func(ctx context.Context, after int64, limit int) ([]row, error) {
		rows, err := r.find(ctx, after, limit)
		switch {
		case err != nil:
			return nil, err
		case len(rows) == 0:
			passed = after
		case all || slices.ContainsFunc(rows, func(m row) bool { return m.fate != stays }):
			return rows, nil
		default:
			passed = rows[0].id - 1
		}
		return nil, nil
	}
	_, err = r.walk(ctx, 0, step{find: find, apply: r.delete, gap: maxGap})
	return passed, err
}

// find reads the next messages, whatever becomes of them.
func (r prune) find(ctx context.Context, after int64, limit int) ([]row, error) {
	return r.p.readRows(ctx, r.p.names.selectFates(r.goes, r.old, after, limit))
}

// delete deletes the selected messages, after what belongs to them.
func (r prune) delete(ctx context.Context, tx *sql.Tx, s selection) (rows int64, err error) {
	for _, child := range r.p.names.children {
		if _, err := tx.ExecContext(ctx, r.p.names.deleteChildren(child, s.spans)); err != nil {
			return 0, err
		}
	}
	rows, err = affected(tx.ExecContext(ctx, r.p.names.deleteMessages(r.goes, s.spans)))
	if err != nil {
		return 0, err
	}
	if rows != int64(s.goes) { // one of them may be held by now, and must keep its children
		return 0, errDecideAgain
	}
	if len(r.p.names.children) > 0 && !s.gapless() {
		return rows, r.mustBeNone(ctx, tx, s.spans)
	}
	return rows, nil
}

// mustBeNone makes sure that there is no message in spans where children were deleted: one may have come between the known ids,
// and its writer may not have committed yet.
func (r prune) mustBeNone(ctx context.Context, tx *sql.Tx, spans []span) error {
	var id int64
	err := tx.QueryRowContext(ctx, r.p.names.lockMessages(spans)).Scan(&id)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return nil
	case err == nil:
		return errDecideAgain
	}
	return err
}
