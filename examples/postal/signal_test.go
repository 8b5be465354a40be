package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A run that is told to end finishes the statement that it is at, says what was done, and leaves the rest to the next one.
func TestSIGTERMEndsARunGracefully(t *testing.T) {
	p := newPostal(t)
	p.addServerOf(1, "first", 6, mebibyte, 2, nil, 2)
	p.addServerOf(2, "second", 6, mebibyte, 2, nil, 2)
	metrics := filepath.Join(t.TempDir(), "postal.prom")
	reader, err := p.db.BeginTx(t.Context(), nil) // whose lock on the second table that goes holds up its DROP
	require.NoError(t, err)
	defer reader.Rollback()
	_, err = reader.ExecContext(t.Context(), "SELECT id FROM "+p.in(1, p.table(4)))
	require.NoError(t, err)

	var out, errs bytes.Buffer
	tool := p.tool(&out, &errs, "run", "--metrics-file", metrics)
	require.NoError(t, tool.Start())
	p.waitFor("information_schema.PROCESSLIST WHERE INFO LIKE 'DROP TABLE%" + p.table(4) + "%' AND STATE LIKE 'Waiting for table metadata lock%'")
	require.NoError(t, tool.Process.Signal(syscall.SIGTERM))
	require.NoError(t, reader.Rollback())
	_ = tool.Wait()

	o := outcome{tool.ProcessState.ExitCode(), out.String(), errs.String()}
	require.Equal(t, exitPartly, o.status, o)
	require.Contains(t, o.out, "terminated", o)
	require.Contains(t, o.out, "acme/second (ID 2)")
	require.Contains(t, o.out, "not begun", o)
	require.Equal(t, 4, p.tables(1), "two of three went\n%v", o)
	require.Equal(t, 6, p.tables(2), o)
	require.Zero(t, readMetrics(t, metrics)[successMetric+" acme/first"])
	require.Contains(t, p.call("leases").out, "free", "the lease was released")

	require.Equal(t, exitDone, p.call("run").status)
	require.Equal(t, 3, p.tables(1))
	require.Equal(t, 3, p.tables(2))
}

// tool is the command in a process of its own.
func (p *postal) tool(out, errs *bytes.Buffer, args ...string) *exec.Cmd {
	tool := exec.CommandContext(p.t.Context(), os.Args[0], args...)
	tool.Env = append(os.Environ(), asTool+"=1")
	for name, value := range p.environment() {
		tool.Env = append(tool.Env, name+"="+value)
	}
	tool.Stdout, tool.Stderr = out, errs
	return tool
}

// waitFor waits until the query has a row.
func (p *postal) waitFor(from string) {
	p.t.Helper()
	require.Eventually(p.t, func() bool { return p.count(from) > 0 }, 30*time.Second, 5*time.Millisecond, from)
}
