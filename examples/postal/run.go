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
	var shown []result
	if world.terminal && !f.options.yes {
		shown = f.plan(ctx)
		writeText(world.err, func(w io.Writer) { writePlans(w, f, shown) })
		if err := world.ask(ctx, "Carry this out? Type yes: "); err != nil {
			return err
		}
	}
	if err := f.provisionLeases(ctx); err != nil {
		return fmt.Errorf("leases: %w; see check", err)
	}
	results := f.run(ctx, world, shown)
	err := world.show(f, results, newAnswer(f, results), func(w io.Writer) { writeReports(w, results) })
	if f.options.metricsFile != "" {
		err = errors.Join(err, writeMetrics(f.options.metricsFile, f.all, results, time.Now()))
	}
	return finish(exitStatus(results), err)
}

// run runs retention for each server, planning anew under its lease. Each has a result, in the servers' order. Of what was
// shown to a person, nil if to none, a server whose plan failed is left out: its plan was not seen.
func (f *fleet) run(ctx context.Context, world surroundings, shown []result) []result {
	bars := newProgress(world.err, len(f.servers))
	defer bars.end()
	results := make([]result, len(f.servers))
	index := map[string]int{}
	runners := make([]*retention.Runner, 0, len(f.servers))
	for i, s := range f.servers {
		if shown != nil && shown[i].err != nil {
			results[i] = shown[i]
			continue
		}
		results[i] = result{Server: s, err: errNotBegun}
		index[s.Database] = i
		runner, err := f.runner(s, bars.of(s, f.options.maxDrops))
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
func writeReports(w io.Writer, results []result) {
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
	done, other, dropped int
	freed, messages      int64
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
			if t.Verdict == retention.VerdictDropped {
				sum.dropped++
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
