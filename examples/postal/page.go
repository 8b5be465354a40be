package main

import (
	_ "embed"
	"fmt"
	"html/template"
	"io"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/mailretention/mailretention/retention"
)

//go:embed page.html.tmpl
var pageText string

// page is what the template shows.
type page struct {
	Now      time.Time
	Where    string
	Summary  string
	Ran      bool
	Sections []section
}

// section is one server's.
type section struct {
	result
	Anchor  string
	State   string // "" if all is well
	Days    []dayBar
	Gap     int // pixels between bars
	Width   int // of the chart at most, in rem, so that few bars don't grow into blocks
	Goes    []stretch
	Stays   []stretch
	Failed  []retention.TableReport
	Planned bool
	Frees   int64 // bytes, by the plan

	// What went and what is left: after a run by its report, else by the plan.
	Tables      int
	Freed, Left int64
}

// dayBar is one day of the chart.
type dayBar struct {
	retention.Table
	Height float64 // percent of the largest
	Kind   string  // what it looks like: goes, stays, protected; gap: days without a table
	Why    string
}

// stretch is a run of days with one verdict for one reason.
type stretch struct {
	From, To time.Time
	Days     int
	Bytes    int64
	Unknown  int // days of unknown size
	Why      string
}

// writePage writes the results as one HTML file that needs nothing else.
func writePage(path string, f *fleet, results []result) error {
	t, err := template.New("page").Funcs(template.FuncMap{
		"size": size, "date": date, "count": count, "driftWords": driftWords,
		"stamp": func(t time.Time) string { return t.UTC().Format("2006-01-02 15:04 UTC") },
	}).Parse(pageText)
	if err != nil {
		return err
	}
	p := newPage(f, results, time.Now())
	return writeFile(path, func(w io.Writer) error { return t.Execute(w, p) })
}

func newPage(f *fleet, results []result, now time.Time) page {
	p := page{Now: now, Where: f.database + " on " + f.main.address(), Summary: sumPlans(results).sentence(f)}
	for _, r := range results {
		p.Ran = p.Ran || r.Report != nil
		p.Sections = append(p.Sections, newSection(r))
	}
	if p.Ran {
		p.Summary = sumReports(results).sentence()
	}
	return p
}

func newSection(r result) section {
	s := section{result: r.told(), Anchor: fmt.Sprintf("server-%d", r.Server.ID), Planned: !r.Plan.Now.IsZero()}
	if o := r.outcome(); o != retention.OutcomeDone && o != retention.OutcomeNothingToDo {
		s.State = string(o)
	}
	s.Days = dayBars(r.Plan)
	s.Gap, s.Width = gap(len(s.Days)), max(narrowest, widestBar*len(s.Days))
	s.Goes = stretches(s.Days, "goes")
	s.Stays = stretches(s.Days, "stays", "protected")
	s.Frees = r.Plan.Bytes - r.Plan.BytesAfter
	s.Tables, s.Freed = len(r.Plan.Drops), s.Frees
	if r.Report != nil {
		s.Freed = r.Report.BytesFreed
		s.Failed = slices.DeleteFunc(slices.Clone(r.Report.Tables), func(t retention.TableReport) bool { return t.Verdict == retention.VerdictDropped })
		s.Tables = len(r.Report.Tables) - len(s.Failed)
	}
	s.Left = r.Plan.Bytes - s.Freed
	return s
}

const (
	widestBar = 2  // rem
	narrowest = 14 // rem: the two dates below it
)

// gap keeps bars apart as long as there is room on a phone.
func gap(days int) int {
	const roomy, tight = 45, 120
	switch {
	case days <= roomy:
		return 2
	case days <= tight:
		return 1
	}
	return 0
}

func dayBars(p retention.Plan) []dayBar {
	var days []dayBar
	for _, d := range p.Drops {
		days = append(days, dayBar{Table: d.Table, Kind: "goes", Why: reasonWords(d.Reason)})
	}
	for _, k := range p.Keeps {
		days = append(days, keptBar(k))
	}
	slices.SortStableFunc(days, func(a, b dayBar) int { return a.Day.Compare(b.Day) })
	var largest int64 = 1
	for _, d := range days {
		largest = max(largest, d.Bytes)
	}
	var all []dayBar
	for i, d := range days {
		if i > 0 && d.Day.After(days[i-1].Day.AddDate(0, 0, 1)) {
			from, to := days[i-1].Day.AddDate(0, 0, 1), d.Day.AddDate(0, 0, -1)
			all = append(all, dayBar{Kind: "gap", Why: "no table from " + date(from) + " to " + date(to)})
		}
		d.Height = math.Round(1000*float64(d.Bytes)/float64(largest)) / 10
		all = append(all, d)
	}
	return all
}

// Tabled counts the days that have a table.
func (s section) Tabled() int { return len(s.Plan.Drops) + len(s.Plan.Keeps) }

// Last is the last day that has a table.
func (s section) Last() time.Time { return s.Days[len(s.Days)-1].Day }

func keptBar(k retention.Keep) dayBar {
	words := make([]string, len(k.Reasons))
	for i, r := range k.Reasons {
		words[i] = reasonWords(r)
	}
	d := dayBar{Table: k.Table, Kind: "protected", Why: strings.Join(words, ", ")}
	if slices.Contains(k.Reasons, retention.ReasonWithinPolicy) {
		d.Kind = "stays"
	}
	if k.Table.InUse != "" {
		d.Why += ": " + k.Table.InUse
	}
	return d
}

// stretches folds days of these kinds into runs for one reason.
func stretches(days []dayBar, kinds ...string) []stretch {
	var all []stretch
	var last string // reason of the day before, of whatever kind
	for _, d := range days {
		if slices.Contains(kinds, d.Kind) {
			if len(all) == 0 || d.Why != last {
				all = append(all, stretch{From: d.Day, Why: d.Why})
			}
			all[len(all)-1].add(d)
		}
		last = d.Why
	}
	return all
}

func (s *stretch) add(d dayBar) {
	s.To = d.Day
	s.Days++
	s.Bytes += d.Bytes
	if !d.SizeKnown {
		s.Unknown++
	}
}

// reasonWords is the reason for people who have not read the documentation.
func reasonWords(r retention.Reason) string {
	switch r {
	case retention.ReasonAge:
		return "older than the limit"
	case retention.ReasonSize:
		return "oldest above the size limit"
	case retention.ReasonWithinPolicy:
		return "within the limits"
	case retention.ReasonActive:
		return "newest days, always kept"
	case retention.ReasonFuture:
		return "a day to come"
	}
	return strings.ReplaceAll(string(r), "_", " ")
}
