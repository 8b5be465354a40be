package lease

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/mailretention/mailretention/internal/mysqlerr"
	"github.com/mailretention/mailretention/internal/sqlname"
)

const firstPause = 5 * time.Millisecond // between tries; it doubles

// querier is a connection or a transaction on one.
type querier interface {
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
}

// session is what the pool's connections have in common.
type session struct {
	database, name string // of the table
	table          table
	autocommit     bool
}

// session asks for the session's properties at first use; two callers that do at once find the same.
func (l *Leases) session(ctx context.Context) (*session, error) {
	if s := l.known.Load(); s != nil {
		return s, nil
	}
	var database sql.NullString
	var s session
	if err := l.db.QueryRowContext(ctx, sessionQuery).Scan(&database, &s.autocommit); err != nil {
		return nil, l.starved(err)
	}
	s.database, s.name = split(l.cfg.Table)
	if s.database == "" {
		s.database = database.String
	}
	if s.database == "" {
		return nil, fmt.Errorf("lease: no database is selected: name one in the DSN, or in Table as %q", "database."+l.cfg.Table)
	}
	qualified, err := sqlname.Qualify(s.database, s.name)
	if err != nil {
		return nil, fmt.Errorf("lease: Table %q: %w", l.cfg.Table, err)
	}
	s.table = table(qualified)
	l.known.Store(&s)
	return &s, nil
}

// with lends do a connection for as long as it runs. Sessions without autocommit get a transaction around it.
func (l *Leases) with(ctx context.Context, do func(querier, *session) error) error {
	s, err := l.session(ctx)
	if err != nil {
		return err
	}
	for broken := 0; ; broken++ {
		conn, err := l.db.Conn(ctx)
		if err != nil {
			return l.starved(err)
		}
		err = s.run(ctx, conn, do)
		if err != nil && mysqlerr.Classify(err) == mysqlerr.NotWritable {
			drop(conn)
		}
		_ = conn.Close() // returns it; all it can say is that it is closed
		if !errors.Is(err, driver.ErrBadConn) || broken > l.db.Stats().OpenConnections {
			return s.table.explain(err)
		}
		// It was broken before anything was sent, as all that are open may be; another may be good.
	}
}

func (s *session) run(ctx context.Context, conn *sql.Conn, do func(querier, *session) error) error {
	if s.autocommit {
		return do(conn, s)
	}
	tx, err := conn.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	if err = do(tx, s); err == nil {
		err = tx.Commit()
	}
	if ended := tx.Rollback(); err != nil && ended != nil { // after Commit it does nothing
		drop(conn) // the server may have the transaction open still, and its locks
	}
	return err
}

// drop keeps a connection from being used again, for example one to a server that takes no writes: after a failover the
// next one leads elsewhere.
func drop(conn *sql.Conn) {
	_ = conn.Raw(func(any) error { return driver.ErrBadConn }) // the error is the request
}

// starved says so when err came of a pool that others have used up.
func (l *Leases) starved(err error) error {
	s := l.db.Stats()
	if errors.Is(err, context.DeadlineExceeded) && s.MaxOpenConnections > 0 && s.InUse >= s.MaxOpenConnections {
		return fmt.Errorf("lease: the pool was exhausted, all its %d connections are in use: give Leases a pool of its own: %w", s.InUse, err)
	}
	return fmt.Errorf("lease: connect: %w", err)
}

// exec runs a statement that build makes, and returns the rows that it affected and the number in its OK packet.
func (l *Leases) exec(ctx context.Context, within time.Duration, build func(table) string) (affected, number int64, err error) {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	err = l.with(ctx, func(q querier, s *session) error {
		result, err := q.ExecContext(ctx, build(s.table))
		if err != nil {
			return err
		}
		if affected, err = result.RowsAffected(); err != nil || affected != 1 {
			return err
		}
		number, err = result.LastInsertId()
		return err
	})
	return affected, number, err
}

// attempts bounds a call that tries again: a statement that waits for a lock, or for a server that is gone, may use up one
// attempt, and what explains or replaces it needs another.
const attempts = 2

// persist calls do until it succeeds, fails for good, or the time of a few attempts is over.
func (l *Leases) persist(ctx context.Context, do func(context.Context) error) error {
	return l.retry(ctx, attempts*l.attempt, do)
}

// retry calls do until it succeeds, fails for good, ctx ends or the time is over. do bounds its statements itself.
func (l *Leases) retry(ctx context.Context, within time.Duration, do func(context.Context) error) error {
	end := time.Now().Add(within)
	for pause := firstPause; ; pause = min(2*pause, l.poll) {
		err := do(ctx)
		if !transient(err) {
			return err
		}
		if time.Until(end) < pause {
			return fmt.Errorf("lease: gave up after %s: %w", within, err)
		}
		if ended := sleep(ctx, jitter(pause)); ended != nil {
			return fmt.Errorf("lease: %w; the last try: %w", ended, err)
		}
	}
}

// sleep returns ctx's error if it ends first.
func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return ctx.Err()
	}
}

// jitter returns d less up to a half of it.
func jitter(d time.Duration) time.Duration {
	return d - rand.N(d/2+1)
}
