// Package retentiontest checks implementations of retention.Store and retention.Locker, and has in-memory ones for
// the tests of programs that embed package retention.
//
// [TestStore] and [TestLocker] are the contracts as tests: call them from a test of your own with a function that
// opens what is to be checked. [NewStore] and [NewLocker] keep everything in memory, and pass them.
package retentiontest

import "time"

// layout is that of Postal's raw tables.
const layout = "raw-2006-01-02"

// Fixture is what a message database has at the beginning of a test.
type Fixture struct {
	// Now is the store's clock. [TestStore] gives the real time, so that a server that has no other clock will do.
	Now time.Time
	// Days are in the order in which their messages are to be inserted. That is not the order of time, so that
	// message ids say nothing about age.
	Days []Day
}

// Day is one raw table, its bookkeeping, and the messages that point into it.
type Day struct {
	Table    string // such as raw-2026-06-03, for the UTC day in its name
	Messages int    // rows of the message table, each of a time within the day, without children
	Bytes    int64  // the table's size, as the bookkeeping has it
	Pending  int    // how many of the messages, the first of them, are still to be sent
}
