// Plot draws the waits of the benchmark's client over time, beside our run and beside Postal's statements, from the file
// that the benchmark's flag -samples names:
//
//	go run ./internal/benchmark/plot samples.csv >.github/images/latency.svg
package main

import (
	"bufio"
	"fmt"
	"io"
	"os"
)

func main() {
	if err := run(os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(args []string, to io.Writer) error {
	if len(args) != 1 {
		return fmt.Errorf("usage: plot FILE, the one that the benchmark's flag -samples names")
	}
	f, err := os.Open(args[0])
	if err != nil {
		return err
	}
	defer f.Close()
	recorded, err := read(f)
	if err != nil {
		return fmt.Errorf("%s: %w", args[0], err)
	}
	out := bufio.NewWriter(to)
	draw(out, recorded)
	return out.Flush()
}
