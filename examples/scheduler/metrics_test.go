package main

import (
	"encoding/json"
	"errors"
	"maps"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"

	"github.com/mailretention/mailretention/retention"
)

// series is one line of a metric: its labels and its value, a histogram's count.
type series struct {
	labels map[string]string
	value  float64
}

// has says whether each value is one of the labels'.
func (s series) has(values []string) bool {
	all := slices.Collect(maps.Values(s.labels))
	return !slices.ContainsFunc(values, func(v string) bool { return !slices.Contains(all, v) })
}

// gather returns what a registry has, by the metrics' names.
func gather(t *testing.T, registry *prometheus.Registry) map[string][]series {
	t.Helper()
	families, err := registry.Gather()
	require.NoError(t, err)
	all := map[string][]series{}
	for _, family := range families {
		for _, m := range family.GetMetric() {
			s := series{labels: map[string]string{}}
			for _, label := range m.GetLabel() {
				s.labels[label.GetName()] = label.GetValue()
			}
			s.value = m.GetCounter().GetValue() + m.GetGauge().GetValue() + float64(m.GetHistogram().GetSampleCount())
			all[family.GetName()] = append(all[family.GetName()], s)
		}
	}
	return all
}

// expressions returns every PromQL expression of the dashboard and of the alert rules.
func expressions(t *testing.T) (dashboard, alerts []string) {
	t.Helper()
	var d struct {
		Panels []struct {
			Targets []struct{ Expr string }
		}
		Templating struct {
			List []struct{ Definition string }
		}
	}
	text, err := os.ReadFile("dashboard.json")
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(text, &d))
	for _, p := range d.Panels {
		require.NotEmpty(t, p.Targets)
		for _, target := range p.Targets {
			dashboard = append(dashboard, target.Expr)
		}
	}
	for _, variable := range d.Templating.List {
		dashboard = append(dashboard, variable.Definition)
	}
	var a struct {
		Groups []struct {
			Rules []struct{ Alert, Expr string }
		}
	}
	text, err = os.ReadFile("alerts.yml")
	require.NoError(t, err)
	require.NoError(t, yaml.Unmarshal(text, &a))
	for _, g := range a.Groups {
		for _, r := range g.Rules {
			require.NotEmpty(t, r.Alert)
			alerts = append(alerts, r.Expr)
		}
	}
	require.NotEmpty(t, alerts)
	return dashboard, alerts
}

func TestDashboardAndAlertsUseTheMetricsThatThereAre(t *testing.T) {
	registry := prometheus.NewRegistry()
	m := newMetrics(registry)
	m.task("x")(nil)
	m.retention("x")(retention.Event{Kind: retention.EventFinished})
	registered := gather(t, registry)

	dashboard, alerts := expressions(t)
	used := map[string]bool{}
	for _, expr := range slices.Concat(dashboard, alerts) {
		labels := []string{"le"} // a histogram's
		for _, name := range regexp.MustCompile(`mailretention_\w+`).FindAllString(expr, -1) {
			base := name
			if registered[name] == nil {
				base = regexp.MustCompile(`_(bucket|sum|count)$`).ReplaceAllString(name, "")
			}
			require.NotEmpty(t, registered[base], "%s in %s", name, expr)
			used[base] = true
			labels = slices.AppendSeq(labels, maps.Keys(registered[base][0].labels))
		}
		for _, group := range regexp.MustCompile(`(?:by|on) \(([^)]*)\)`).FindAllStringSubmatch(expr, -1) {
			for label := range strings.SplitSeq(group[1], ", ") {
				require.Contains(t, labels, label, expr)
			}
		}
		for _, matcher := range regexp.MustCompile(`\{(\w+)=`).FindAllStringSubmatch(expr, -1) {
			require.Contains(t, labels, matcher[1], expr)
		}
	}
	require.ElementsMatch(t, slices.Collect(maps.Keys(registered)), slices.Collect(maps.Keys(used)), "each metric is shown")
}

func TestOnlySuccessMovesTheTimeOfTheLastSuccess(t *testing.T) {
	failure := errors.New("failure")
	for _, c := range []struct {
		outcome retention.Outcome
		err     error
		moves   bool
	}{
		{retention.OutcomeDone, nil, true},
		{retention.OutcomeNothingToDo, nil, true},
		{retention.OutcomePartial, nil, true}, // as many tables as it was allowed
		{retention.OutcomePartial, failure, false},
		{retention.OutcomeHeld, retention.ErrHeld, false},
		{retention.OutcomeRefused, retention.ErrRefused, false},
		{retention.OutcomeFailed, failure, false},
	} {
		registry := prometheus.NewRegistry()
		observe := newMetrics(registry).retention("x")
		observe(retention.Event{Kind: retention.EventFinished, Err: c.err, Report: retention.Report{Outcome: c.outcome}})
		last := gather(t, registry)["mailretention_last_success_timestamp_seconds"]
		require.Len(t, last, 1)
		require.Equal(t, c.moves, last[0].value > 0, "%s, %v", c.outcome, c.err)
	}
}

// The rules' own tests need Prometheus' promtool, which Debian has in its package prometheus, and CI gets from there.
func TestAlerts(t *testing.T) {
	promtool, err := exec.LookPath("promtool")
	if err != nil && os.Getenv("CI") == "" {
		t.Skip("promtool is not on this machine")
	}
	require.NoError(t, err)
	out, err := exec.CommandContext(t.Context(), promtool, "test", "rules", "alerts_test.yml").CombinedOutput()
	require.NoError(t, err, string(out))
}
