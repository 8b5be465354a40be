package lease_test

import (
	"bufio"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"
	"github.com/stretchr/testify/require"

	"github.com/mailretention/mailretention/lease"
)

// The test binary runs itself again as a worker: it reads its orders from the environment, and reports as lines of JSON.

const (
	roleVariable   = "MAILRETENTION_LEASE_ROLE"
	ordersVariable = "MAILRETENTION_LEASE_ORDERS"
)

// orders are what a worker process is told.
type orders struct {
	DSN     string
	Naive   bool
	Workers int
	TTL     time.Duration
	For     time.Duration
}

// report is a line of a worker process.
type report struct {
	State     string // what it has come to
	Intervals []*interval
	Errors    []string
	Committed bool             // a guarded transaction
	Reason    lease.LostReason // why the context of the work ended
	Token     uint64
}

func playRole(role string) int {
	var o orders
	err := json.Unmarshal([]byte(os.Getenv(ordersVariable)), &o)
	if err == nil {
		err = map[string]func(orders) error{"storm": rage, "sleeper": sleepInTransaction, "holder": holdUntilKilled}[role](o)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

func say(r report) error { return json.NewEncoder(os.Stdout).Encode(r) }

// lock is the kind of lock that a worker is told to use, on pools of its own.
func (o orders) lock(h *history, owner string) (lock, *sql.DB, error) {
	config, err := mysql.ParseDSN(o.DSN)
	if err != nil {
		return nil, nil, err
	}
	connector, err := mysql.NewConnector(config)
	if err != nil {
		return nil, nil, err
	}
	work := sql.OpenDB(connector)
	if o.Naive {
		return &naiveLock{history: h, naive: &naiveLease{db: work, owner: owner, ttl: o.TTL}}, work, nil
	}
	leases, err := lease.New(sql.OpenDB(connector), lease.Config{TTL: o.TTL, Owner: owner})
	return &leaseLock{history: h, owner: owner, db: work, leases: leases}, work, err
}

// child is a worker process.
type child struct {
	t       testing.TB
	cmd     *exec.Cmd
	in      io.WriteCloser
	reports *bufio.Scanner
}

func spawn(t testing.TB, role string, o orders) *child {
	t.Helper()
	self, err := os.Executable()
	require.NoError(t, err)
	text, err := json.Marshal(o)
	require.NoError(t, err)
	c := &child{t: t, cmd: exec.Command(self)}
	c.cmd.Env = append(os.Environ(), roleVariable+"="+role, ordersVariable+"="+string(text))
	c.cmd.Stderr = os.Stderr
	c.in, err = c.cmd.StdinPipe()
	require.NoError(t, err)
	out, err := c.cmd.StdoutPipe()
	require.NoError(t, err)
	c.reports = bufio.NewScanner(out)
	c.reports.Buffer(nil, 64<<20)
	require.NoError(t, c.cmd.Start())
	t.Cleanup(func() {
		_ = c.cmd.Process.Kill() // it has ended, unless the test failed
		_ = c.cmd.Wait()
	})
	return c
}

// hear returns the next report.
func (c *child) hear() (r report) {
	c.t.Helper()
	require.True(c.t, c.reports.Scan(), "the worker ended without a report")
	require.NoError(c.t, json.Unmarshal(c.reports.Bytes(), &r))
	return r
}

// rage lets many workers fight for one lease.
func rage(o orders) error {
	ctx, cancel := context.WithTimeout(context.Background(), o.For)
	defer cancel()
	var h history
	var mu sync.Mutex
	var r report
	var running sync.WaitGroup
	for i := range o.Workers {
		l, _, err := o.lock(&h, fmt.Sprintf("%d/%d", os.Getpid(), i))
		if err != nil {
			return err
		}
		running.Go(func() {
			for ctx.Err() == nil {
				err := l.run(context.Background(), func(ctx context.Context, s stay) error { return s.commit(ctx) })
				if err != nil && !errors.Is(err, lease.ErrHeld) && !errors.Is(err, errNaiveHeld) {
					mu.Lock()
					r.Errors = append(r.Errors, err.Error())
					mu.Unlock()
				}
				if err != nil {
					pause(ctx, 10*time.Millisecond)
				}
			}
		})
	}
	running.Wait()
	r.Intervals = h.intervals
	return say(r)
}

// sleepInTransaction waits, between the write of a transaction and its guard, until it is told to go on.
func sleepInTransaction(o orders) error {
	l, db, err := o.lock(&history{}, "sleeper")
	if err != nil {
		return err
	}
	var r report
	err = l.run(context.Background(), func(ctx context.Context, s stay) error {
		tx, err := db.BeginTx(ctx, nil)
		if err != nil {
			return err
		}
		token := uint64(1)
		guard := func(context.Context, *sql.Tx) error { return nil }
		if held, ok := lease.FromContext(ctx); ok {
			token, guard = held.Token(), s.(*leaseStay).leases.Guard
		}
		if _, err := tx.ExecContext(ctx, writeStatement(token)); err != nil {
			return err
		}
		if err := say(report{State: "in transaction"}); err != nil {
			return err
		}
		if _, err := bufio.NewReader(os.Stdin).ReadString('\n'); err != nil {
			return err
		}
		guardErr := guard(ctx, tx)
		r.Committed = errors.Join(guardErr, tx.Commit()) == nil
		if lost, ok := errors.AsType[*lease.LostError](guardErr); ok {
			<-ctx.Done()
			r.Errors = append(r.Errors, lost.Error())
			if why, ok := errors.AsType[*lease.LostError](context.Cause(ctx)); ok {
				r.Reason = why.Reason
			}
		}
		return nil
	})
	if err != nil {
		r.Errors = append(r.Errors, err.Error())
	}
	return say(r)
}

// holdUntilKilled holds leases, one for each worker, with heartbeats.
func holdUntilKilled(o orders) error {
	db, err := sql.Open("mysql", o.DSN)
	if err != nil {
		return err
	}
	leases, err := lease.New(db, lease.Config{TTL: o.TTL, Owner: "holder"})
	if err != nil {
		return err
	}
	for i := range o.Workers {
		l, err := leases.Acquire(context.Background(), heldName(i))
		if err != nil {
			return err
		}
		l.Heartbeat(context.Background())
	}
	if err := say(report{State: "holding"}); err != nil {
		return err
	}
	select {}
}

func heldName(i int) string { return fmt.Sprint("held ", i) }
