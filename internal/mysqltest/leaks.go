package mysqltest

import (
	"runtime"
	"strings"
	"testing"
	"time"
)

const (
	leakTimeout = 5 * time.Second // goroutines that are about to end get this long
	leakPoll    = 5 * time.Millisecond
)

// NoLeaks fails the test if goroutines that began after this call are still there at its end. Call it first, so that
// what the test cleans up is gone by then, and not in a test that runs in parallel with others.
func NoLeaks(t testing.TB) {
	t.Helper()
	before, hadServer := goroutines(), hasServer()
	t.Cleanup(func() {
		var leaked []string
		for end := time.Now().Add(leakTimeout); time.Now().Before(end); time.Sleep(leakPoll) {
			leaked = leaked[:0]
			startedHere := hasServer() && !hadServer
			for id, stack := range goroutines() {
				if before[id] == "" && !(startedHere && strings.Contains(stack, "internal/mariadb.start")) {
					leaked = append(leaked, stack)
				}
			}
			if len(leaked) == 0 {
				return
			}
		}
		t.Errorf("%d goroutines outlive the test:\n%s", len(leaked), strings.Join(leaked, "\n\n"))
	})
}

// hasServer reports whether the shared server, whose goroutine outlives the test that starts it, has been started.
func hasServer() bool {
	shared.Lock()
	defer shared.Unlock()
	return shared.server != nil
}

// goroutines returns the stack of each goroutine under its heading's number.
func goroutines() map[string]string {
	buf := make([]byte, 64<<10)
	for {
		n := runtime.Stack(buf, true)
		if n < len(buf) {
			buf = buf[:n]
			break
		}
		buf = make([]byte, 2*len(buf))
	}
	stacks := map[string]string{}
	for stack := range strings.SplitSeq(string(buf), "\n\n") {
		id, _, _ := strings.Cut(strings.TrimPrefix(stack, "goroutine "), " ")
		stacks[id] = stack
	}
	return stacks
}
