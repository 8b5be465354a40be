// Package retentiontest has the contract tests for implementations of retention.Store and retention.Locker, and in-memory ones for users' tests.
package retentiontest

import "time"

// Fixture is a message database for [NewStore], or for a real one to be loaded from.
//
// It has the days in the order in which their messages are to be inserted, which is not the order of time:
// ids say nothing about age.
type Fixture struct {
	Now  time.Time // the store's clock: near to the real time, so that a real server can be used
	Days []Day
}

// Day is one raw table, its bookkeeping and its messages.
type Day struct {
	Table    string // raw-2026-06-03: the UTC day is in the name
	Messages int    // rows in the message table that point into it, each with a time within its UTC day, without children
	Bytes    int64  // of raw mail: the size that the inventory reports
	Pending  int    // how many of the messages, the first ones, are still queued
}
