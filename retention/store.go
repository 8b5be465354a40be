package retention

import "context"

// Store is the message database of one mail server. *provisioner.Provisioner implements it; whoever writes
// another finds its contract as a test in package retentiontest.
//
// progress is called after each committed batch with the number of its rows, from the method's own goroutine,
// and may be nil. If it returns an error the method stops with that error, and what follows is not done.
//
// Each method may be called again after any failure, and beside other callers. Once its context has ended it
// begins nothing more, and its error matches the context's or its cause. Else an error that matches [ErrInUse] keeps
// the table, [ErrRefused] says that nothing may go now, [ErrStop] that the whole database is concerned; any other
// concerns this table alone.
type Store interface {
	// Inventory reads what is there. It changes nothing.
	Inventory(ctx context.Context) (Inventory, error)
	// Reconcile makes bookkeeping, tables and pointers agree and returns how many places it repaired.
	Reconcile(ctx context.Context) (repaired int, err error)
	// DropTable removes the references of messages to the table, batch by batch, and then the table.
	// A table that is gone already is no error; one that a message still needs is [ErrInUse] and stays.
	DropTable(ctx context.Context, name string, progress func(rows int64) error) error
	// PruneMessages deletes the message rows that the cut says, each judged by its own time, but for those still needed.
	PruneMessages(ctx context.Context, cut Cut, progress func(rows int64) error) error
}

// Locker runs work under a lease. *lease.Leases implements it; its contract too is a test in package retentiontest.
type Locker interface {
	// Do runs fn while it holds the named lease, ends fn's context when the lease is lost, and returns after
	// fn has, with fn's error. It does not wait for a live holder: then it returns, without calling fn, an
	// error that matches [ErrHeld] or has a method Held() bool that says true.
	Do(ctx context.Context, name string, fn func(context.Context) error) error
}
