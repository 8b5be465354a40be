package retention

import "time"

// Outcome says how a run ended.
type Outcome string

// The outcomes of [Runner.Run]. The zero Outcome is a run that has not ended.
const (
	OutcomeDone        Outcome = "done"          // all of the plan; the error is nil
	OutcomeNothingToDo Outcome = "nothing_to_do" // nothing dropped, detached, pruned or repaired; the error is nil
	// OutcomePartial: some tables failed, or the run ended early. The error joins a [*TableError] for each table
	// that failed, or is the context's cause; it is nil when only Config.MaxDrops ended it. Report.Stopped says why.
	OutcomePartial Outcome = "partial"
	OutcomeHeld    Outcome = "held" // another has the lease; the error matches [ErrHeld] and the Locker's own
	// OutcomeRefused: clock, would empty, bad policy, queue or holds unreadable. The error matches [ErrRefused].
	// The plan is there unless the inventory itself failed, and the report says what was done before.
	OutcomeRefused Outcome = "refused"
	OutcomeFailed  Outcome = "failed" // nothing was done; the error is the cause
)

// Verdict says what became of a table that the plan drops.
type Verdict string

// The verdicts.
const (
	VerdictDropped Verdict = "dropped" // gone
	VerdictKept    Verdict = "kept"    // needed, held or refused since the plan; Err says why
	VerdictFailed  Verdict = "failed"  // an error; Err says which, and the next run tries again
)

// Report says what a run did. It is valid beside an error.
//
// It is written as JSON for others to read: durations are numbers of seconds and errors are text, which
// decoding it into a Report leaves out.
type Report struct {
	Name         string        `json:"name"`
	Outcome      Outcome       `json:"outcome"`
	Started      time.Time     `json:"started"` // local clock, UTC
	Took         time.Duration `json:"-"`       // "took" in JSON, in seconds
	Plan         Plan          `json:"plan"`
	Tables       []TableReport `json:"tables"`   // of the plan's drops, those that were tried, in order
	Repaired     int           `json:"repaired"` // places that Reconcile made agree
	RowsDetached int64         `json:"rows_detached"`
	RowsPruned   int64         `json:"rows_pruned"`
	BytesFreed   int64         `json:"bytes_freed"` // of the dropped tables whose size is known
	Stopped      string        `json:"stopped"`     // why it ended early; "" if it did not
}

// TableReport says what became of one table that the plan drops.
type TableReport struct {
	Table    Table         `json:"table"`
	Reason   Reason        `json:"reason"` // why the plan drops it
	Verdict  Verdict       `json:"verdict"`
	Detached bool          `json:"detached"` // messages have lost their reference to it, yet it is still there
	Rows     int64         `json:"rows"`     // messages that lost their reference to it
	Took     time.Duration `json:"-"`        // "took" in JSON, in seconds
	Err      error         `json:"-"`        // "err" in JSON, as text; nil if dropped
}
