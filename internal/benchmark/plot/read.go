package main

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"strconv"
)

const wall = "wall" // stands where else the beginning does, in the line that says how long the job took

// recording is what the client saw beside one job, in seconds.
type recording struct {
	wall  float64
	waits []wait
}

// wait is one statement: when it began, counted from the job's beginning, and how long it took.
type wait struct{ began, took float64 }

// recordings are those of the two jobs.
type recordings struct{ ours, naive recording }

func read(from io.Reader) (r recordings, err error) {
	lines := csv.NewReader(from)
	lines.FieldsPerRecord = 3
	for {
		line, err := lines.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return r, err
		}
		if err := r.add(line); err != nil {
			row, _ := lines.FieldPos(0)
			return r, fmt.Errorf("line %d: %w", row, err)
		}
	}
	for _, job := range []recording{r.ours, r.naive} {
		if job.wall <= 0 || len(job.waits) == 0 {
			return r, errors.New("it doesn't have both jobs")
		}
	}
	return r, nil
}

func (r *recordings) add(line []string) error {
	jobs := map[string]*recording{"ours": &r.ours, "naive": &r.naive}
	job := jobs[line[0]]
	if job == nil {
		return fmt.Errorf("%q is no job", line[0])
	}
	took, err := strconv.ParseFloat(line[2], 64)
	if err != nil {
		return err
	}
	if line[1] == wall {
		job.wall = took
		return nil
	}
	began, err := strconv.ParseFloat(line[1], 64)
	job.waits = append(job.waits, wait{began, took})
	return err
}

// longest returns, for each of so many equal parts of the time up to end, the longest wait that was under way in it; 0: none.
func (r recording) longest(parts int, end float64) []float64 {
	longest := make([]float64, parts)
	at := func(t float64) int { return max(0, min(parts-1, int(t/end*float64(parts)))) }
	for _, w := range r.waits {
		if w.began+w.took < 0 || w.began > end {
			continue
		}
		for i := at(w.began); i <= at(w.began+w.took); i++ {
			longest[i] = max(longest[i], w.took)
		}
	}
	return longest
}
