package lease_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/mailretention/mailretention/internal/mariadb"
	"github.com/mailretention/mailretention/lease"
)

// exampleLeases returns leases and the work's pool, on a server that is closed by the returned function.
func exampleLeases(ctx context.Context, cfg lease.Config) (leases *lease.Leases, work *sql.DB, done func()) {
	server, err := mariadb.Start(ctx, mariadb.Options{})
	if err != nil {
		panic(err)
	}
	first, err := sql.Open("mysql", server.DSN(""))
	if err == nil {
		_, err = first.ExecContext(ctx, "CREATE DATABASE mail")
	}
	if err == nil {
		work, err = sql.Open("mysql", server.DSN("mail"))
	}
	own, ownErr := sql.Open("mysql", server.DSN("mail"))
	if err = errors.Join(err, ownErr); err == nil {
		leases, err = lease.New(own, cfg)
	}
	if err == nil {
		err = leases.Provision(ctx)
	}
	if err != nil {
		panic(err)
	}
	return leases, work, func() {
		if err := errors.Join(first.Close(), work.Close(), own.Close(), server.Close()); err != nil {
			panic(err)
		}
	}
}

func ExampleLeases_Do() {
	ctx := context.Background()
	leases, _, done := exampleLeases(ctx, lease.Config{Owner: "worker-1"})
	defer done()

	err := leases.Do(ctx, "mail-17", func(ctx context.Context) error {
		fmt.Println("working")
		return leases.Do(ctx, "mail-17", func(context.Context) error {
			fmt.Println("never two at once")
			return nil
		})
	})
	if held, ok := errors.AsType[*lease.HeldError](err); ok {
		fmt.Println("held by", held.Owner)
	}
	// Output:
	// working
	// held by worker-1
}

// Work that isn't one function acquires the lease, works under the heartbeat's context, and releases the lease.
func ExampleLease_Heartbeat() {
	ctx := context.Background()
	leases, _, done := exampleLeases(ctx, lease.Config{})
	defer done()

	held, err := leases.Acquire(ctx, "mail-17")
	if err != nil {
		fmt.Println(err)
		return
	}
	work, stop := held.Heartbeat(ctx)
	for part := range 3 {
		if work.Err() != nil {
			fmt.Println("stop:", context.Cause(work))
			break
		}
		fmt.Println("part", part)
	}
	stop()
	fmt.Println("released:", held.Release(ctx) == nil)
	// Output:
	// part 0
	// part 1
	// part 2
	// released: true
}

func ExampleLeases_Guard() {
	ctx := context.Background()
	leases, db, done := exampleLeases(ctx, lease.Config{})
	defer done()
	if _, err := db.ExecContext(ctx, "CREATE TABLE balance (amount int)"); err != nil {
		fmt.Println(err)
	}

	book := func(ctx context.Context) error {
		tx, err := db.BeginTx(ctx, nil)
		if err != nil {
			return err
		}
		defer tx.Rollback() // no effect after a commit
		if _, err := tx.ExecContext(ctx, "INSERT INTO balance VALUES (7)"); err != nil {
			return err
		}
		if err := leases.Guard(ctx, tx); err != nil { // the last statement
			return err
		}
		return tx.Commit()
	}
	err := leases.Do(ctx, "books", func(ctx context.Context) error {
		fmt.Println("first:", book(ctx))
		held, _ := lease.FromContext(ctx)
		if err := leases.ForceRelease(ctx, "books", held.Token()); err != nil { // somebody takes the lease away
			return err
		}
		return book(ctx)
	})
	fmt.Println("second:", err)
	// Output:
	// first: <nil>
	// second: lease "books" is lost: forced
}

// Every worker of a fleet wakes up for the same task; one does it, and the others find that it is being done or was done just now.
func Example_scheduledTask() {
	ctx := context.Background()
	leases, _, done := exampleLeases(ctx, lease.Config{MinHold: time.Hour, MaxHold: 10 * time.Minute})
	defer done()

	hourly := func(worker string) {
		err := leases.Do(ctx, "rotate-keys", func(ctx context.Context) error {
			fmt.Println(worker, "rotates the keys")
			return nil
		})
		held, ok := errors.AsType[*lease.HeldError](err)
		switch {
		case ok && held.Active:
			fmt.Println(worker, "leaves it to", held.Owner)
		case ok:
			fmt.Println(worker, "finds it done, and comes back in an hour:", time.Until(held.Retry) > 50*time.Minute)
		case err != nil:
			fmt.Println(worker, "failed:", err)
		}
	}
	hourly("worker-1")
	hourly("worker-2")
	// Output:
	// worker-1 rotates the keys
	// worker-2 finds it done, and comes back in an hour: true
}

// This is how not to do it: the work doesn't run under the heartbeat's context, so it goes on when the lease is lost. Do can only wait for it, and
// say so. Pass on the context that the function is given.
func ExampleLeases_Do_incorrect() {
	ctx := context.Background()
	leases, _, done := exampleLeases(ctx, lease.Config{TTL: time.Second, MaxHold: time.Second})
	defer done()

	err := leases.Do(ctx, "mail-17", func(context.Context) error { // ignored
		select {
		case <-ctx.Done(): // the outer context knows nothing of the lease
		case <-time.After(2 * time.Second):
		}
		fmt.Println("worked on, alone or not")
		return nil
	})
	fmt.Println("lost:", errors.Is(err, lease.ErrLost))
	// Output:
	// worked on, alone or not
	// lost: true
}
