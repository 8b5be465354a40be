package faultsql

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/go-sql-driver/mysql"
)

// mysqlConn is what database/sql uses of the driver's connections.
type mysqlConn interface {
	driver.Conn
	driver.ConnBeginTx
	driver.ConnPrepareContext
	driver.ExecerContext
	driver.NamedValueChecker
	driver.Pinger
	driver.QueryerContext
	driver.SessionResetter
	driver.Validator
}

// mysqlStmt is what database/sql uses of the driver's prepared statements.
type mysqlStmt interface {
	driver.Stmt
	driver.NamedValueChecker
	driver.StmtExecContext
	driver.StmtQueryContext
}

// conn is a connection; like any driver's, one goroutine at a time uses it.
type conn struct {
	mysqlConn
	faults  *Connector
	skipped *skipped // nil: none
}

// skipped is a statement that was counted, but that the driver doesn't run before database/sql has prepared it.
type skipped struct {
	text  string
	fault Fault
}

type stmt struct {
	mysqlStmt
	conn *conn
	text string
}

type tx struct {
	driver.Tx
	conn *conn
}

func (c *conn) ExecContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Result, error) {
	return run(ctx, c, query, func() (driver.Result, error) { return c.mysqlConn.ExecContext(ctx, query, args) })
}

func (c *conn) QueryContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Rows, error) {
	return run(ctx, c, query, func() (driver.Rows, error) { return c.mysqlConn.QueryContext(ctx, query, args) })
}

func (s *stmt) ExecContext(ctx context.Context, args []driver.NamedValue) (driver.Result, error) {
	return run(ctx, s.conn, s.text, func() (driver.Result, error) { return s.mysqlStmt.ExecContext(ctx, args) })
}

func (s *stmt) QueryContext(ctx context.Context, args []driver.NamedValue) (driver.Rows, error) {
	return run(ctx, s.conn, s.text, func() (driver.Rows, error) { return s.mysqlStmt.QueryContext(ctx, args) })
}

func (c *conn) BeginTx(ctx context.Context, opts driver.TxOptions) (driver.Tx, error) {
	return run(ctx, c, "BEGIN", func() (driver.Tx, error) {
		begun, err := c.mysqlConn.BeginTx(ctx, opts)
		if err != nil {
			return nil, err
		}
		return tx{Tx: begun, conn: c}, nil
	})
}

func (t tx) Commit() error   { return t.end("COMMIT", t.Tx.Commit) }
func (t tx) Rollback() error { return t.end("ROLLBACK", t.Tx.Rollback) }

func (t tx) end(text string, send func() error) error {
	_, err := run(context.Background(), t.conn, text, func() (struct{}, error) { return struct{}{}, send() })
	return err
}

func (c *conn) PrepareContext(ctx context.Context, query string) (driver.Stmt, error) {
	if err := c.dead(); err != nil {
		return nil, err
	}
	prepared, err := c.mysqlConn.PrepareContext(ctx, query)
	if err != nil {
		return nil, err
	}
	s, ok := prepared.(mysqlStmt)
	if !ok {
		return nil, fmt.Errorf("%T is not a statement of the MySQL driver", prepared)
	}
	return &stmt{mysqlStmt: s, conn: c, text: query}, nil
}

func (c *conn) Ping(ctx context.Context) error {
	if err := c.dead(); err != nil {
		return err
	}
	return c.mysqlConn.Ping(ctx)
}

// run sends a statement, with the fault that happens to it.
func run[T any](ctx context.Context, c *conn, text string, send func() (T, error)) (answer T, err error) {
	fault, err := c.before(ctx, text)
	if err == nil {
		answer, err = send()
		if errors.Is(err, driver.ErrSkip) {
			c.skipped = &skipped{text, fault}
			return answer, err
		}
		if fault.Kind == LoseAnswer {
			if rows, ok := any(answer).(driver.Rows); ok {
				rows.Close() // the server is through with the statement when all rows are read
			}
			c.Close()
			var none T
			answer, err = none, mysql.ErrInvalidConn
		}
	}
	if fault.After != nil {
		fault.After()
	}
	return answer, err
}

// before counts the statement and does what its fault does before it is sent; an error says that it must not be sent.
func (c *conn) before(ctx context.Context, text string) (Fault, error) {
	if err := c.dead(); err != nil {
		return Fault{}, err
	}
	if s := c.skipped; s != nil {
		c.skipped = nil
		if s.text == text {
			return s.fault, nil
		}
	}
	if ctx.Err() != nil || !c.IsValid() {
		return Fault{}, nil // the driver won't send it and says why
	}
	fault := c.faults.next(text)
	if fault.Before != nil {
		fault.Before()
	}
	if err := sleep(ctx, fault.Delay); err != nil {
		return fault, err
	}
	switch fault.Kind {
	case FailBefore, Dead:
		c.Close()
		return fault, mysql.ErrInvalidConn
	case Cut:
		c.Close()
	case ServerError:
		return fault, &mysql.MySQLError{Number: fault.Number, Message: "injected by faultsql"}
	case KillProcess:
		return fault, killProcess()
	}
	return fault, nil
}

// dead closes the connection if everything is dead.
func (c *conn) dead() error {
	if !c.faults.isDead() {
		return nil
	}
	c.Close()
	return mysql.ErrInvalidConn
}

func sleep(ctx context.Context, d time.Duration) error {
	if d == 0 {
		return nil
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// killProcess returns only if the process can't be killed.
func killProcess() error {
	self, err := os.FindProcess(os.Getpid())
	if err != nil {
		return err
	}
	if err := self.Kill(); err != nil {
		return err
	}
	select {} // the signal arrives any moment
}
