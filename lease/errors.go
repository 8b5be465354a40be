package lease

import (
	"errors"
	"fmt"
	"time"

	"github.com/mailretention/mailretention/internal/mysqlerr"
)

var (
	// ErrHeld matches each [*HeldError]: another holds the lease, or it rests. Nothing is wrong.
	ErrHeld = errors.New("lease: held")
	// ErrLost matches each [*LostError]: the lease can't be trusted any more, so its work must stop.
	ErrLost = errors.New("lease: lost")
	// ErrNotProvisioned means that the lease table doesn't exist: call [Leases.Provision].
	ErrNotProvisioned = errors.New("lease: the table doesn't exist")
	// ErrSchemaMismatch means that a table of that name exists but has another shape.
	ErrSchemaMismatch = errors.New("lease: the table has another shape")
)

// HeldError says who has the lease. Active: another holds it, or held it and its expiry isn't certain yet.
// Not Active: it rests until NotBefore, see [Config.MinHold].
type HeldError struct {
	Info
	Retry time.Time // when to come back, by the local clock, in UTC

	dead bool   // looks as if nobody renewed it any more
	seq  uint64 // changes with each sign of life
}

func (e *HeldError) Error() string {
	if !e.Active {
		return fmt.Sprintf("lease %q rests until %s after work of %s", e.Name, e.NotBefore.Format(time.RFC3339), e.Owner)
	}
	return fmt.Sprintf("lease %q is held by %s since %s, until %s unless renewed",
		e.Name, e.Owner, e.Since.Format(time.RFC3339), e.Expires.Format(time.RFC3339))
}

// Is makes every HeldError match [ErrHeld].
func (e *HeldError) Is(target error) bool { return target == ErrHeld }

// Held is true. It lets packages that don't import this one recognise the error.
func (e *HeldError) Held() bool { return true }

// LostReason says why a lease can't be trusted any more.
type LostReason string

// The reasons.
const (
	LostStolen    LostReason = "stolen"    // another acquired it
	LostUnrenewed LostReason = "unrenewed" // no renewal succeeded in time
	LostMaxHold   LostReason = "max hold"  // the work took longer than Config.MaxHold
	LostForced    LostReason = "forced"    // ForceRelease revoked it
	LostReleased  LostReason = "released"  // it was released
)

// LostError says why a lease was lost.
type LostError struct {
	Name   string
	Reason LostReason
	By     string // whose it was when this was found out, if that is known
	Err    error  // what kept it from being renewed, if anything did
}

func (e *LostError) Error() string {
	s := fmt.Sprintf("lease %q is lost: %s", e.Name, e.Reason)
	if e.By != "" {
		s += " by " + e.By
	}
	if e.Err != nil {
		s += ": " + e.Err.Error()
	}
	return s
}

// Is makes every LostError match [ErrLost].
func (e *LostError) Is(target error) bool { return target == ErrLost }

// Unwrap returns what kept the lease from being renewed.
func (e *LostError) Unwrap() error { return e.Err }

// explain adds to an error of a statement what to do about it.
func (t table) explain(err error) error {
	switch {
	case err == nil || errors.Is(err, ErrSchemaMismatch):
		return err
	case mysqlerr.Is(err, mysqlerr.BadDatabase):
		return fmt.Errorf("%w: create the database of %s, then call Leases.Provision: %w", ErrNotProvisioned, t, err)
	case mysqlerr.Is(err, mysqlerr.NoSuchTable):
		return fmt.Errorf("%w: call Leases.Provision once to create %s: %w", ErrNotProvisioned, t, err)
	case mysqlerr.Is(err, mysqlerr.TableDenied, mysqlerr.ColumnDenied, mysqlerr.DatabaseDenied):
		return fmt.Errorf("lease: the account needs SELECT, INSERT and UPDATE on %s, and CREATE to provision it: %w", t, err)
	case mysqlerr.Is(err, mysqlerr.UnknownColumn):
		return fmt.Errorf("%w: %s: %w", ErrSchemaMismatch, t, err)
	}
	return fmt.Errorf("lease: %w", err)
}

// transient reports whether the same may succeed a little later.
func transient(err error) bool {
	if err == nil || errors.Is(err, ErrLost) || errors.Is(err, ErrHeld) {
		return false
	}
	if errors.Is(err, errRaced) {
		return true
	}
	switch mysqlerr.Classify(err) {
	case mysqlerr.Retry, mysqlerr.Busy, mysqlerr.NotWritable, mysqlerr.BackOff, mysqlerr.Ambiguous:
		return true
	}
	return false
}
