package benchmark

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mailretention/mailretention/lease"
	"github.com/mailretention/mailretention/provisioner"
	"github.com/mailretention/mailretention/retention"
)

// workerVariable makes a process of this program a worker: it has the task as JSON.
const workerVariable = "MAILRETENTION_BENCHMARK_WORKER"

// task is what a worker process is to do, beside others.
type task struct {
	DSN       string
	Leases    string // the table
	Databases []string
	Keeps     int
}

// workerMain goes through the task's databases, one after another in an order of its own, and prints those that it did.
func workerMain(text string) int {
	done, err := work(context.Background(), text)
	if err == nil {
		err = json.NewEncoder(os.Stdout).Encode(done)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

func work(ctx context.Context, text string) (done []string, err error) {
	var t task
	if err := json.Unmarshal([]byte(text), &t); err != nil {
		return nil, err
	}
	var pools [2]*sql.DB
	for i := range pools {
		if pools[i], err = sql.Open("mysql", t.DSN); err != nil {
			return nil, err
		}
		defer pools[i].Close()
	}
	leases, err := lease.New(pools[0], lease.Config{Table: t.Leases, MinHold: time.Hour}) // whoever comes later finds it done
	if err != nil {
		return nil, err
	}
	rand.Shuffle(len(t.Databases), func(i, j int) { t.Databases[i], t.Databases[j] = t.Databases[j], t.Databases[i] })
	var runners []*retention.Runner
	for _, name := range t.Databases {
		store, err := provisioner.New(pools[1], provisioner.Config{
			Database: name, Guard: leases.Guard,
			Pending: func(ctx context.Context) ([]int64, error) { return column[int64](ctx, pools[1], selectQueue(name)) },
		})
		if err != nil {
			return nil, err
		}
		runner, err := retention.New(store, retention.Config{Name: name, Policy: rawTables(t.Keeps), Locker: leases})
		if err != nil {
			return nil, err
		}
		runners = append(runners, runner)
	}
	var failed error
	err = retention.RunAll(ctx, slices.Values(runners), 1, func(r retention.Report, err error) {
		switch r.Outcome {
		case retention.OutcomeDone:
			done = append(done, r.Name)
		case retention.OutcomeHeld:
		default:
			failed = errors.Join(failed, fmt.Errorf("%s: %s: %w", r.Name, r.Outcome, err))
		}
	})
	return done, errors.Join(err, failed)
}

// processes compares two processes that share the fleet by leases with one that does it all.
func (f *fleet) processes(b *testing.B) {
	var two, one []time.Duration
	for b.Loop() {
		inTurn(len(one), func() { one = append(one, f.work(b, 1)) }, func() { two = append(two, f.work(b, 2)) })
	}
	reportRates(b, len(f.boxes), two, one, "wall-x-one")
}

// work has so many processes do the fleet, each database once, and returns how long that takes.
func (f *fleet) work(b *testing.B, processes int) time.Duration {
	b.Helper()
	f.expire()
	_, table := f.leases()
	t := task{DSN: f.server.dsn(""), Leases: table, Keeps: fleetKeeps}
	for _, m := range f.boxes {
		t.Databases = append(t.Databases, m.name)
	}
	text, err := json.Marshal(t)
	require.NoError(b, err)
	program, err := os.Executable()
	require.NoError(b, err)
	var workers []*worker
	began := time.Now()
	for range processes {
		workers = append(workers, startWorker(b, program, string(text)))
	}
	var done []string
	for _, w := range workers {
		done = append(done, w.wait(b)...)
	}
	took := time.Since(began)
	require.ElementsMatch(b, t.Databases, done, "each database is done once")
	return took
}

// worker is one such process.
type worker struct {
	cmd    *exec.Cmd
	output bytes.Buffer
}

func startWorker(b *testing.B, program, task string) *worker {
	b.Helper()
	w := &worker{cmd: exec.CommandContext(b.Context(), program)}
	w.cmd.Env = append(os.Environ(), workerVariable+"="+task)
	w.cmd.Stdout, w.cmd.Stderr = &w.output, os.Stderr
	require.NoError(b, w.cmd.Start())
	return w
}

func (w *worker) wait(b *testing.B) (done []string) {
	b.Helper()
	require.NoError(b, w.cmd.Wait())
	require.NoError(b, json.Unmarshal(w.output.Bytes(), &done))
	return done
}
