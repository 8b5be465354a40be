package main

import (
	"errors"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/mailretention/mailretention/lease"
	"github.com/mailretention/mailretention/retention"
)

// Buckets of histograms, in seconds.
const (
	firstStep, stepFactor, stepBuckets = 0.001, 2, 14 // 1 ms to 8 s: a batch, a drop, a renewal
	firstRun, runFactor, runBuckets    = 0.01, 4, 10  // 10 ms to 44 min: a whole run
)

// metrics are what a replica counts, fed from the events of retention and lease.
type metrics struct {
	runs        *prometheus.CounterVec
	runTime     *prometheus.HistogramVec
	lastSuccess *prometheus.GaugeVec
	tables      *prometheus.CounterVec
	dropTime    *prometheus.HistogramVec
	rows        *prometheus.CounterVec
	batchTime   *prometheus.HistogramVec
	freed       *prometheus.CounterVec
	raw         *prometheus.GaugeVec
	shortfall   *prometheus.GaugeVec
	leases      *prometheus.CounterVec
	renewTime   *prometheus.HistogramVec
	tasks       *prometheus.CounterVec
}

func newMetrics(registry *prometheus.Registry) *metrics {
	counter := func(name, help string, labels ...string) *prometheus.CounterVec {
		c := prometheus.NewCounterVec(prometheus.CounterOpts{Namespace: "mailretention", Name: name, Help: help}, labels)
		registry.MustRegister(c)
		return c
	}
	gauge := func(name, help string, labels ...string) *prometheus.GaugeVec {
		g := prometheus.NewGaugeVec(prometheus.GaugeOpts{Namespace: "mailretention", Name: name, Help: help}, labels)
		registry.MustRegister(g)
		return g
	}
	histogram := func(buckets []float64, name, help string, labels ...string) *prometheus.HistogramVec {
		h := prometheus.NewHistogramVec(prometheus.HistogramOpts{Namespace: "mailretention", Name: name, Help: help, Buckets: buckets}, labels)
		registry.MustRegister(h)
		return h
	}
	short := prometheus.ExponentialBuckets(firstStep, stepFactor, stepBuckets)
	long := prometheus.ExponentialBuckets(firstRun, runFactor, runBuckets)
	return &metrics{
		runs:        counter("runs_total", "Retention runs by how they ended.", "server", "outcome"),
		runTime:     histogram(long, "run_duration_seconds", "Time of a retention run that had the lease.", "server"),
		lastSuccess: gauge("last_success_timestamp_seconds", "When this replica's last retention run ended without an error; 0: not since its start.", "server"),
		tables:      counter("tables_total", "Raw tables that a plan dropped, by what became of them.", "server", "verdict"),
		dropTime:    histogram(short, "table_drop_duration_seconds", "Time to detach and drop one raw table.", "server"),
		rows:        counter("rows_total", "Message rows that lost their raw mail (detached) or were deleted (pruned).", "server", "kind"),
		batchTime:   histogram(short, "batch_duration_seconds", "Time of one batch of rows.", "server"),
		freed:       counter("freed_bytes_total", "Bytes of raw mail in dropped tables.", "server"),
		raw:         gauge("raw_bytes", "Bytes of raw mail after the last run, where this replica did it.", "server"),
		shortfall:   gauge("shortfall_bytes", "Bytes above the size limit that protection keeps, where this replica did the last run.", "server"),
		leases:      counter("lease_events_total", "What happened to leases.", "lease", "kind"),
		renewTime:   histogram(short, "lease_renew_duration_seconds", "Time of a heartbeat of a lease.", "lease"),
		tasks:       counter("task_runs_total", "Moments of a task by what this replica did: done, held (left to another), failed.", "task", "outcome"),
	}
}

// retention returns what feeds the metrics of one mail server. Each series is there from the start: increase() doesn't
// see the first value of one that appears later, and the alert needs to know which servers there are.
func (m *metrics) retention(server string) func(retention.Event) {
	m.expect("retention/" + server)
	m.lastSuccess.WithLabelValues(server)
	m.freed.WithLabelValues(server)
	for _, h := range []*prometheus.HistogramVec{m.runTime, m.dropTime, m.batchTime} {
		h.WithLabelValues(server)
	}
	for _, outcome := range []retention.Outcome{
		retention.OutcomeDone, retention.OutcomeNothingToDo, retention.OutcomePartial,
		retention.OutcomeHeld, retention.OutcomeRefused, retention.OutcomeFailed,
	} {
		m.runs.WithLabelValues(server, string(outcome))
	}
	for _, verdict := range []retention.Verdict{retention.VerdictDropped, retention.VerdictKept, retention.VerdictFailed} {
		m.tables.WithLabelValues(server, string(verdict))
	}
	for _, kind := range []string{"detached", "pruned"} {
		m.rows.WithLabelValues(server, kind)
	}
	return func(e retention.Event) { m.observe(server, e) }
}

func (m *metrics) observe(server string, e retention.Event) {
	switch e.Kind {
	case retention.EventBatch:
		kind := "detached"
		if e.Table == "" {
			kind = "pruned"
		}
		m.rows.WithLabelValues(server, kind).Add(float64(e.Rows))
		m.batchTime.WithLabelValues(server).Observe(e.Took.Seconds())
	case retention.EventDropped:
		m.dropTime.WithLabelValues(server).Observe(e.Took.Seconds())
	case retention.EventFinished:
		m.finished(server, e)
	}
}

func (m *metrics) finished(server string, e retention.Event) {
	r := e.Report
	m.runs.WithLabelValues(server, string(r.Outcome)).Inc()
	for _, t := range r.Tables {
		m.tables.WithLabelValues(server, string(t.Verdict)).Inc()
	}
	m.freed.WithLabelValues(server).Add(float64(r.BytesFreed))
	if r.Outcome == retention.OutcomeHeld { // what this replica knows is old news: the other one has it newer
		m.raw.DeleteLabelValues(server)
		m.shortfall.DeleteLabelValues(server)
		return
	}
	m.runTime.WithLabelValues(server).Observe(r.Took.Seconds())
	if e.Err == nil {
		m.lastSuccess.WithLabelValues(server).SetToCurrentTime()
		m.raw.WithLabelValues(server).Set(float64(r.Plan.Bytes - r.BytesFreed))
		m.shortfall.WithLabelValues(server).Set(float64(r.Plan.Shortfall))
	}
}

// expect makes the series of a lease that will be used.
func (m *metrics) expect(name string) {
	m.renewTime.WithLabelValues(name)
	for _, kind := range []lease.EventKind{
		lease.EventAcquired, lease.EventStolen, lease.EventRenewed, lease.EventRenewFailed,
		lease.EventLost, lease.EventReleased, lease.EventClockAnomaly,
	} {
		m.leases.WithLabelValues(name, string(kind))
	}
}

// lease feeds the metrics of all leases.
func (m *metrics) lease(e lease.Event) {
	m.leases.WithLabelValues(e.Name, string(e.Kind)).Inc()
	if e.Kind == lease.EventRenewed {
		m.renewTime.WithLabelValues(e.Name).Observe(e.Took.Seconds())
	}
}

// task returns what counts the outcomes of one task.
func (m *metrics) task(name string) func(error) {
	done := m.tasks.WithLabelValues(name, "done")
	held := m.tasks.WithLabelValues(name, "held")
	failed := m.tasks.WithLabelValues(name, "failed")
	return func(err error) {
		switch {
		case err == nil:
			done.Inc()
		case errors.Is(err, lease.ErrHeld):
			held.Inc()
		default:
			failed.Inc()
		}
	}
}
