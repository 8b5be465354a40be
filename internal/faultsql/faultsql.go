// Package faultsql wraps the MySQL driver and makes chosen statements fail in the ways that networks, servers and
// processes do, so that tests can interrupt an operation at each of its statements:
//
//	faults := faultsql.New(connector) // from mysql.NewConnector
//	db := sql.OpenDB(faults)
//	operation(db)
//	for n := range faults.Count() {
//		faults.Reset()
//		faults.Arm(faultsql.Fault{At: n + 1, Kind: faultsql.LoseAnswer})
//		operation(db)
//	}
//
// A statement is what is executed on the server: an exec, a query, the execution of a prepared statement, BEGIN, COMMIT
// and ROLLBACK, each once, however the driver sends it (a BEGIN may set its isolation level first). Preparing one, pings,
// connecting, and what can't be sent because its connection is closed already don't count.
package faultsql

import (
	"context"
	"database/sql/driver"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/go-sql-driver/mysql"
)

// Kind says what becomes of a statement.
type Kind string

// The zero Kind lets the statement run; the fault is its delay and its hooks alone.
const (
	// FailBefore closes the connection instead of running the statement: [mysql.ErrInvalidConn].
	FailBefore Kind = "fail before"
	// LoseAnswer runs the statement and closes the connection before its answer arrives: [mysql.ErrInvalidConn],
	// which database/sql doesn't retry, also where the server's answer was an error.
	LoseAnswer Kind = "lose answer"
	// Dead is FailBefore for this statement and everything after it, new connections too, until [Connector.Heal]:
	// to the server it looks as if the process had been killed. Other connections are closed when they are used next.
	Dead Kind = "dead"
	// Cut closes the connection and leaves it to the driver to notice: [driver.ErrBadConn], so that database/sql
	// runs the statement again on another connection, if it isn't part of a transaction.
	Cut Kind = "cut"
	// ServerError returns a [mysql.MySQLError] with the fault's Number instead of running the statement. The
	// connection and its transaction stay as they are.
	ServerError Kind = "server error"
	// KillProcess kills this process (SIGKILL) instead of running the statement.
	KillProcess Kind = "kill process"
)

// Fault is one thing that goes wrong, once. A statement that the server refuses already when it is prepared fails with
// the server's error, and nothing happens after it.
type Fault struct {
	At     int           // at the At-th statement from now on that contains Text; 0 means 1, the next one
	Text   string        // "": any statement
	Kind   Kind          // "": it runs
	Number uint16        // of a ServerError
	Before func()        // called first, if not nil, in the statement's goroutine; it may use the database
	Delay  time.Duration // then waited for; if the statement's context ends meanwhile, the statement fails with its error
	After  func()        // called last, if not nil, before the caller sees the answer or the failure
}

// Connector opens connections whose statements it counts, and makes fail. One is for one [sql.DB]; it may be used by
// several goroutines at once.
type Connector struct {
	real driver.Connector

	mu     sync.Mutex
	faults []*Fault // that have not happened yet; At counts down
	log    []string
	dead   bool
}

// New returns a Connector without faults. real is one of [mysql.NewConnector].
func New(real driver.Connector) *Connector {
	return &Connector{real: real}
}

// Arm adds faults to those that have not happened yet. Of two for the same statement the second waits for the next one.
func (f *Connector) Arm(faults ...Fault) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, fault := range faults {
		fault.At = max(fault.At, 1)
		f.faults = append(f.faults, &fault)
	}
}

// Armed returns how many faults have not happened yet.
func (f *Connector) Armed() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.faults)
}

// Heal ends [Dead].
func (f *Connector) Heal() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.dead = false
}

// Reset forgets the armed faults and the statements so far, and heals.
func (f *Connector) Reset() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.faults, f.log, f.dead = nil, nil, false
}

// Count returns the number of statements since the last Reset.
func (f *Connector) Count() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.log)
}

// Log returns the text of the statements since the last Reset, in the order in which they began.
func (f *Connector) Log() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.log)
}

// Connect implements [driver.Connector].
func (f *Connector) Connect(ctx context.Context) (driver.Conn, error) {
	if f.isDead() {
		return nil, mysql.ErrInvalidConn
	}
	c, err := f.real.Connect(ctx)
	if err != nil {
		return nil, err
	}
	wrapped, ok := c.(mysqlConn)
	if !ok {
		return nil, fmt.Errorf("%T is not a connection of the MySQL driver", c)
	}
	return &conn{mysqlConn: wrapped, faults: f}, nil
}

// Driver implements [driver.Connector].
func (f *Connector) Driver() driver.Driver {
	return f.real.Driver()
}

func (f *Connector) isDead() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.dead
}

// next logs a statement and returns what happens to it: the zero Fault if nothing does.
func (f *Connector) next(text string) Fault {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.log = append(f.log, text)
	var happens *Fault
	f.faults = slices.DeleteFunc(f.faults, func(fault *Fault) bool {
		switch {
		case !strings.Contains(text, fault.Text):
			return false
		case fault.At > 1:
			fault.At--
			return false
		case happens != nil:
			return false
		}
		happens = fault
		return true
	})
	if happens == nil {
		return Fault{}
	}
	f.dead = f.dead || happens.Kind == Dead
	return *happens
}
