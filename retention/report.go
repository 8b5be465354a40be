package retention

import (
	"fmt"
	"log/slog"
	"strings"
	"time"
)

// Outcome says how a run ended.
type Outcome string

// The outcomes of [Runner.Run]. The zero Outcome is a run that has not ended.
const (
	OutcomeDone        Outcome = "done"          // all of the plan; the error is nil
	OutcomeNothingToDo Outcome = "nothing_to_do" // nothing dropped, detached, pruned or repaired; the error is nil
	// OutcomePartial: some tables failed, or the run ended early; Report.Stopped says why. The error joins a
	// [*TableError] for each table that failed with what else did, such as the context's cause; it is nil when only
	// Config.MaxDrops ended the run.
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

// count returns how many of the tried tables have the verdict.
func (r Report) count(v Verdict) (n int) {
	for i := range r.Tables {
		if r.Tables[i].Verdict == v {
			n++
		}
	}
	return n
}

// String returns the report on one line, for people.
func (r Report) String() string {
	var did []string
	say := func(n int64, noun, verb string) {
		if n > 0 {
			did = append(did, count(n, noun)+" "+verb)
		}
	}
	say(int64(r.count(VerdictDropped)), "table", "dropped")
	if r.BytesFreed > 0 {
		did = append(did, size(r.BytesFreed)+" freed")
	}
	say(int64(r.count(VerdictKept)), "table", "kept")
	say(int64(r.count(VerdictFailed)), "table", "failed")
	say(r.RowsDetached, "message", "detached")
	say(r.RowsPruned, "message", "pruned")
	say(int64(r.Repaired), "place", "repaired")
	if r.Stopped != "" {
		did = append(did, "stopped: "+strings.Join(strings.Fields(r.Stopped), " "))
	}
	line := fmt.Sprintf("%s: %s after %s", r.Name, strings.ReplaceAll(string(r.Outcome), "_", " "), r.Took.Round(time.Millisecond))
	return strings.Join(append([]string{line}, did...), ", ")
}

// LogValue returns the report's figures, without its plan.
func (r Report) LogValue() slog.Value {
	return slog.GroupValue(
		slog.String("name", r.Name),
		slog.String("outcome", string(r.Outcome)),
		slog.Duration("took", r.Took),
		slog.Int("dropped", r.count(VerdictDropped)),
		slog.Int("kept", r.count(VerdictKept)),
		slog.Int("failed", r.count(VerdictFailed)),
		slog.Int("repaired", r.Repaired),
		slog.Int64("rows_detached", r.RowsDetached),
		slog.Int64("rows_pruned", r.RowsPruned),
		slog.Int64("bytes_freed", r.BytesFreed),
		slog.String("stopped", r.Stopped),
	)
}
