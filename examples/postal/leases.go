package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/mailretention/mailretention/lease"
)

func leasesCommand(world surroundings) *cobra.Command {
	o := defaultOptions()
	c := &cobra.Command{
		Use:   "leases",
		Short: "List the leases: who works on what",
		Args:  cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			return withFleet(c, world, o, func(f *fleet) error { return listLeases(c.Context(), world, f) })
		},
	}
	o.addCommon(c.PersistentFlags())
	release := &cobra.Command{
		Use:   "release NAME",
		Short: "Take a lease from its holder, whose work then stops",
		Long: "Take a lease from its holder, after showing it. The holder's next statement fails and its work stops; another run\n" +
			"gets the lease when it has expired.",
		Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			return withFleet(c, world, o, func(f *fleet) error { return releaseLease(c.Context(), world, f, args[0]) })
		},
	}
	release.Flags().BoolVarP(&o.yes, "yes", "y", false, "don't ask at a terminal")
	c.AddCommand(release)
	return c
}

func listLeases(ctx context.Context, world surroundings, f *fleet) error {
	infos, err := f.leases.List(ctx)
	if err != nil && !errors.Is(err, lease.ErrNotProvisioned) { // then there are none
		return fmt.Errorf("leases in %s: %w", f.leaseDatabase(), err)
	}
	if f.options.json {
		return world.writeJSON(infos)
	}
	if len(infos) == 0 {
		fmt.Fprintf(world.out, "No leases in database %s yet: nothing has run.\n", f.leaseDatabase())
		return nil
	}
	writeText(world.out, func(w io.Writer) { writeLeases(w, infos) })
	return nil
}

func writeLeases(w io.Writer, infos []lease.Info) {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "NAME\tSTATE\tHOLDER\tSINCE (UTC)\tTOKEN\tSTOLEN FROM")
	for _, i := range infos {
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%d\t%s\n", i.Name, leaseState(i, time.Now()), i.Owner, i.Since.Format(time.DateTime), i.Token, i.StolenFrom)
	}
	table.Flush()
}

func leaseState(i lease.Info, now time.Time) string {
	switch {
	case !i.Active:
		return "free"
	case i.Expires.After(now):
		return "held, expires in " + i.Expires.Sub(now).Round(time.Second).String()
	}
	return "expired, the next run takes it"
}

// releaseLease shows the lease and takes it from its holder.
func releaseLease(ctx context.Context, world surroundings, f *fleet, name string) error {
	info, err := f.leases.Inspect(ctx, name)
	if err != nil {
		return fmt.Errorf("leases in %s: %w", f.leaseDatabase(), err)
	}
	if info.Token == 0 {
		return fmt.Errorf("no lease %q; leases lists them", name)
	}
	writeText(world.err, func(w io.Writer) { writeLeases(w, []lease.Info{info}) })
	if !info.Active {
		fmt.Fprintln(world.err, "It is free, there is nothing to release.")
		return nil
	}
	if world.terminal && !f.options.yes {
		if err := world.ask(ctx, "Take it from its holder? Type yes: "); err != nil {
			return err
		}
	}
	if err := f.leases.ForceRelease(ctx, name, info.Token); err != nil {
		return fmt.Errorf("release %s: %w", name, err)
	}
	fmt.Fprintf(world.err, "Released. %s stops at its next statement; another run gets the lease once it has expired.\n", printable(info.Owner))
	return nil
}
