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
// Each is judged by its own time; one without a time stays, and so does one of today by the server's clock, whatever cut says. If
// Schema.Messages.Probe finds any, they are looked for in the order of their ids, up to where nothing goes any more, and what is old behind
// by the probe again; without a probe by going on to the last. Then children without a message are deleted, with ids up to there, or
// below the first message if the probe finds none. What was deleted before an error stays deleted.
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
	passed, err := r.messages(ctx)
	if err != nil {
		return err
	}
	return r.orphans(ctx, passed)
}

// messages deletes messages and returns the last id that it has passed. It walks on as long as the probe finds too much left for it to
// name: first to where nothing goes, which days on hold can be the cause of, then to where all messages are young, then to the last.
func (r prune) messages(ctx context.Context) (passed int64, err error) {
	if r.p.cfg.Schema.Messages.Probe == "" {
		return r.front(ctx, 0, func(row) bool { return true })
	}
	found, err := r.probe(ctx, 0, probeLimit)
	if err != nil {
		return 0, err
	}
	if len(found) == 0 {
		return r.beforeFirst(ctx)
	}
	for _, on := range []func(row) bool{
		func(m row) bool { return m.fate == goes }, func(m row) bool { return m.fate != stays }, func(row) bool { return true },
	} {
		passed, err = r.front(ctx, passed, on)
		if err != nil {
			break
		}
		done, err := r.rest(ctx)
		if err != nil || done {
			return passed, err
		}
	}
	return passed, err
}

// beforeFirst returns the last id before all messages.
func (r prune) beforeFirst(ctx context.Context) (int64, error) {
	messages, err := r.find(ctx, 0, 1)
	if err != nil || len(messages) == 0 {
		return 0, err
	}
	return messages[0].id - 1, nil
}

// front deletes from the id after on, as long as one of the next messages says so, and returns the last id before these.
func (r prune) front(ctx context.Context, after int64, on func(row) bool) (passed int64, err error) {
	passed = after
	_, err = r.walk(ctx, after, step{apply: r.delete, gap: maxGap, find: func(ctx context.Context, after int64, limit int) ([]row, error) {
		messages, err := r.find(ctx, after, limit)
		switch {
		case err != nil:
			return nil, err
		case len(messages) == 0:
			passed = after
		case !slices.ContainsFunc(messages, on):
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
	var at any
	err := tx.QueryRowContext(ctx, r.p.names.lockMessages(spans)).Scan(&at)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return nil
	case err == nil:
		return errDecideAgain
	}
	return err
}

// probeLimit is how many messages a probe reads. Where it finds fewer it has found them all.
const probeLimit = 1000

// rest deletes what the walk has left behind, old messages among younger ones, and is done with it unless that is too much for a probe.
func (r prune) rest(ctx context.Context) (done bool, err error) {
	found, err := r.probe(ctx, 0, probeLimit)
	if err != nil || len(found) == 0 {
		return true, err
	}
	if err := r.pending.refresh(ctx); err != nil {
		return false, err
	}
	all := len(found)
	found = slices.DeleteFunc(found, func(m row) bool { return r.pending.any(m.id, m.id) })
	if len(found) == 0 || all == probeLimit {
		return len(found) == 0, nil
	}
	_, err = r.walk(ctx, 0, step{find: r.probe, apply: r.delete, gap: 1})
	return true, err
}

// probe reads messages that go, by the index that Schema.Messages.Probe leads to. The limit is its own.
func (r prune) probe(ctx context.Context, after int64, _ int) ([]row, error) {
	return r.p.readRows(ctx, r.p.names.selectOld(r.p.cfg.Schema.Messages.Probe, r.goes, after, probeLimit))
}

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
