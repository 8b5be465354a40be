package provisioner

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"fmt"
	"strings"
	"time"
	"unicode"
)

// session is what was found on the first connection, and is the same on each that has the DSN.
type session struct {
	autocommit bool
	charset    string // of statements
}

const restoreTimeout = 5 * time.Second // for a statement that waits for nothing

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
		return nil, fmt.Errorf("names that are not ASCII need a connection in utf8mb4, and this one is in %s: set charset=utf8mb4 in the DSN", s.charset)
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

// waiting runs fn on a connection of its own whose statements wait for others' locks no longer than bound, rounded up to the servers'
// whole seconds. MySQL's own bound for a table is a year. Then the session gets its own settings back.
func (p *Provisioner) waiting(ctx context.Context, bound time.Duration, fn func(*sql.Conn) error) error {
	return p.conn(ctx, func(c *sql.Conn) error {
		if _, err := c.ExecContext(ctx, setLockWaits(bound)); err != nil {
			return err
		}
		defer restore(ctx, c, resetLockWaits)
		return fn(c)
	})
}

// each runs a query and calls row after each row was scanned into dest.
func (p *Provisioner) each(ctx context.Context, query string, args, dest []any, row func()) error {
	return p.conn(ctx, func(c *sql.Conn) error { return each(ctx, c, query, args, dest, row) })
}

// each runs a query and calls row after each row was scanned into dest.
func each(ctx context.Context, on querier, query string, args, dest []any, row func()) error {
	rows, err := on.QueryContext(ctx, query, args...)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		if err := rows.Scan(dest...); err != nil {
			return err
		}
		row()
	}
	return rows.Err()
}

// querier is what a pool, a connection and a transaction have in common.
type querier interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
}

func anys[T any](values []T) []any {
	list := make([]any, len(values))
	for i, value := range values {
		list[i] = value
	}
	return list
}
