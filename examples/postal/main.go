// Command postal keeps the message databases of a Postal installation inside the limits that are set in Postal.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"golang.org/x/term"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal ends the process at once
	status := execute(ctx, surroundings{
		in:        os.Stdin,
		out:       os.Stdout,
		err:       os.Stderr,
		lookupEnv: os.LookupEnv,
		terminal:  term.IsTerminal(int(os.Stdin.Fd())), // also where the output goes to a file: a person is asked rather than not
	}, os.Args[1:])
	stop()
	os.Exit(status)
}
