package retention

import "time"

// EventKind says which step of a run an [Event] is.
type EventKind string

// The kinds of events, in the order of a run. Between EventDropping and the event that ends the table, and
// before EventPruned, there is an EventBatch for each committed batch.
const (
	EventPlanned  EventKind = "planned"  // the plan is in Report.Plan; Err says if it is refused
	EventDropping EventKind = "dropping" // of Table
	EventBatch    EventKind = "batch"    // Rows committed: references of Table, or messages if Table is ""
	EventDropped  EventKind = "dropped"  // Table is gone; Rows references removed
	EventKept     EventKind = "kept"     // Table turned out to be needed, held or refused; Err says why
	EventFailed   EventKind = "failed"   // Table, or the pruning if Table is ""; Err says why
	EventPruned   EventKind = "pruned"   // Rows messages in all
	EventFinished EventKind = "finished" // last, exactly once per Run, whatever the outcome; Err is Run's
)

// Event is one step of a run, in order, from the goroutine that runs it. Under [RunAll] several runs send at once.
//
// As JSON its duration is a number of seconds and its error text, as in [Report].
type Event struct {
	Kind   EventKind     `json:"kind"`
	Table  string        `json:"table"`
	Rows   int64         `json:"rows"`
	Took   time.Duration `json:"-"`      // of this step; "took" in JSON, in seconds
	Err    error         `json:"-"`      // "err" in JSON, as text
	Report Report        `json:"report"` // so far, by value, read only
}
