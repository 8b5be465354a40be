package provisioner

import (
	"cmp"
	"context"
	"slices"
)

// probeLimit is how many messages a probe reads. Where it finds fewer it has found them all.
const probeLimit = 1000

// rest deletes old messages among younger ones above the id passed, if there are any.
func (r prune) rest(ctx context.Context, passed int64) error {
	found, err := r.probe(ctx, 0, probeLimit)
	if err != nil || len(found) == 0 {
		return err
	}
	if err := r.ready(ctx); err != nil {
		return err
	}
	waiting := func(m row) bool { return r.pending.has(m.id) }
	switch {
	case !slices.ContainsFunc(found, func(m row) bool { return !waiting(m) }):
		return nil
	case len(found) < probeLimit:
		_, err = r.walk(ctx, 0, step{find: r.probe, apply: r.delete, gap: 1})
	default:
		_, err = r.walk(ctx, passed, step{find: r.find, apply: r.delete, gap: maxGap})
	}
	return err
}

// probe reads messages that go, by the index that Schema.Messages.Probe leads to. The limit is its own.
func (r prune) probe(ctx context.Context, after int64, _ int) ([]row, error) {
	rows, err := r.p.readRows(ctx, r.p.names.selectOld(r.p.cfg.Schema.Messages.Probe, r.goes, after, probeLimit))
	slices.SortFunc(rows, func(a, b row) int { return cmp.Compare(a.id, b.id) })
	return rows, err
}
