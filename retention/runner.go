package retention

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"
)

const (
	leasePrefix = "retention/"
	defaultSkew = time.Hour
)

// Config says what a [Runner] does. Name alone is required.
type Config struct {
	Name   string // the mail server's; the lease is "retention/" + Name
	Policy Policy // the zero Policy deletes nothing
	// Holds gives more legal holds than the policy's. It is asked for the plan, before each table, before and
	// during pruning, so it should be quick. An error, or a hold that is not valid, protects everything: [ErrRefused].
	Holds    func(ctx context.Context) ([]Hold, error)
	Locker   Locker        // nil: safe but wasteful when two run at once
	MaxDrops int           // most tables one run drops, oldest first; messages are pruned all the same; 0: no bound
	MaxSkew  time.Duration // database clock against local clock; beyond it: [ErrSuspectClock]; 0 means 1 hour
	OnEvent  func(Event)   // called for each step; the run waits for it
	Logger   *slog.Logger  // nil: discard
}

// Runner keeps one mail server's message database inside its policy. It may be used by several goroutines.
type Runner struct {
	store Store
	cfg   Config
}

// New checks cfg, so that a bad policy shows at start-up, not at night. The error joins all faults; that of a bad
// policy matches [ErrBadPolicy].
func New(store Store, cfg Config) (*Runner, error) {
	var faults []error
	if store == nil {
		faults = append(faults, errors.New("retention: the store is nil: give one, such as a *provisioner.Provisioner"))
	}
	if cfg.Name == "" {
		faults = append(faults, errors.New(`retention: Name is "": give the mail server's name, which names the lease`))
	}
	if cfg.MaxDrops < 0 {
		faults = append(faults, fmt.Errorf("retention: MaxDrops is %d: it must not be negative; 0 means no bound", cfg.MaxDrops))
	}
	if cfg.MaxSkew < 0 {
		faults = append(faults, fmt.Errorf("retention: MaxSkew is %s: it must not be negative; 0 means %s", cfg.MaxSkew, defaultSkew))
	}
	if err := errors.Join(append(faults, cfg.Policy.Validate())...); err != nil {
		return nil, err
	}
	return newRunner(store, cfg), nil
}

func newRunner(store Store, cfg Config) *Runner {
	cfg.MaxSkew = cmp.Or(cfg.MaxSkew, defaultSkew)
	cfg.Logger = cmp.Or(cfg.Logger, slog.New(slog.DiscardHandler))
	return &Runner{store: store, cfg: cfg}
}

// Run is [New] and [Runner.Run] in one.
func Run(ctx context.Context, store Store, cfg Config) (Report, error) {
	r, err := New(store, cfg)
	if err != nil {
		return newRun(newRunner(store, cfg)).finish(err), err
	}
	return r.Run(ctx)
}

// Plan is the preview of a run: it reads only and takes no lease. Beside an error that matches [ErrRefused] the
// plan is there to be read, unless the inventory itself failed.
func (r *Runner) Plan(ctx context.Context) (Plan, error) {
	inv, skew, err := r.read(ctx)
	if err != nil {
		return Plan{}, ended(ctx, err)
	}
	plan, err := r.plan(ctx, inv, skew)
	return plan, ended(ctx, err)
}

// read returns the inventory and by how much, at least, the database's clock differs from the local one.
func (r *Runner) read(ctx context.Context) (inv Inventory, skew time.Duration, err error) {
	before := time.Now()
	inv, err = r.store.Inventory(ctx)
	if err != nil {
		return Inventory{}, 0, fmt.Errorf("retention: inventory: %w", err)
	}
	after := time.Now()
	switch {
	case inv.Now.Before(before):
		skew = before.Sub(inv.Now)
	case inv.Now.After(after):
		skew = inv.Now.Sub(after)
	}
	return inv, skew, nil
}

func (r *Runner) plan(ctx context.Context, inv Inventory, skew time.Duration) (Plan, error) {
	var suspect error
	if skew > r.cfg.MaxSkew {
		suspect = fmt.Errorf("%w: the database's and the local one differ by %s", ErrSuspectClock, skew.Round(time.Millisecond))
	}
	policy := r.cfg.Policy
	holds, unreadable := r.holds(ctx)
	policy.Holds = slices.Concat(policy.Holds, holds)
	plan, refused := policy.Plan(inv)
	return plan, errors.Join(suspect, unreadable, refused)
}

// holds asks for more holds. Beside an error it returns one over all days, so that a plan made with it drops nothing.
func (r *Runner) holds(ctx context.Context) ([]Hold, error) {
	if r.cfg.Holds == nil {
		return nil, nil
	}
	holds, err := r.cfg.Holds(ctx)
	if err = cmp.Or(err, checkHolds(holds)); err != nil {
		return []Hold{{Reason: "the legal holds can't be read"}}, fmt.Errorf("%w: legal holds: %w", ErrRefused, err)
	}
	return holds, nil
}
