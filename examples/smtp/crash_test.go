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
	program := exec.CommandContext(t.Context(), os.Args[0],
		"-dsn", mysqltest.DSN(t, ""), "-database", s.name, "-sink", s.instances[0].Sink, "-port", "0", "-every", "1h")
	program.Env = append(os.Environ(), programVariable+"=1")
	program.Stderr = os.Stderr
	output, err := program.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, program.Start())
	addresses := addresses(t, output)

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

// addresses returns where the program's instances receive, which is among the first lines that it prints.
func addresses(t *testing.T, output io.Reader) (all []string) {
	t.Helper()
	for lines := bufio.NewScanner(output); len(all) < instances && lines.Scan(); {
		if found := regexp.MustCompile(`receives on (\S+);`).FindStringSubmatch(lines.Text()); found != nil {
			all = append(all, found[1])
		}
	}
	require.Len(t, all, instances, "the program ended")
	return all
}
