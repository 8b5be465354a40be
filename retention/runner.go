package retention

import (
	"context"
	"errors"
	"iter"
	"log/slog"
	"time"
)

// Config says what a [Runner] does. Name alone is required.
type Config struct {
	Name   string // the mail server's; the lease is "retention/" + Name
	Policy Policy // the zero Policy deletes nothing
	// Holds gives more legal holds than the policy's. It is asked for the plan, before each table, before and
	// during pruning. An error, or a hold that is not valid, protects everything: [ErrRefused].
	Holds    func(ctx context.Context) ([]Hold, error)
	Locker   Locker        // nil: safe but wasteful when two run at once
	MaxDrops int           // most tables one run drops, oldest first; 0: no bound. Messages are pruned all the same
	MaxSkew  time.Duration // most that the database's clock may differ from the local one; beyond it: [ErrSuspectClock]; 0 means 1 hour
	OnEvent  func(Event)   // called for each step; it holds up the run while it works
	Logger   *slog.Logger  // nil: discard
}

// Runner keeps one mail server's message database inside its policy. It may be used by several goroutines.
type Runner struct {
	store Store
	cfg   Config
}

// New checks cfg, so that a bad policy shows at start-up, not at night: the error joins all faults.
func New(store Store, cfg Config) (*Runner, error) {
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	return &Runner{store: store, cfg: cfg}, nil
}

var errUnbuilt = errors.New("retention: not built yet")

// Plan is the preview of a run: it reads only and takes no lease.
func (r *Runner) Plan(ctx context.Context) (Plan, error) { return Plan{}, errUnbuilt }

// Run does one run. The Report is valid beside an error.
func (r *Runner) Run(ctx context.Context) (Report, error) { return Report{}, errUnbuilt }

// Run is [New] and [Runner.Run] in one.
func Run(ctx context.Context, store Store, cfg Config) (Report, error) {
	r, err := New(store, cfg)
	if err != nil {
		return Report{Name: cfg.Name, Outcome: OutcomeFailed}, err
	}
	return r.Run(ctx)
}

// RunAll runs many.
func RunAll(ctx context.Context, runners iter.Seq[*Runner], parallel int, each func(Report, error)) error {
	return errUnbuilt
}

func (r Report) String() string { return "" }

// LogValue returns the report's figures.
func (r Report) LogValue() slog.Value { return slog.Value{} }
