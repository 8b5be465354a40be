package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
)

func planCommand(world surroundings) *cobra.Command {
	o := defaultOptions()
	c := &cobra.Command{
		Use:   "plan",
		Short: "Show what a run would delete, and why; changes nothing",
		Args:  cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			return withFleet(c, world, o, func(f *fleet) error {
				results := f.plan(c.Context())
				return finish(exitStatus(results), world.show(f, results, newAnswer(f, results), func(w io.Writer) { writePlans(w, f, results) }))
			})
		},
	}
	o.addCommon(c.Flags())
	o.addPlan(c.Flags())
	return c
}

// writePlans writes the plans for people.
func writePlans(w io.Writer, f *fleet, results []result) {
	for _, r := range results {
		fmt.Fprintf(w, "== %s, database %s\n", r.Server, r.Server.Database)
		if !r.Plan.Now.IsZero() {
			fmt.Fprintln(w, indent(r.Plan.String()))
		}
		writeError(w, r)
		fmt.Fprintln(w)
	}
	fmt.Fprintln(w, sumPlans(results).sentence(f))
}

func indent(text string) string {
	return "  " + strings.ReplaceAll(text, "\n", "\n  ")
}

// writeError writes why a result is not good, unless its report says it, and what to do.
func writeError(w io.Writer, r result) {
	if r.err != nil && (r.Report == nil || r.Report.Stopped != r.err.Error()) {
		fmt.Fprintln(w, indent(fmt.Sprintf("%s: %v", r.outcome(), r.err)))
	}
	if advice := r.advise(); advice != "" {
		fmt.Fprintln(w, "  →", advice)
	}
}

// planSum adds up plans.
type planSum struct {
	servers, tables, cuts, broken int
	bytes                         int64
}

func sumPlans(results []result) planSum {
	var sum planSum
	for _, r := range results {
		sum.servers++
		if r.err != nil {
			sum.broken++
			continue
		}
		sum.tables += len(r.Plan.Drops)
		sum.bytes += r.Plan.Bytes - r.Plan.BytesAfter
		if r.Plan.MessageCut != nil {
			sum.cuts++
		}
	}
	return sum
}

func (s planSum) sentence(f *fleet) string {
	text := fmt.Sprintf("%s: %s would go (%s)", count(s.servers, "server"), count(s.tables, "raw table"), size(s.bytes))
	if s.cuts > 0 {
		text += fmt.Sprintf(", and the old messages of %s", count(s.cuts, "server"))
	}
	if s.broken > 0 {
		text += fmt.Sprintf("; nothing of %s (failed or refused)", count(s.broken, "server"))
	}
	if f.deleted() > 0 {
		text += fmt.Sprintf("; skipped %s that Postal is about to destroy", count(f.deleted(), "deleted server"))
	}
	return text + "."
}
