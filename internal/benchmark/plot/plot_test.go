package main

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const recorded = `ours,wall,10.000000
ours,-0.010000,0.020000
ours,1.000000,0.001000
ours,9.990000,0.080000
naive,wall,4.000000
naive,0.500000,3.000000
naive,1.000000,0.002000
`

func TestPlot(t *testing.T) {
	file := filepath.Join(t.TempDir(), "samples.csv")
	require.NoError(t, os.WriteFile(file, []byte(recorded), 0o600))
	var svg bytes.Buffer
	require.NoError(t, run([]string{file}, &svg))
	require.Contains(t, svg.String(), "longest wait 80 ms; done after 10.0 s")
	require.Contains(t, svg.String(), "longest wait 3.0 s; done after 4.0 s")
	for decoder := xml.NewDecoder(&svg); ; {
		_, err := decoder.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		require.NoError(t, err)
	}
}

func TestLongest(t *testing.T) {
	r, err := read(strings.NewReader(recorded))
	require.NoError(t, err)
	require.Equal(t, []float64{0.02, 0.001, 0, 0, 0, 0, 0, 0, 0, 0.08}, r.ours.longest(10, 10))
	require.Equal(t, []float64{3, 3, 3, 3, 0}, r.naive.longest(5, 5))
}

func TestReadRefuses(t *testing.T) {
	for name, text := range map[string]string{
		"nothing":      "",
		"one job":      "ours,wall,1\nours,0,1\n",
		"no waits":     "ours,wall,1\nnaive,wall,1\n",
		"another job":  "theirs,wall,1\n",
		"no number":    "ours,wall,long\n",
		"no beginning": "ours,early,1\n",
		"more columns": "ours,wall,1,2\n",
	} {
		t.Run(name, func(t *testing.T) {
			_, err := read(strings.NewReader(text))
			require.Error(t, err)
		})
	}
	require.Error(t, run(nil, io.Discard))
	require.Error(t, run([]string{filepath.Join(t.TempDir(), "missing")}, io.Discard))
}
