package provisioner

import (
	"context"
	"database/sql"
	"maps"
	"slices"
)

// sizes returns the sizes of the raw tables. What isn't in it is unknown.
func (p *Provisioner) sizes(ctx context.Context, v view) (map[string]int64, error) {
	if p.cfg.SizeFrom == SizeFromStorage || p.names.sizes == "" {
		var tables []string
		for _, t := range v.tables {
			tables = append(tables, t.name)
		}
		return p.cfg.Storage.sizes(ctx, p.cfg.Database, tables)
	}
	sizes := make(map[string]int64, len(v.tables))
	var unbooked []string
	for _, t := range v.tables {
		if bytes, ok := agreed(t.booked); ok {
			sizes[t.name] = bytes
		} else {
			unbooked = append(unbooked, t.name)
		}
	}
	measured, err := p.measure(ctx, unbooked)
	maps.Copy(sizes, measured)
	return sizes, err
}

// measure returns the sizes of raw tables that the bookkeeping can't give: what their messages add up to, else the bytes on disk.
func (p *Provisioner) measure(ctx context.Context, tables []string) (map[string]int64, error) {
	if len(tables) == 0 {
		return nil, nil
	}
	sizes := map[string]int64{}
	if p.names.size != "" {
		var table string
		var bytes sql.NullInt64
		err := p.each(ctx, p.names.selectMessageBytes(len(tables)), anys(tables), []any{&table, &bytes}, func() {
			if usable(bytes) && slices.Contains(tables, table) {
				sizes[table] = bytes.Int64
			}
		})
		if err != nil {
			return nil, err
		}
	}
	rest := slices.DeleteFunc(slices.Clone(tables), func(table string) bool {
		_, found := sizes[table]
		return found
	})
	stored, err := p.cfg.Storage.sizes(ctx, p.cfg.Database, rest)
	maps.Copy(sizes, stored)
	return sizes, err
}
