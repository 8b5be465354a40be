package provisioner

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/mailretention/mailretention/internal/sqlname"
	"github.com/mailretention/mailretention/retention"
)

// Provisioner works on one message database. It may be shared by goroutines.
type Provisioner struct {
	db      *sql.DB
	cfg     Config // with its defaults
	days    sqlname.Days
	names   names
	session atomic.Pointer[session] // nil until the first statement
}

var _ retention.Store = (*Provisioner)(nil)

// names are the schema's identifiers, quoted once, so that no statement is built from an unchecked one.
// What the schema lacks is "".
type names struct {
	database   string
	sizes      string // qualified, like every table
	sizesTable string
	sizesBytes string
	messages   string
	id         string
	time       string
	timeKind   TimeKind
	rawTable   string
	forceIndex string // FORCE INDEX (…) for the index on rawTable
	size       string
	held       string
	clear      []string // what is set to NULL when the raw mail goes, rawTable first
	children   []childNames
}

type childNames struct{ table, messageID string }

// New makes a Provisioner for the database that cfg names. It doesn't touch the database; db stays the caller's to close.
// The error joins all faults of cfg.
func New(db *sql.DB, cfg Config) (*Provisioner, error) {
	cfg = cfg.withDefaults(db)
	faults := cfg.check()
	if db == nil {
		faults = errors.Join(errors.New("provisioner: no database handle, open one with sql.Open"), faults)
	}
	if faults != nil {
		return nil, faults
	}
	return &Provisioner{db: db, cfg: cfg, days: cfg.Schema.days(), names: newNames(cfg)}, nil
}

// Ident returns the quoted and qualified name of a table of the message database, for the SQL of [Provisioner.InsertInto]'s
// fn. A name that no table can have gives "", which makes the statement a syntax error.
func (p *Provisioner) Ident(table string) string {
	return qualify(p.cfg.Database, table)
}

// serverTime returns the database server's clock.
func (p *Provisioner) serverTime(ctx context.Context) (time.Time, error) {
	var micros int64
	if err := p.db.QueryRowContext(ctx, selectClock).Scan(&micros); err != nil {
		return time.Time{}, fmt.Errorf("read the server's clock: %w", err)
	}
	return time.UnixMicro(micros).UTC(), nil
}

func newNames(cfg Config) names {
	s, m := cfg.Schema, cfg.Schema.Messages
	n := names{database: quote(cfg.Database)}
	if s.Sizes.Name != "" {
		n.sizes, n.sizesTable, n.sizesBytes = qualify(cfg.Database, s.Sizes.Name), quote(s.Sizes.Table), quote(s.Sizes.Bytes)
	}
	if m.Name == "" {
		return n
	}
	n.messages, n.id, n.rawTable = qualify(cfg.Database, m.Name), quote(m.ID), quote(m.RawTable)
	n.time, n.timeKind = quote(m.Time), m.TimeKind
	n.size, n.held = quote(m.Size), quote(m.Held)
	if m.RawIndex != "" {
		n.forceIndex = "FORCE INDEX (" + quote(m.RawIndex) + ")"
	}
	n.clear = []string{n.rawTable}
	for _, column := range m.Clear {
		if column != m.RawTable {
			n.clear = append(n.clear, quote(column))
		}
	}
	for _, child := range s.Children {
		n.children = append(n.children, childNames{table: qualify(cfg.Database, child.Name), messageID: quote(child.MessageID)})
	}
	return n
}

// quote is sqlname.Quote for names that New has checked; "" for none.
func quote(name string) string {
	q, err := sqlname.Quote(name)
	if err != nil {
		return ""
	}
	return q
}

func qualify(database, table string) string {
	q, err := sqlname.Qualify(database, table)
	if err != nil {
		return ""
	}
	return q
}
