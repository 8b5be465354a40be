package provisioner

import (
	"context"
	"slices"
)

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
