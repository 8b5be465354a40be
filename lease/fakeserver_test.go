package lease_test

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"io"
	"maps"
	"sync"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"
	"github.com/stretchr/testify/require"

	"github.com/mailretention/mailretention/lease"
)

// fakeServer is a server in memory for tests in virtual time: a database/sql driver that knows the package's own statements, and no
// other SQL. TestFakeServerAgreesWithTheRealOne holds it to what a real server does.
type fakeServer struct {
	mu       sync.Mutex
	rows     map[string]fakeRow
	naive    map[string]naiveRow
	written  []uint64           // tokens of the committed writes, in commit order
	locks    map[string]*fakeTx // whose row locks last until its end
	unlocked chan struct{}      // closed at the next unlock

	offset time.Duration                 // the server's clock, ahead of the true one
	frozen time.Time                     // if set, its clock stands still there
	fault  func(s statement) fault       // what goes wrong with a statement; nil: nothing
	after  func(s statement, rows int64) // sees what was executed; nil: nobody does
}

// fault is what goes wrong with one statement. The zero fault is nothing.
type fault struct {
	refuse error         // the answer, instead of executing it
	delay  time.Duration // until it executes, even if the caller has gone
	slow   time.Duration // from its execution to the answer
	never  bool          // it doesn't execute
	silent bool          // there is no answer: the caller waits until it gives up
	cut    bool          // it executes, and the connection breaks before the answer
}

const lockWaitTimeout = 50 * time.Second

func newFakeServer() *fakeServer {
	return &fakeServer{rows: map[string]fakeRow{}, naive: map[string]naiveRow{}, locks: map[string]*fakeTx{}, unlocked: make(chan struct{})}
}

// pool returns a pool on the server, closed after the test's bubble.
func (s *fakeServer) pool(t testing.TB) *sql.DB {
	db := sql.OpenDB(s)
	t.Cleanup(func() { require.NoError(t, db.Close()) })
	return db
}

// leases returns Leases of a worker with a pool of its own.
func (s *fakeServer) leases(t testing.TB, owner string, cfg lease.Config) *lease.Leases {
	cfg.Owner = owner
	return newLeases(t, s.pool(t), cfg)
}

// now is the server's clock, in the precision of its columns. Called with mu.
func (s *fakeServer) now() time.Time {
	if !s.frozen.IsZero() {
		return s.frozen
	}
	return time.Now().Round(0).UTC().Add(s.offset).Truncate(time.Microsecond)
}

// jump moves the server's clock.
func (s *fakeServer) jump(d time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.offset += d
}

// freeze stops the server's clock.
func (s *fakeServer) freeze() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.frozen = s.now()
}

func (s *fakeServer) row(name string) fakeRow {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.rows[name]
}

func (s *fakeServer) setFault(f func(statement) fault) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fault = f
}

// writes returns the tokens of the committed writes.
func (s *fakeServer) writes() []uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]uint64(nil), s.written...)
}

// do carries a statement out as its fault says.
func (s *fakeServer) do(ctx context.Context, tx *fakeTx, query string) (answer, error) {
	st, err := recognise(query)
	if err != nil {
		return answer{}, err
	}
	s.mu.Lock()
	f := fault{}
	if s.fault != nil {
		f = s.fault(st)
	}
	s.mu.Unlock()
	if f.refuse != nil {
		return answer{}, f.refuse
	}
	type outcome struct {
		answer
		err error
	}
	done := make(chan outcome, 1)
	go func() {
		time.Sleep(f.delay)
		var o outcome
		if !f.never {
			o.answer, o.err = s.execute(ctx, tx, st)
		}
		time.Sleep(f.slow)
		if !f.silent {
			done <- o
		}
	}()
	select {
	case <-ctx.Done():
		return answer{}, ctx.Err()
	case o := <-done:
		if f.cut {
			return answer{}, mysql.ErrInvalidConn
		}
		return o.answer, o.err
	}
}

// execute waits for the row's lock and runs the statement. One that waits for a lock is given up with its caller, as a server
// does that notices the broken connection.
func (s *fakeServer) execute(ctx context.Context, tx *fakeTx, st statement) (answer, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	timeout := time.After(lockWaitTimeout)
	for owner := s.locks[st.Name]; st.writes() && owner != nil && owner != tx; owner = s.locks[st.Name] {
		unlocked := s.unlocked
		s.mu.Unlock()
		var err error
		select {
		case <-unlocked:
		case <-timeout:
			err = &mysql.MySQLError{Number: 1205, Message: "Lock wait timeout exceeded"}
		case <-ctx.Done():
			err = ctx.Err()
		}
		s.mu.Lock()
		if err != nil {
			return answer{}, err
		}
	}
	if tx != nil && st.writes() {
		tx.lock(st.Name)
	}
	a, err := s.run(tx, st)
	if s.after != nil && err == nil {
		s.after(st, a.affected)
	}
	return a, err
}

type fakeConn struct {
	s  *fakeServer
	tx *fakeTx
}

func (s *fakeServer) Connect(context.Context) (driver.Conn, error) { return &fakeConn{s: s}, nil }
func (s *fakeServer) Driver() driver.Driver                        { return nil }

func (c *fakeConn) Prepare(string) (driver.Stmt, error) {
	return nil, errors.New("nothing is prepared")
}
func (c *fakeConn) Close() error              { return nil }
func (c *fakeConn) Begin() (driver.Tx, error) { return nil, errors.New("no context") }

func (c *fakeConn) BeginTx(context.Context, driver.TxOptions) (driver.Tx, error) {
	c.tx = &fakeTx{conn: c, undo: map[string]fakeRow{}}
	return c.tx, nil
}

func (c *fakeConn) ExecContext(ctx context.Context, query string, _ []driver.NamedValue) (driver.Result, error) {
	a, err := c.s.do(ctx, c.tx, query)
	return a, err
}

func (c *fakeConn) QueryContext(ctx context.Context, query string, _ []driver.NamedValue) (driver.Rows, error) {
	a, err := c.s.do(ctx, c.tx, query)
	return &a, err
}

// fakeTx locks the rows that it writes until its end.
type fakeTx struct {
	conn    *fakeConn
	undo    map[string]fakeRow
	pending []uint64
}

func (tx *fakeTx) lock(name string) {
	if _, ok := tx.undo[name]; !ok {
		tx.undo[name] = tx.conn.s.rows[name]
		tx.conn.s.locks[name] = tx
	}
}

func (tx *fakeTx) Commit() error {
	tx.end(func(s *fakeServer) { s.written = append(s.written, tx.pending...) })
	return nil
}

func (tx *fakeTx) Rollback() error {
	tx.end(func(s *fakeServer) { maps.Copy(s.rows, tx.undo) })
	return nil
}

func (tx *fakeTx) end(how func(*fakeServer)) {
	s := tx.conn.s
	s.mu.Lock()
	defer s.mu.Unlock()
	how(s)
	for name := range tx.undo {
		delete(s.locks, name)
	}
	tx.conn.tx = nil
	close(s.unlocked)
	s.unlocked = make(chan struct{})
}

// answer is what comes back: the OK packet or one row.
type answer struct {
	affected, id int64
	columns      []driver.Value
}

func (a answer) LastInsertId() (int64, error) { return a.id, nil }
func (a answer) RowsAffected() (int64, error) { return a.affected, nil }
func (a *answer) Columns() []string           { return make([]string, len(a.columns)) }
func (a *answer) Close() error                { return nil }

func (a *answer) Next(into []driver.Value) error {
	if a.affected == 0 {
		return io.EOF
	}
	a.affected = 0
	copy(into, a.columns)
	return nil
}
