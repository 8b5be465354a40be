package provisioner

import (
	"context"
	"fmt"
	"time"
)

// EnsureDay makes the raw table of t's UTC day, and its row in the bookkeeping, unless they are there, and returns the table's name.
// Only the tables of yesterday, today and tomorrow can be made, by the server's clock, so that a wrong local clock makes none that
// retention drops at once. It may be repeated, and run beside others and beside retention. A table of this name in a shape that
// Schema.RawColumns doesn't fit is [ErrSchemaMismatch].
func (p *Provisioner) EnsureDay(ctx context.Context, t time.Time) (table string, err error) {
	table = p.days.Name(t)
	if err := p.ensure(ctx, t, table); err != nil {
		return "", fmt.Errorf("provisioner: ensure %q: %w", table, explain(err))
	}
	return table, nil
}

// ensure looks for the row a second time when the table is there: retention may have dropped an old table of this day and
// deleted its row after the first look.
func (p *Provisioner) ensure(ctx context.Context, t time.Time, table string) error {
	if err := p.checkDay(ctx, t); err != nil {
		return err
	}
	if err := p.openBooks(ctx, table); err != nil {
		return err
	}
	create := createTable(p.Ident(table), p.cfg.Schema.RawColumns)
	if err := p.define(ctx, []string{create}, p.cfg.Schema.rawShape(table)); err != nil {
		return err
	}
	return p.openBooks(ctx, table)
}

// checkDay refuses days for which no table can be made.
func (p *Provisioner) checkDay(ctx context.Context, t time.Time) error {
	now, err := p.serverTime(ctx)
	if err != nil {
		return err
	}
	today := midnight(now)
	if day := midnight(t); day.Before(today.AddDate(0, 0, -1)) || day.After(today.AddDate(0, 0, 1)) {
		return fmt.Errorf("the server's day is %s, and only the tables of the days before, of and after it can be made", today.Format(time.DateOnly))
	}
	return nil
}

func midnight(t time.Time) time.Time {
	y, m, d := t.UTC().Date()
	return time.Date(y, m, d, 0, 0, 0, 0, time.UTC)
}
