package main

import (
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
)

const (
	bold  = "\x1b[1m"
	red   = "\x1b[31m"
	green = "\x1b[32m"
	plain = "\x1b[0m"
	clear = "\r\x1b[K"
)

// screen prints for people: with colour and a live line on a terminal, plain text elsewhere.
type screen struct {
	mu       sync.Mutex
	out      io.Writer
	terminal bool
	live     bool // the present line is to be written over
	steps    int
}

func newScreen(out io.Writer) *screen {
	return &screen{out: out, terminal: isTerminal(out)}
}

func isTerminal(out io.Writer) bool {
	file, ok := out.(*os.File)
	if !ok || os.Getenv("NO_COLOR") != "" || os.Getenv("TERM") == "dumb" || os.Getenv("TERM") == "" {
		return false
	}
	info, err := file.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}

func (s *screen) step(title string) {
	s.steps++
	s.linef("\n%s", s.paint(bold, fmt.Sprintf("%d. %s", s.steps, title)))
}

func (s *screen) linef(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.live {
		fmt.Fprint(s.out, clear)
		s.live = false
	}
	fmt.Fprintf(s.out, format+"\n", args...)
}

// livef writes over the present line; where there is no terminal it is silent.
func (s *screen) livef(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.terminal {
		fmt.Fprintf(s.out, clear+format, args...)
		s.live = true
	}
}

func (s *screen) paint(colour, text string) string {
	if !s.terminal {
		return text
	}
	return colour + text + plain
}

// plan prints a plan with its verdicts in colour.
func (s *screen) plan(text string) {
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\n")
		switch {
		case strings.Contains(line, " drop "):
			line = s.paint(red, line)
		case strings.Contains(line, " keep "):
			line = s.paint(green, line)
		}
		s.linef("%s", line)
	}
}
