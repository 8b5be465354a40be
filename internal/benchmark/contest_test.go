package benchmark

import (
	"encoding/csv"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

const (
	warmUp       = time.Second     // of the client
	idleTime     = 4 * time.Second // of it alone after that, to compare with
	memorySample = 5 * time.Millisecond
)

// measured is what became of one job beside the client.
type measured struct {
	began      time.Time
	wall       time.Duration
	settled    time.Duration // until the server has also purged what was deleted; 0: not known
	rows       int64
	idle, busy waits
	memory     uint64 // most bytes that the process held
}

// contest does the same work on equal mailboxes, ours and naive in turn, and reports how they compare. The clock of the benchmark
// runs through it all, so that by default there is one round; -benchtime 3x makes three.
func contest(b *testing.B, s *server, c content, ours, naive job) (lastOurs, lastNaive measured) {
	var all, other []measured
	defer func(before float64) { b.ReportMetric(before, "load") }(load())
	for b.Loop() {
		inTurn(len(all), func() { all = append(all, measure(b, s, c, ours)) }, func() { other = append(other, measure(b, s, c, naive)) })
	}
	report(b, all, other)
	return all[len(all)-1], other[len(other)-1]
}

// inTurn calls both functions, in one order in even rounds and in the other in odd ones: whatever the first leaves behind, each is first.
func inTurn(round int, one, other func()) {
	if round%2 == 1 {
		one, other = other, one
	}
	one()
	other()
}

// measure runs one job on a new mailbox.
func measure(b *testing.B, s *server, c content, do job) (r measured) {
	m := s.newMailbox(b, c)
	defer m.drop()
	debug.FreeOSMemory()
	client := m.startClient()
	time.Sleep(warmUp + idleTime)
	memory := watchMemory()
	r.began = time.Now()
	rows, err := do(b.Context(), m)
	r.wall = time.Since(r.began)
	r.memory = memory()
	samples := client.stop()
	if s.own {
		s.purge(b)
		r.settled = time.Since(r.began)
	}
	require.NoError(b, err)
	r.rows = rows
	r.idle = during(samples, r.began.Add(-idleTime), r.began)
	r.busy = during(samples, r.began, r.began.Add(r.wall))
	return r
}

func report(b *testing.B, ours, naive []measured) {
	b.Helper()
	total := func(of []measured) (t measured) {
		for _, r := range of {
			t.wall, t.settled, t.rows, t.memory = t.wall+r.wall, t.settled+r.settled, t.rows+r.rows, max(t.memory, r.memory)
			t.busy = append(t.busy, r.busy...)
		}
		return t
	}
	var ratios, p99s, naiveP99s, idle []float64
	for i, r := range ours {
		require.Equal(b, naive[i].rows, r.rows, "both do the same work")
		ratios = append(ratios, r.wall.Seconds()/naive[i].wall.Seconds())
		p99s, naiveP99s = append(p99s, milliseconds(r.busy.p99())), append(naiveP99s, milliseconds(naive[i].busy.p99()))
		idle = append(idle, milliseconds(r.idle.p99()), milliseconds(naive[i].idle.p99()))
	}
	o, n := total(ours), total(naive)
	if failed := o.busy.errors(); len(failed) > 0 {
		b.Errorf("%d errors of the client beside ours, the first: %v", len(failed), failed[0])
	}
	b.ReportMetric(float64(o.wall.Nanoseconds())/float64(len(ours)), "ns/op")
	b.ReportMetric(median(ratios), "wall-x-naive")
	if n.settled > 0 {
		b.ReportMetric(o.settled.Seconds()/n.settled.Seconds(), "settled-x-naive")
	}
	b.ReportMetric(milliseconds(o.busy.longest()), "stall-ms")
	b.ReportMetric(milliseconds(n.busy.longest()), "naive-stall-ms")
	b.ReportMetric(median(p99s)/median(idle), "p99-x-idle")
	b.ReportMetric(median(naiveP99s)/median(idle), "naive-p99-x-idle")
	b.ReportMetric(median(idle), "idle-p99-ms")
	b.ReportMetric(float64(o.rows)/o.wall.Seconds(), "rows/s")
	b.ReportMetric(float64(o.memory)/(1<<20), "peak-MB")
	b.ReportMetric(float64(len(n.busy.errors())), "naive-errors")
}

func milliseconds(d time.Duration) float64 { return d.Seconds() * 1000 }

func median(values []float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	return (sorted[(len(sorted)-1)/2] + sorted[len(sorted)/2]) / 2
}

// load is what else goes on: the machine's load average of the last minute, 0 where it has no such file.
func load() (average float64) {
	text, _ := os.ReadFile("/proc/loadavg")
	_, _ = fmt.Sscan(string(text), &average)
	return average
}

// writeSamples writes a line for each statement of the client: beside what, when it began in seconds since the job did, and how long it took.
func writeSamples(b *testing.B, ours, naive measured) {
	b.Helper()
	f, err := os.Create(*samplesFile)
	require.NoError(b, err)
	lines := csv.NewWriter(f)
	seconds := func(d time.Duration) string { return strconv.FormatFloat(d.Seconds(), 'f', 6, 64) }
	for job, r := range map[string]measured{"ours": ours, "naive": naive} {
		require.NoError(b, lines.Write([]string{job, "wall", seconds(r.wall)}))
		for _, s := range r.busy {
			require.NoError(b, lines.Write([]string{job, seconds(s.began.Sub(r.began)), seconds(s.took)}))
		}
	}
	lines.Flush()
	require.NoError(b, lines.Error())
	require.NoError(b, f.Close())
}

// watchMemory looks at how much memory the process holds until stop is called, which returns the most.
func watchMemory() (stop func() uint64) {
	held := []metrics.Sample{{Name: "/memory/classes/total:bytes"}, {Name: "/memory/classes/heap/released:bytes"}}
	ticker := time.NewTicker(memorySample)
	done, most := make(chan struct{}), make(chan uint64)
	runtime.GC()
	go func() {
		var peak uint64
		for {
			metrics.Read(held)
			peak = max(peak, held[0].Value.Uint64()-held[1].Value.Uint64())
			select {
			case <-ticker.C:
			case <-done:
				most <- peak
				return
			}
		}
	}()
	return func() uint64 {
		ticker.Stop()
		close(done)
		return <-most
	}
}
