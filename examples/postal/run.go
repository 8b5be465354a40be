package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/mailretention/mailretention/retention"
)

func runCommand(world surroundings) *cobra.Command {
	o := defaultOptions()
	c := &cobra.Command{
		Use:   "run",
		Short: "Delete what the limits in Postal say",
		Long: "Delete what the limits in Postal say, server by server.\n\n" +
			"At a terminal the plan is shown first and a question asked, unless --yes is given.\n" +
			"SIGTERM and ^C end a run after the statement that it is at; what is left is for the next run.",
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			return withFleet(c, world, o, func(f *fleet) error { return runAll(c.Context(), world, f) })
		},
	}
	o.addCommon(c.Flags())
	o.addPlan(c.Flags())
	o.addRun(c.Flags())
	return c
}

func runAll(ctx context.Context, world surroundings, f *fleet) error {
	if world.terminal && !f.options.yes {
		if err := world.confirm(ctx, f); err != nil {
			return err
		}
	}
	if err := f.provisionLeases(ctx); err != nil {
		return fmt.Errorf("leases: %w; see check", err)
	}
	results := f.run(ctx, world)
	err := world.show(f, results, writeReports)
	if f.options.metricsFile != "" {
		err = errors.Join(err, writeMetrics(f.options.metricsFile, f.all, results, time.Now()))
	}
	return finish(results, err)
}

// confirm shows the plan and asks. The run plans anew, under its lease; a plan that is refused here is refused there.
func (world surroundings) confirm(ctx context.Context, f *fleet) error {
	results := f.plan(ctx)
	writePlans(world.err, f, results)
	if sum := sumPlans(results); sum.tables == 0 && sum.cuts == 0 {
		return nil // it mends the books at most
	}
	return world.ask(ctx, "Delete this? Type yes: ")
}

// run runs retention for each server. Each has a result, in the servers' order.
func (f *fleet) run(ctx context.Context, world surroundings) []result {
	shown := newProgress(world.err, len(f.servers))
	defer shown.end()
	results := make([]result, len(f.servers))
	index := map[string]int{}
	runners := make([]*retention.Runner, 0, len(f.servers))
	for i, s := range f.servers {
		results[i] = result{Server: s, err: errNotBegun}
		index[s.Database] = i
		runner, err := f.runner(s, shown.of(s, f.options.maxDrops))
		if err != nil {
			results[i].err = err
			continue
		}
		runners = append(runners, runner)
	}
	ended := retention.RunAll(ctx, slices.Values(runners), f.options.parallel, func(report retention.Report, err error) {
		if r := &results[index[report.Name]]; ctx.Err() == nil || report.Outcome != retention.OutcomeFailed {
			r.Report, r.Plan, r.err = &report, report.Plan, err
		}
	})
	for i := range results {
		if results[i].err == errNotBegun && ended != nil {
			results[i].err = fmt.Errorf("%w: %w", errNotBegun, context.Cause(ctx))
		}
	}
	return results
}

// errNotBegun is of servers whose turn had not come when the run was ended.
var errNotBegun = errors.New("not begun")

// writeReports writes for people what a run did.
func writeReports(w io.Writer, f *fleet, results []result) {
	for _, r := range results {
		fmt.Fprintf(w, "== %s\n", r.Server)
		if r.Report != nil {
			fmt.Fprintln(w, indent(r.Report.String()))
			for _, warning := range r.Plan.Warnings {
				fmt.Fprintln(w, indent(warning))
			}
		}
		writeError(w, r)
	}
	fmt.Fprintln(w, sumReports(results).sentence())
}

// reportSum adds up reports.
type reportSum struct {
	done, other, dropped, failed int
	freed, messages              int64
	stopped                      string
}

func sumReports(results []result) reportSum {
	var sum reportSum
	for _, r := range results {
		if o := r.outcome(); o == retention.OutcomeDone || o == retention.OutcomeNothingToDo {
			sum.done++
		} else {
			sum.other++
		}
		if r.Report == nil {
			continue
		}
		sum.freed += r.Report.BytesFreed
		sum.messages += r.Report.RowsPruned
		for _, t := range r.Report.Tables {
			switch t.Verdict {
			case retention.VerdictDropped:
				sum.dropped++
			case retention.VerdictFailed:
				sum.failed++
			}
		}
	}
	return sum
}

func (s reportSum) sentence() string {
	text := fmt.Sprintf("Dropped %s (%s), deleted %s; %s done", count(s.dropped, "raw table"), size(s.freed), count(int(s.messages), "message"), count(s.done, "server"))
	if s.other > 0 {
		text += fmt.Sprintf(", %s not", count(s.other, "server"))
	}
	return text + "."
}
