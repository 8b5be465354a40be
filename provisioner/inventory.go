package provisioner

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/mailretention/mailretention/retention"
)

const (
	baseTable = "BASE TABLE" // what SHOW FULL TABLES calls a table that is neither a view nor a sequence

	whyPending = "a message in it is still to be sent"
	whyHeld    = "a message in it is held"

	pointersAtOnce = 500 // ids in a statement: longer lists make MariaDB build a temporary table
)

// view is the message database as it was read.
type view struct {
	now      time.Time
	kinds    map[string]string          // what each name is, as SHOW FULL TABLES says
	tables   []string                   // the raw tables, ascending
	days     map[string]time.Time       // of the raw tables, and of the others that are booked
	booked   map[string][]sql.NullInt64 // the rows of the bookkeeping, by the day's table that they name
	needed   map[string][]string        // why a raw table can't go
	dangling []string                   // days' tables that aren't there, but that messages point at
	newest   time.Time
}

// Inventory reads what there is, in three statements, and more where sizes are not booked or messages are pending. It changes nothing.
func (p *Provisioner) Inventory(ctx context.Context) (retention.Inventory, error) {
	inv, err := p.inventory(ctx)
	if err != nil {
		return retention.Inventory{}, fmt.Errorf("provisioner: inventory of %q: %w", p.cfg.Database, explain(err))
	}
	return inv, nil
}

func (p *Provisioner) inventory(ctx context.Context) (retention.Inventory, error) {
	queue := pending{ask: p.cfg.Pending}
	if err := queue.refresh(ctx); err != nil {
		return retention.Inventory{}, err
	}
	v, err := p.look(ctx)
	if err != nil {
		return retention.Inventory{}, err
	}
	if err := p.addPending(ctx, &v, queue.ids); err != nil {
		return retention.Inventory{}, err
	}
	sizes, err := p.sizes(ctx, v)
	if err != nil {
		return retention.Inventory{}, err
	}
	inv := retention.Inventory{Now: v.now, Newest: v.newest, Tables: []retention.Table{}, Ignored: p.ignored(v), Drift: p.drift(v)}
	for _, name := range v.tables {
		bytes, known := sizes[name]
		inv.Tables = append(inv.Tables, retention.Table{
			Name: name, Day: v.days[name], Bytes: bytes, SizeKnown: known, InUse: strings.Join(v.needed[name], "; "),
		})
	}
	return inv, nil
}

// look reads all of the view but what the pending messages need.
func (p *Provisioner) look(ctx context.Context) (view, error) {
	v := view{
		kinds: map[string]string{}, days: map[string]time.Time{},
		booked: map[string][]sql.NullInt64{}, needed: map[string][]string{},
	}
	if err := p.readTables(ctx, &v); err != nil {
		return v, err
	}
	if err := p.readBooks(ctx, &v); err != nil {
		return v, err
	}
	return v, p.readMessages(ctx, &v)
}

func (p *Provisioner) readTables(ctx context.Context, v *view) error {
	var name, kind string
	err := p.each(ctx, p.names.showTables(), nil, []any{&name, &kind}, func() {
		v.kinds[name] = kind
		if day, ok := p.days.Parse(name); ok && kind == baseTable {
			v.days[name] = day
			v.tables = append(v.tables, name)
		}
	})
	slices.Sort(v.tables)
	return err
}

func (p *Provisioner) readBooks(ctx context.Context, v *view) error {
	var micros, bytes sql.NullInt64
	var name sql.NullString
	return p.each(ctx, p.names.selectBooks(), nil, []any{&micros, &name, &bytes}, func() {
		if micros.Valid {
			v.now = time.UnixMicro(micros.Int64).UTC()
		}
		day, ok := v.days[name.String]
		if !ok {
			day, ok = p.days.Parse(name.String)
		}
		if ok {
			v.days[name.String] = day
			v.booked[name.String] = append(v.booked[name.String], bytes)
		}
	})
}

// readMessages reads what the messages say of the raw tables.
func (p *Provisioner) readMessages(ctx context.Context, v *view) error {
	if p.names.messages == "" {
		return nil
	}
	absent, ranges := p.absentDays(*v)
	var args []any
	for _, r := range ranges {
		args = append(args, r.first, r.last)
	}
	var fact string
	var value sql.NullString
	var fault error
	err := p.each(ctx, p.names.selectMessageFacts(len(ranges)), args, []any{&fact, &value}, func() {
		switch name := value.String; fact {
		case factNewest:
			v.newest, fault = parseMicros(value)
		case factHeld:
			v.needed[name] = append(v.needed[name], whyHeld)
		case factDangling:
			if slices.Contains(absent, name) { // and not one that only looks like it
				v.dangling = append(v.dangling, name)
			}
		}
	})
	if err == nil {
		err = fault
	}
	return err
}

// addPending adds why the raw tables can't go that messages with these ids point at.
func (p *Provisioner) addPending(ctx context.Context, v *view, ids []int64) error {
	waiting := map[string]bool{}
	for chunk := range slices.Chunk(ids, pointersAtOnce) {
		var name string
		err := p.each(ctx, p.names.selectPointers(len(chunk)), anys(chunk), []any{&name}, func() { waiting[name] = true })
		if err != nil {
			return err
		}
	}
	for name := range waiting {
		v.needed[name] = append(v.needed[name], whyPending)
	}
	return nil
}

// ignored are the names that look like a raw table's, but are not a day's table.
func (p *Provisioner) ignored(v view) []retention.Ignored {
	list := []retention.Ignored{}
	for name, kind := range v.kinds {
		if !p.days.Resembles(name) || p.cfg.Schema.mentions(name) {
			continue
		}
		if kind != baseTable {
			list = append(list, retention.Ignored{Name: name, Reason: fmt.Sprintf("its type is %s, not %s", kind, baseTable)})
		} else if _, day := v.days[name]; !day {
			list = append(list, retention.Ignored{Name: name, Reason: fmt.Sprintf("not the name of a day, as %q is", p.days.Name(v.now))})
		}
	}
	slices.SortFunc(list, func(a, b retention.Ignored) int { return strings.Compare(a.Name, b.Name) })
	return list
}

// parseMicros reads a time in microseconds since 1970; NULL is the zero time.
func parseMicros(value sql.NullString) (time.Time, error) {
	if !value.Valid {
		return time.Time{}, nil
	}
	micros, err := strconv.ParseInt(value.String, 10, 64)
	if err != nil {
		return time.Time{}, fmt.Errorf("the newest message's time: %w", err)
	}
	return time.UnixMicro(micros).UTC(), nil
}
