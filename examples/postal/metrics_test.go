package main

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"github.com/stretchr/testify/require"
)

// readMetrics parses the file as node_exporter does, and returns each series' value.
func readMetrics(t *testing.T, path string) map[string]float64 {
	t.Helper()
	file, err := os.Open(path)
	require.NoError(t, err)
	defer file.Close()
	parser := expfmt.NewTextParser(model.LegacyValidation)
	families, err := parser.TextToMetricFamilies(file)
	require.NoError(t, err)
	series := map[string]float64{}
	for name, family := range families {
		require.NotEmpty(t, family.GetHelp(), name)
		require.Equal(t, dto.MetricType_GAUGE, family.GetType(), name)
		for _, m := range family.GetMetric() {
			key := name
			for _, l := range m.GetLabel() {
				if l.GetName() != "database" {
					key += " " + l.GetValue()
				}
			}
			series[key] = m.GetGauge().GetValue()
		}
	}
	return series
}

func TestMetricsOfARun(t *testing.T) {
	p := newInstallation(t)
	path := filepath.Join(t.TempDir(), "postal.prom")

	require.Equal(t, exitPartly, p.call("run", "--metrics-file", path).status)
	first := readMetrics(t, path)
	require.Equal(t, 1.0, first["postal_retention_outcome acme/limits done"])
	require.Equal(t, 0.0, first["postal_retention_outcome acme/limits failed"])
	require.Equal(t, 1.0, first["postal_retention_outcome acme/for-ever nothing_to_do"])
	require.Equal(t, 1.0, first["postal_retention_outcome acme/broken failed"])
	require.Equal(t, 7.0, first["postal_retention_tables acme/limits dropped"])
	require.Equal(t, 70.0*mebibyte, first["postal_retention_freed_bytes acme/limits"])
	require.Equal(t, 50.0*mebibyte, first["postal_retention_raw_bytes acme/limits"])
	require.Equal(t, 50.0*mebibyte, first["postal_retention_raw_limit_bytes acme/limits"])
	require.NotContains(t, first, "postal_retention_raw_limit_bytes acme/for-ever")
	require.Positive(t, first["postal_retention_success_timestamp_seconds acme/limits"])
	require.Zero(t, first["postal_retention_success_timestamp_seconds acme/broken"])
	require.NotContains(t, first, "postal_retention_success_timestamp_seconds acme/deleted")

	require.Equal(t, exitDone, p.call("run", "--metrics-file", path, "--server", "zero").status)
	second := readMetrics(t, path)
	success := "postal_retention_success_timestamp_seconds acme/limits"
	require.Equal(t, first[success], second[success], "carried over")
	require.Greater(t, second["postal_retention_success_timestamp_seconds acme/zero"], first["postal_retention_success_timestamp_seconds acme/zero"])

	info, err := os.Stat(path)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(readableByAll), info.Mode())
	entries, err := os.ReadDir(filepath.Dir(path))
	require.NoError(t, err)
	require.Len(t, entries, 1, "nothing is left beside it")
}

func TestLabelsAreEscaped(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.prom")
	odd := server{Organization: "a\"b\\c\nd", Permalink: "} 1"}
	require.NoError(t, writeMetrics(path, []server{odd}, []result{{Server: odd}}, testTime()))
	require.NoError(t, writeMetrics(path, []server{odd}, nil, testTime().AddDate(0, 0, 1)))
	require.Equal(t, seconds(testTime()), readMetrics(t, path)[successMetric+" "+odd.path()])
}

func TestAFailedRunStillWritesMetrics(t *testing.T) {
	p := newPostal(t)
	p.addServer(1, "broken", 1, 1, 1)
	path := filepath.Join(t.TempDir(), "postal.prom")
	require.Equal(t, exitPartly, p.call("run", "--metrics-file", path).status)
	require.Zero(t, readMetrics(t, path)["postal_retention_success_timestamp_seconds acme/broken"])

	require.Equal(t, exitPartly, p.call("run", "--metrics-file", "/no/such/folder/x.prom").status)
}

func testTime() time.Time { return time.Date(2026, 6, 15, 3, 0, 0, 0, time.UTC) }
