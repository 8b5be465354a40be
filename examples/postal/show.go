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

// show writes the results as the flags say.
func (world surroundings) show(f *fleet, results []result, write func(io.Writer, *fleet, []result)) error {
	var err error
	if f.options.html != "" {
		err = writePage(f.options.html, f, results)
	}
	if f.options.json {
		return errors.Join(err, world.writeJSON(answer{Servers: told(results), Deleted: f.deleted(), ExitStatus: exitStatus(results)}))
	}
	write(world.out, f, results)
	return err
}

// finish turns the results, and what failed in showing them, into what ends the command.
func finish(results []result, err error) error {
	status := exitStatus(results)
	if err != nil {
		return &failure{status: max(status, exitFailed), err: err}
	}
	if status != exitDone {
		return &failure{status: status}
	}
	return nil
}

func told(results []result) []result {
	texts := make([]result, 0, len(results))
	for _, r := range results {
		texts = append(texts, r.told())
	}
	return texts
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
