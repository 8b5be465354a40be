package main

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"regexp"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mailretention/mailretention/internal/mysqltest"
	"github.com/mailretention/mailretention/retention"
)

const programVariable = "MAILRETENTION_SMTP_PROGRAM" // set: this binary is the program, not its test

func TestMain(m *testing.M) {
	if os.Getenv(programVariable) != "" {
		main()
		return
	}
	mysqltest.Main(m)
}

// Clients send as fast as they can when the program is killed. Each mail that it said yes to must arrive.
func TestACrashLosesNoAcceptedMail(t *testing.T) {
	const before, clients = 40, 4 // mails accepted before the crash, by that many clients
	s := newSite(t, retention.Policy{})
	out := newLines()
	program := exec.CommandContext(t.Context(), os.Args[0],
		"-dsn", mysqltest.DSN(t, ""), "-database", s.name, "-sink", s.instances[0].Sink, "-port", "0", "-every", "1h")
	program.Env = append(os.Environ(), programVariable+"=1")
	program.Stdout = out
	require.NoError(t, program.Start())
	addresses := []string{out.address(t), out.address(t)}

	var lock sync.Mutex
	var accepted []string
	var sending sync.WaitGroup
	for client := range clients {
		sending.Go(func() {
			for i := 0; ; i++ {
				mail := compose(fmt.Sprintf("client %d mail %d", client, i), 3_000)
				if send(addresses[client%2], mail, willing) != nil {
					return // it is dead
				}
				lock.Lock()
				if accepted = append(accepted, mail); len(accepted) == before {
					_ = program.Process.Kill()
				}
				lock.Unlock()
			}
		})
	}
	sending.Wait()
	require.Error(t, program.Wait(), "it was killed")
	require.GreaterOrEqual(t, len(accepted), before)

	// The server may still be rolling back what the dead had locked.
	require.Eventually(t, func() bool {
		s.deliver(t)
		return s.count(t, "SELECT COUNT(*) FROM queue") == 0
	}, 20*time.Second, 10*time.Millisecond)
	for _, mail := range accepted {
		require.Positive(t, s.sink.count(willing, mail))
	}
}

// lines is a writer whose lines can be waited for.
type lines struct {
	*io.PipeWriter
	read *bufio.Scanner
}

func newLines() *lines {
	r, w := io.Pipe()
	return &lines{PipeWriter: w, read: bufio.NewScanner(r)}
}

// address returns where the next instance that says so receives.
func (l *lines) address(t *testing.T) string {
	t.Helper()
	for l.read.Scan() {
		if found := regexp.MustCompile(`receives on (\S+);`).FindStringSubmatch(l.read.Text()); found != nil {
			return found[1]
		}
	}
	t.Fatal("the program ended")
	return ""
}
