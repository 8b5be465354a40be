package retention

import (
	"context"
	"log/slog"
	"time"
)

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

// emit tells of a step: to the log, then to OnEvent.
func (x *run) emit(e Event) {
	x.report.Took = time.Since(x.began)
	e.Report = x.report
	x.log(e)
	if x.cfg.OnEvent != nil {
		x.cfg.OnEvent(e)
	}
}

func (x *run) log(e Event) {
	attrs := []slog.Attr{slog.String("mail_server", x.cfg.Name)}
	switch {
	case e.Kind == EventFinished:
		attrs = append(attrs, slog.Any("report", e.Report))
	case e.Kind == EventPlanned:
		attrs = append(attrs, slog.Int("drops", len(e.Report.Plan.Drops)), slog.Any("warnings", e.Report.Plan.Warnings))
	default:
		attrs = append(attrs, slog.String("table", e.Table), slog.Int64("rows", e.Rows), slog.Duration("took", e.Took))
	}
	if e.Err != nil {
		attrs = append(attrs, slog.Any("err", e.Err))
	}
	x.cfg.Logger.LogAttrs(context.Background(), level(e), "retention "+string(e.Kind), attrs...)
}

// level shows what was deleted or kept as information, and what a person should look at as a warning.
func level(e Event) slog.Level {
	switch {
	case e.Kind == EventBatch || e.Kind == EventDropping:
		return slog.LevelDebug
	case e.Kind == EventKept || e.Report.Outcome == OutcomeHeld:
		return slog.LevelInfo
	case e.Err != nil || len(e.Report.Plan.Warnings) > 0 && e.Kind == EventPlanned:
		return slog.LevelWarn
	}
	return slog.LevelInfo
}
