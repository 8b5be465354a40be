package main

import (
	"errors"

	"github.com/mailretention/mailretention/internal/mysqlerr"
	"github.com/mailretention/mailretention/provisioner"
	"github.com/mailretention/mailretention/retention"
)

// result is what became of one server: its plan, and after a run the report.
type result struct {
	Server server            `json:"server"`
	Plan   retention.Plan    `json:"plan,omitzero"`
	Report *retention.Report `json:"report,omitempty"` // nil: only planned, or not begun
	Error  string            `json:"error"`            // "" if there is none
	Advice string            `json:"advice"`           // what to do about it
	err    error
}

// outcome is the run's, or for a plan what a run would come to.
func (r result) outcome() retention.Outcome {
	switch {
	case r.Report != nil:
		return r.Report.Outcome
	case errors.Is(r.err, retention.ErrRefused):
		return retention.OutcomeRefused
	case r.err != nil:
		return retention.OutcomeFailed
	}
	return retention.OutcomeDone
}

// The exit statuses.
const (
	exitDone    = 0
	exitFailed  = 1 // before anything was begun
	exitPartly  = 2
	exitRefused = 3
	exitHeld    = 4
)

// exitStatus says what matters most of all servers: that a person must look, that a later run must finish, that another
// does the work.
func exitStatus(results []result) int {
	found := map[retention.Outcome]bool{}
	for _, r := range results {
		found[r.outcome()] = true
	}
	switch {
	case found[retention.OutcomeRefused]:
		return exitRefused
	case found[retention.OutcomePartial], found[retention.OutcomeFailed]:
		return exitPartly
	case found[retention.OutcomeHeld]:
		return exitHeld
	}
	return exitDone
}

// advise says what to do about the result; "" if nothing is to be done.
func (r result) advise() string {
	name := r.Server.path()
	switch {
	case errors.Is(r.err, retention.ErrWouldEmpty):
		return "look at the clock and at the plan; if it is right: run --server " + name + " --allow-empty"
	case errors.Is(r.err, retention.ErrSuspectClock):
		return "compare the clocks with check, set the one that is wrong, then run again"
	case errors.Is(r.err, retention.ErrBadPolicy):
		return "correct the limits in Postal: the server's settings, Retention"
	case errors.Is(r.err, provisioner.ErrNotProvisioned):
		return "is message_db.database_name_prefix right, and the message databases' server?"
	case errors.Is(r.err, provisioner.ErrSchemaMismatch):
		return "the error says which columns differ: alter the table to fit, or drop it by hand if it is not needed"
	case mysqlerr.Is(r.err, mysqlerr.DatabaseDenied, mysqlerr.TableDenied, mysqlerr.ColumnDenied, mysqlerr.AccessDenied):
		return "check says which rights are missing, with the GRANT statements"
	case errors.Is(r.err, retention.ErrRefused):
		return "nothing goes while this is so; run again when it is mended"
	case r.outcome() == retention.OutcomeHeld:
		return "another run does it; leases says which"
	case r.outcome() == retention.OutcomePartial, errors.Is(r.err, errNotBegun):
		return "run again: what is left is taken up where it ended"
	case r.err != nil:
		return "run again when it is mended; the other servers are not concerned"
	}
	return ""
}

// told is the result with its error and the advice as text.
func (r result) told() result {
	if r.err != nil {
		r.Error = r.err.Error()
	}
	r.Advice = r.advise()
	return r
}
