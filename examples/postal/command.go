package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// surroundings are what a command sees of the world.
type surroundings struct {
	in        io.Reader
	out, err  io.Writer
	lookupEnv func(string) (string, bool)
	terminal  bool // a person sits there
}

// failure ends a command with a status of its own.
type failure struct {
	status int
	err    error // nil: all is said
}

func (f *failure) Error() string {
	if f.err == nil {
		return fmt.Sprintf("exit status %d", f.status)
	}
	return f.err.Error()
}

func (f *failure) Unwrap() error { return f.err }

// execute runs the command that args say and returns the exit status.
func execute(ctx context.Context, world surroundings, args []string) int {
	command := newCommand(world)
	command.SetArgs(args)
	err := command.ExecuteContext(ctx)
	if err == nil {
		return exitDone
	}
	f, ok := errors.AsType[*failure](err)
	if !ok {
		f = &failure{status: exitFailed, err: err}
	}
	if f.err != nil {
		fmt.Fprintln(world.err, "postal-retention:", printable(f.err.Error()))
	}
	return f.status
}

func newCommand(world surroundings) *cobra.Command {
	root := &cobra.Command{
		Use:   "postal-retention",
		Short: "Keeps Postal's message databases inside the limits that are set in Postal, safely",
		Long: "Keeps Postal's message databases inside the limits that are set in Postal, safely.\n\n" +
			"Where they are is taken from the flags --main-db-… and --message-db-…, else from Postal's environment variables\n" +
			"(MAIN_DB_HOST and so on), else from postal.yml, else it is as Postal has it when nothing is set.\n\n" +
			"Exit status: 0 done; 1 nothing was begun; 2 partly; 3 refused, a person should look; 4 held by another run.",
		SilenceErrors: true,
		SilenceUsage:  true,
	}
	root.SetIn(world.in)
	root.SetOut(world.out)
	root.SetErr(world.err)
	root.CompletionOptions.HiddenDefaultCmd = true
	root.SetFlagErrorFunc(flagError)
	addSettingFlags(root.PersistentFlags())
	root.AddCommand(planCommand(world), runCommand(world), leasesCommand(world), checkCommand(world))
	return root
}

// flagError leaves out what follows an unknown short flag: "-psecret" is how other tools take a password.
func flagError(c *cobra.Command, err error) error {
	if unknown, ok := errors.AsType[*pflag.NotExistError](err); ok && unknown.GetSpecifiedShortnames() != "" {
		return fmt.Errorf("unknown flag -%s; see %s --help", unknown.GetSpecifiedName(), c.CommandPath())
	}
	return fmt.Errorf("%w; see %s --help", err, c.CommandPath())
}

// withFleet checks the flags, connects, and calls do.
func withFleet(c *cobra.Command, world surroundings, o options, do func(*fleet) error) (err error) {
	in, faults := readInstallation(c.Flags(), world.lookupEnv)
	if err := errors.Join(o.check(), faults); err != nil {
		return err
	}
	f, err := openFleet(c.Context(), in, o, newLogger(world, o))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.close()) }()
	return do(f)
}

// newLogger logs to the standard error: to a person what needs a look, elsewhere, as in a journal, each run too.
func newLogger(world surroundings, o options) *slog.Logger {
	level := slog.LevelInfo
	if world.terminal {
		level = slog.LevelWarn
	}
	if o.verbose {
		level = slog.LevelDebug
	}
	return slog.New(slog.NewTextHandler(world.err, &slog.HandlerOptions{Level: level}))
}
