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
	now, newest time.Time
	names       map[string]*named // that are there, or booked
	tables      []*named          // the raw tables, ascending
	dangling    []string          // days' tables that aren't there, but that messages point at
}

// named is what was found of a name.
type named struct {
	name   string
	kind   string // as SHOW FULL TABLES says, "" for nothing
	day    time.Time
	isDay  bool
	booked []sql.NullInt64 // the rows of the bookkeeping
	needed []string        // why the table can't go
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
	inv := retention.Inventory{Now: v.now, Newest: v.newest, Tables: make([]retention.Table, 0, len(v.tables)), Ignored: p.ignored(v), Drift: p.drift(v)}
	for _, t := range v.tables {
		bytes, known := sizes[t.name]
		inv.Tables = append(inv.Tables, retention.Table{
			Name: t.name, Day: t.day, Bytes: bytes, SizeKnown: known, InUse: strings.Join(t.needed, "; "),
		})
	}
	return inv, nil
}

// look reads all of the view but what the pending messages need.
func (p *Provisioner) look(ctx context.Context) (view, error) {
	v := view{names: map[string]*named{}}
	for _, read := range []func(context.Context, *view) error{p.readTables, p.readBooks, p.readMessages} {
		if err := read(ctx, &v); err != nil {
			return v, err
		}
	}
	return v, nil
}

func (p *Provisioner) readTables(ctx context.Context, v *view) error {
	var name, kind string
	err := p.each(ctx, p.names.showTables(), nil, []any{&name, &kind}, func() {
		n := p.find(v, name)
		n.kind = kind
		if n.isDay && kind == baseTable {
			v.tables = append(v.tables, n)
		}
	})
	slices.SortFunc(v.tables, func(a, b *named) int { return strings.Compare(a.name, b.name) })
	return err
}

// found is what was found of a name; zero for nothing.
func (v *view) found(name string) named {
	if n := v.names[name]; n != nil {
		return *n
	}
	return named{}
}

// find returns what was found of a name, to add to it.
func (p *Provisioner) find(v *view, name string) *named {
	n := v.names[name]
	if n == nil {
		n = &named{name: name}
		n.day, n.isDay = p.days.Parse(name)
		v.names[name] = n
	}
	return n
}

func (p *Provisioner) readBooks(ctx context.Context, v *view) error {
	var micros, bytes sql.NullInt64
	var name sql.NullString
	return p.each(ctx, p.names.selectBooks(), nil, []any{&micros, &name, &bytes}, func() {
		if micros.Valid {
			v.now = time.UnixMicro(micros.Int64).UTC()
		}
		if name.Valid {
			n := p.find(v, name.String)
			n.booked = append(n.booked, bytes)
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
			v.need(name, whyHeld)
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
		v.need(name, whyPending)
	}
	return nil
}

// need notes why a table can't go, if it is there.
func (v *view) need(name, why string) {
	if n := v.names[name]; n != nil {
		n.needed = append(n.needed, why)
	}
}

// ignored are the names that look like a raw table's, but are not a day's table.
func (p *Provisioner) ignored(v view) []retention.Ignored {
	list := []retention.Ignored{}
	for name, n := range v.names {
		switch {
		case n.kind == "" || !p.days.Resembles(name) || p.cfg.Schema.mentions(name):
		case n.kind != baseTable:
			list = append(list, retention.Ignored{Name: name, Reason: fmt.Sprintf("its type is %s, not %s", n.kind, baseTable)})
		case !n.isDay:
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
