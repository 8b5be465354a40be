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
// Each is judged by its own time; one without a time stays, and so does one of today by the server's clock, whatever cut says. They are
// looked for in the order of their ids, up to where nothing goes any more; what is old behind is found by Schema.Messages.Probe, and
// without one by going on to the last. Then children without a message are deleted, with ids up to there. What was deleted before an
// error stays deleted.
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

// all walks on as long as the probe finds too much left for it to name: first to where nothing goes, which days on hold can be the cause
// of, then to where all messages are young, then to the last.
func (r prune) all(ctx context.Context) (err error) {
	ends := []func(messages []row) bool{
		func(messages []row) bool {
			return !slices.ContainsFunc(messages, func(m row) bool { return m.fate == goes })
		},
		func(messages []row) bool {
			return !slices.ContainsFunc(messages, func(m row) bool { return m.fate != stays })
		},
		func([]row) bool { return false },
	}
	if r.p.cfg.Schema.Messages.Probe == "" {
		ends = ends[len(ends)-1:]
	}
	var passed int64
	var done bool
	for i, end := range ends {
		passed, err = r.front(ctx, passed, end)
		if err != nil || i == len(ends)-1 {
			break
		}
		done, err = r.rest(ctx)
		if err != nil || done {
			break
		}
	}
	if err != nil {
		return err
	}
	return r.orphans(ctx, passed)
}

// front deletes from the id after on up to where end says so of the next messages, and returns the last id before these.
func (r prune) front(ctx context.Context, after int64, end func(messages []row) bool) (passed int64, err error) {
	passed = after
	_, err = r.walk(ctx, after, step{apply: r.delete, gap: maxGap, find: func(ctx context.Context, after int64, limit int) ([]row, error) {
		messages, err := r.find(ctx, after, limit)
		switch {
		case err != nil:
			return nil, err
		case len(messages) == 0:
			passed = after
		case end(messages):
			passed = messages[0].id - 1
			return nil, nil
		}
		return messages, nil
	}})
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
