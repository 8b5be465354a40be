package retention

import (
	"errors"
	"fmt"
)

// What a [Store], a [Locker] and a run report. Match them with [errors.Is].
var (
	// ErrHeld: another has the lease. Nothing was done; the holder does the work, or a later run does.
	ErrHeld = errors.New("retention: held by another")
	// ErrInUse: since the plan a message turned out to be still needed, or a legal hold was given. The table is
	// kept, not failed.
	ErrInUse = errors.New("retention: in use")
	// ErrStop concerns the whole database, not one table: its run ends.
	ErrStop = errors.New("retention: stop")
	// ErrRefused: nothing may go now, and a person should look why.
	ErrRefused = errors.New("retention: refused")

	// ErrSuspectClock: the database's clock and the local one differ by more than Config.MaxSkew, or the
	// database's clock can't be right. It matches ErrRefused. Set the clock that is wrong.
	ErrSuspectClock = fmt.Errorf("%w: suspect clock", ErrRefused)
	// ErrWouldEmpty: the plan leaves next to nothing, as after a clock that jumped or a long outage.
	// It matches ErrRefused. Look at the plan, then set Policy.AllowEmpty for one run if it is right.
	ErrWouldEmpty = fmt.Errorf("%w: would empty", ErrRefused)
	// ErrBadPolicy: a policy whose faults [Policy.Validate] lists. It matches ErrRefused.
	ErrBadPolicy = fmt.Errorf("%w: bad policy", ErrRefused)
)

// TableError is the failure of one table. The error of [Runner.Run] joins one for each table that failed.
type TableError struct {
	Table string
	Err   error // never nil
}

func (e *TableError) Error() string { return e.Table + ": " + e.Err.Error() }

func (e *TableError) Unwrap() error { return e.Err }
