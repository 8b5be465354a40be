package retention

import "time"

// Inventory is what a [Store] has: read once, planned on as it stands.
type Inventory struct {
	Now     time.Time `json:"now"`     // the database server's clock, UTC: one clock for all workers
	Tables  []Table   `json:"tables"`  // in any order
	Ignored []Ignored `json:"ignored"` // names that look like raw tables but are not a day's: never touched, always reported
	Drift   []Drift   `json:"drift"`   // where bookkeeping, tables and pointers disagree
	// Newest is the latest time among the 1,000 highest message ids, where NULL and 0 are no time.
	// Zero: there is none, or it is unknown.
	Newest time.Time `json:"newest,omitzero"`
}

// Table is the raw table of one UTC day.
type Table struct {
	Name      string    `json:"name"`
	Day       time.Time `json:"day"`   // midnight UTC
	Bytes     int64     `json:"bytes"` // of raw mail; means nothing unless SizeKnown
	SizeKnown bool      `json:"size_known"`
	InUse     string    `json:"in_use"` // why it can't go yet, for people; "" if it can
}

// Ignored is a name that looks like a raw table's but is not a day's.
type Ignored struct {
	Name   string `json:"name"`
	Reason string `json:"reason"`
}

// DriftKind says how bookkeeping, tables and pointers disagree.
type DriftKind string

// The kinds of drift.
const (
	DriftOrphan   DriftKind = "orphan"   // a bookkeeping row without a table
	DriftMissing  DriftKind = "missing"  // a table without a bookkeeping row
	DriftDouble   DriftKind = "double"   // a table with more than one bookkeeping row
	DriftDangling DriftKind = "dangling" // messages that point at a table that is gone
)

// Drift is one disagreement. [Store].Reconcile removes it.
type Drift struct {
	Table string    `json:"table"`
	Kind  DriftKind `json:"kind"`
	Bytes int64     `json:"bytes"` // what the bookkeeping claims; 0 where it claims nothing
}

// Plan is what a policy makes of an inventory. No table is in it twice.
type Plan struct {
	Now        time.Time `json:"now"`    // UTC
	Policy     Policy    `json:"policy"` // with the holds of [Config].Holds
	Drops      []Drop    `json:"drops"`  // oldest first
	Keeps      []Keep    `json:"keeps"`  // oldest first, each with every reason that keeps it
	Ignored    []Ignored `json:"ignored"`
	Drift      []Drift   `json:"drift"`
	MessageCut *Cut      `json:"message_cut"` // nil: no message rule
	Bytes      int64     `json:"bytes"`       // of known size, of today and before
	BytesAfter int64     `json:"bytes_after"`
	Shortfall  int64     `json:"shortfall"` // bytes above the limit that stay: protected, or a size is unknown
	Warnings   []string  `json:"warnings"`
}

// Reason says why a table goes or stays.
type Reason string

// Why a table goes, and why one stays. What protects beats every rule; the first four are in order of precedence.
const (
	ReasonLegalHold Reason = "legal_hold" // a hold covers its day
	ReasonInUse     Reason = "in_use"     // a message that is still needed has its mail there
	ReasonActive    Reason = "active"     // one of the newest days, see Policy.MinKeepDays
	ReasonFuture    Reason = "future"     // its day has not come yet

	ReasonWithinPolicy Reason = "within_policy" // no rule takes it

	ReasonAge  Reason = "age"  // before today − Policy.RawDays
	ReasonSize Reason = "size" // above Policy.RawBytes, and the oldest that may go
)

// Drop is a table that goes, and the rule that takes it: ReasonAge or ReasonSize.
type Drop struct {
	Table  Table  `json:"table"`
	Reason Reason `json:"reason"`
}

// Keep is a table that stays, with every protection it has in order of precedence, or ReasonWithinPolicy alone.
type Keep struct {
	Table   Table    `json:"table"`
	Reasons []Reason `json:"reasons"`
}

// Cut is the message rule: rows of a time before Before go, but for those of the days that Except holds.
// A row without a time stays.
type Cut struct {
	Before time.Time `json:"before"` // midnight UTC
	Except []Hold    `json:"except"`
}
