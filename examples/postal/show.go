package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
)

// answer is what --json writes.
type answer struct {
	Servers    []result `json:"servers"`
	Deleted    int      `json:"deleted_servers"` // skipped: Postal is about to destroy them
	ExitStatus int      `json:"exit_status"`
}

func newAnswer(f *fleet, results []result) answer {
	a := answer{Servers: make([]result, 0, len(results)), Deleted: f.deleted(), ExitStatus: exitStatus(results)}
	for _, r := range results {
		a.Servers = append(a.Servers, r.told())
	}
	return a
}

// show writes the page, if there is to be one, and the JSON or what write writes for people.
func (world surroundings) show(f *fleet, results []result, document any, write func(io.Writer)) error {
	var err error
	if f.options.html != "" {
		err = writePage(f.options.html, f, results)
	}
	if f.options.json {
		return errors.Join(err, world.writeJSON(document))
	}
	writeText(world.out, write)
	return err
}

// writeText leaves out what a terminal would obey, in names that others have chosen.
func writeText(w io.Writer, write func(io.Writer)) {
	var text strings.Builder
	write(&text)
	io.WriteString(w, printable(text.String()))
}

// finish turns the exit status, and what failed in showing the results, into what ends the command.
func finish(status int, err error) error {
	if err != nil {
		return &failure{status: max(status, exitFailed), err: err}
	}
	if status != exitDone {
		return &failure{status: status}
	}
	return nil
}

func (world surroundings) writeJSON(v any) error {
	encoder := json.NewEncoder(world.out)
	encoder.SetIndent("", "  ")
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(v); err != nil {
		return fmt.Errorf("write JSON: %w", err)
	}
	return nil
}

// ask asks a question that nothing but yes answers. Its error says that nothing was done.
func (world surroundings) ask(ctx context.Context, question string) error {
	fmt.Fprint(world.err, question)
	answers := make(chan string, 1)
	go func() { // ends with the process at the latest: a read from a terminal can't be called off
		line, _ := bufio.NewReader(world.in).ReadString('\n') // without a line it is no yes
		answers <- strings.TrimSpace(line)
	}()
	select {
	case <-ctx.Done():
		return fmt.Errorf("nothing was done: %w", context.Cause(ctx))
	case line := <-answers:
		if line != "yes" {
			return errors.New("nothing was done")
		}
		return nil
	}
}
