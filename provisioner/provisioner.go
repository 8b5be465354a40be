package provisioner

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"time"
	"unicode"

	"github.com/mailretention/mailretention/internal/sqlname"
)

// Provisioner works on one message database. It may be shared by goroutines.
type Provisioner struct {
	db      *sql.DB
	cfg     Config // with its defaults
	days    sqlname.Days
	names   names
	session atomic.Pointer[session] // nil until the first statement
}

// session is what was found on the first connection, and is the same on each that has the DSN.
type session struct {
	autocommit bool
	charset    string // of statements
}

const restoreTimeout = 5 * time.Second // for a statement that waits for nothing

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
		return time.Time{}, fmt.Errorf("provisioner: read the server's clock: %w", err)
	}
	return time.UnixMicro(micros).UTC(), nil
}

// conn runs fn on a connection of its own on which each statement outside a transaction commits by itself. Without that, where
// the DSN or the server turns autocommit off, a read would show an old snapshot and keep its tables locked.
func (p *Provisioner) conn(ctx context.Context, fn func(*sql.Conn) error) error {
	c, err := p.db.Conn(ctx)
	if err != nil {
		return err
	}
	defer c.Close()
	s, err := p.firstSession(ctx, c)
	if err != nil {
		return err
	}
	if !s.autocommit {
		if _, err := c.ExecContext(ctx, autocommitOn); err != nil {
			return err
		}
		defer restore(ctx, c, autocommitOff)
	}
	return fn(c)
}

// firstSession reads, when it is first called, what all sessions have in common, and makes sure that they can spell the names.
func (p *Provisioner) firstSession(ctx context.Context, c *sql.Conn) (*session, error) {
	if s := p.session.Load(); s != nil {
		return s, nil
	}
	var s session
	if err := c.QueryRowContext(ctx, selectSession).Scan(&s.autocommit, &s.charset); err != nil {
		return nil, err
	}
	if !s.spells(fmt.Sprint(p.cfg.Database, p.cfg.Schema)) {
		return nil, fmt.Errorf("provisioner: names that are not ASCII need a connection in utf8mb4, and this one is in %s: set charset=utf8mb4 in the DSN", s.charset)
	}
	p.session.Store(&s)
	return &s, nil
}

func (s session) spells(names string) bool {
	notASCII := func(r rune) bool { return r > unicode.MaxASCII }
	return strings.HasPrefix(s.charset, "utf8") || !strings.ContainsFunc(names, notASCII)
}

// restore sets a session back, also when ctx has ended. A connection where that fails is closed.
func restore(ctx context.Context, c *sql.Conn, statement string) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), restoreTimeout)
	defer cancel()
	if _, err := c.ExecContext(ctx, statement); err != nil {
		discard(c)
	}
}

// discard closes c for good instead of giving it back to the pool: its session is not as we found it.
func discard(c *sql.Conn) {
	_ = c.Raw(func(any) error { return driver.ErrBadConn })
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
