package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/mailretention/mailretention/retention"
)

// metric is a family of gauges in Prometheus' text format
// (prometheus.io/docs/instrumenting/exposition_formats).
type metric struct {
	name, help string
	samples    []sample
}

type sample struct {
	labels string // as written, braces included
	value  float64
}

const successMetric = "postal_retention_success_timestamp_seconds"

// writeMetrics writes what the run came to. The time of the last success is carried over from the file's last version for
// each server that Postal still has, so that an alert on its age outlives runs that fail.
func writeMetrics(path string, all []server, results []result, now time.Time) error {
	old, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("read %s: %w", path, err)
	}
	metrics := append([]metric{
		{"postal_retention_run_timestamp_seconds", "When the last run ended.", []sample{{"", seconds(now)}}},
		{successMetric, "When the server's last run that did all there was to do ended; 0: never.", successes(string(old), all, results, now)},
	}, runMetrics(results)...)
	return writeFile(path, func(w io.Writer) error {
		for _, m := range metrics {
			fmt.Fprintf(w, "# HELP %s %s\n# TYPE %s gauge\n", m.name, m.help, m.name)
			for _, s := range m.samples {
				fmt.Fprintf(w, "%s%s %s\n", m.name, s.labels, strconv.FormatFloat(s.value, 'f', -1, 64))
			}
		}
		return nil
	})
}

func seconds(t time.Time) float64 { return float64(t.UnixMilli()) / 1000 }

func successes(old string, all []server, results []result, now time.Time) []sample {
	times := map[string]float64{}
	for line := range strings.Lines(old) {
		series, found := strings.CutPrefix(strings.TrimSpace(line), successMetric+"{")
		if end := strings.LastIndexByte(series, ' '); found && end >= 0 {
			times["{"+series[:end]], _ = strconv.ParseFloat(series[end+1:], 64) // what is no number counts as never
		}
	}
	for _, r := range results {
		if o := r.outcome(); o == retention.OutcomeDone || o == retention.OutcomeNothingToDo {
			times[labels(r.Server)] = seconds(now)
		}
	}
	var samples []sample
	for _, s := range all {
		if !s.deleted {
			samples = append(samples, sample{labels(s), times[labels(s)]})
		}
	}
	return samples
}

// runMetrics are those of the servers that this run took on.
func runMetrics(results []result) []metric {
	outcome := metric{name: "postal_retention_outcome", help: "How the server's last run ended: 1 for its outcome, 0 for the others."}
	duration := metric{name: "postal_retention_duration_seconds", help: "How long the server's last run took."}
	held := metric{name: "postal_retention_raw_bytes", help: "Bytes of raw mail that the last run left."}
	limit := metric{name: "postal_retention_raw_limit_bytes", help: "Most bytes of raw mail that the server's settings allow."}
	tables := metric{name: "postal_retention_tables", help: "Raw tables of the last run's plan, by what became of them."}
	freed := metric{name: "postal_retention_freed_bytes", help: "Bytes of raw mail that the last run dropped."}
	pruned := metric{name: "postal_retention_deleted_messages", help: "Message rows that the last run deleted."}
	repaired := metric{name: "postal_retention_repairs", help: "Places where the last run made the books agree."}
	for _, r := range results {
		for _, o := range outcomes() {
			outcome.add(labels(r.Server, "outcome", string(o)), truth(r.outcome() == o))
		}
		if r.Report == nil {
			continue
		}
		at := labels(r.Server)
		duration.add(at, r.Report.Took.Seconds())
		held.add(at, float64(r.Plan.Bytes-r.Report.BytesFreed))
		if max := r.Plan.Policy.RawBytes; max != nil {
			limit.add(at, float64(*max))
		}
		verdicts := map[retention.Verdict]int{}
		for _, t := range r.Report.Tables {
			verdicts[t.Verdict]++
		}
		for _, v := range []retention.Verdict{retention.VerdictDropped, retention.VerdictKept, retention.VerdictFailed} {
			tables.add(labels(r.Server, "verdict", string(v)), float64(verdicts[v]))
		}
		freed.add(at, float64(r.Report.BytesFreed))
		pruned.add(at, float64(r.Report.RowsPruned))
		repaired.add(at, float64(r.Report.Repaired))
	}
	return []metric{outcome, duration, held, limit, tables, freed, pruned, repaired}
}

func (m *metric) add(labels string, value float64) {
	m.samples = append(m.samples, sample{labels, value})
}

func truth(is bool) float64 {
	if is {
		return 1
	}
	return 0
}

func outcomes() []retention.Outcome {
	return []retention.Outcome{
		retention.OutcomeDone, retention.OutcomeNothingToDo, retention.OutcomePartial,
		retention.OutcomeHeld, retention.OutcomeRefused, retention.OutcomeFailed,
	}
}

// labels writes the server's labels and pairs of more.
func labels(s server, more ...string) string {
	escape := strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`)
	text := `{server="` + escape.Replace(s.path()) + `",database="` + escape.Replace(s.Database) + `"`
	for i := 0; i+1 < len(more); i += 2 {
		text += "," + more[i] + `="` + escape.Replace(more[i+1]) + `"`
	}
	return text + "}"
}
