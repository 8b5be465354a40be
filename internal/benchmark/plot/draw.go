package main

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
)

// The picture in pixels.
const (
	width  = 760
	height = 448
	left   = 62 // of the panels
	right  = 744
	tall   = 130 // each panel
	upper  = 62  // where the panels begin
	lower  = 252
	parts  = (right - left) / 2 // of the time
)

// decade is a line of the scale of waits.
type decade struct {
	seconds float64
	label   string
}

func decades() []decade {
	return []decade{{0.001, "1 ms"}, {0.01, "10 ms"}, {0.1, "100 ms"}, {1, "1 s"}, {10, "10 s"}, {100, "100 s"}}
}

// scales are what both panels share.
type scales struct {
	end     float64 // seconds at the right
	decades []decade
}

func newScales(r recordings) scales {
	longest, all := 0.0, decades()
	for _, w := range slices.Concat(r.ours.waits, r.naive.waits) {
		longest = max(longest, w.took)
	}
	n := 1 + slices.IndexFunc(all, func(d decade) bool { return d.seconds >= longest })
	if n == 0 {
		n = len(all)
	}
	return scales{end: 1.02 * max(r.ours.wall, r.naive.wall), decades: all[:n]}
}

func (s scales) x(seconds float64) float64 { return left + seconds/s.end*(right-left) }

// y is how far above a panel's foot a wait is.
func (s scales) y(seconds float64) float64 {
	low, high := s.decades[0].seconds, s.decades[len(s.decades)-1].seconds
	return tall * math.Log(max(seconds, low)/low) / math.Log(high/low)
}

func draw(to io.Writer, r recordings) {
	s := newScales(r)
	fmt.Fprintf(to, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" font-family="system-ui,sans-serif" font-size="13" role="img" aria-label="How long a mail server's statements wait while retention runs: %s with mailretention, %s with Postal's statements">
  <rect width="100%%" height="100%%" rx="8" fill="#fff"/>
  <text x="16" y="26" font-size="15" font-weight="600" fill="#1f2328">How long the mail server waits for its database while old mail is deleted</text>
`, width, height, inWords(longestWait(r.ours)), inWords(longestWait(r.naive)))
	s.panel(to, upper, "mailretention", "#1a7f37", r.ours)
	s.panel(to, lower, "Postal’s statements", "#cf222e", r.naive)
	s.times(to, lower+tall)
	fmt.Fprintln(to, "</svg>")
}

// panel draws one job, its foot tall pixels below top.
func (s scales) panel(to io.Writer, top float64, name, colour string, r recording) {
	foot := top + tall
	fmt.Fprintf(to, `  <text x="%d" y="%g" fill="%s" font-weight="600">%s: <tspan fill="#1f2328" font-weight="400">longest wait %s; done after %s</tspan></text>`+"\n",
		left, top-10, colour, name, inWords(longestWait(r)), inWords(r.wall))
	for _, d := range s.decades {
		y := foot - s.y(d.seconds)
		fmt.Fprintf(to, `  <path d="M%d %.1fH%d" stroke="#d0d7de"/><text x="%d" y="%.1f" text-anchor="end" font-size="12" fill="#57606a">%s</text>`+"\n",
			left, y, right, left-6, y+4, d.label)
	}
	var area strings.Builder
	fmt.Fprintf(&area, "M%d %g", left, foot)
	end := s.x(r.wall)
	for i, wait := range r.longest(parts, s.end) {
		x := left + float64(i)*(right-left)/parts
		if x > end {
			break
		}
		fmt.Fprintf(&area, "V%.1fH%.0f", foot-s.y(wait), min(x+(right-left)/parts, end))
	}
	fmt.Fprintf(to, `  <path d="%sV%gZ" fill="%s" fill-opacity=".75"/>`+"\n", area.String(), foot, colour)
	fmt.Fprintf(to, `  <path d="M%.1f %gV%g" stroke="%s" stroke-dasharray="4 3"/>`+"\n", end, top, foot, colour)
}

// times draws the scale below the lower panel.
func (s scales) times(to io.Writer, foot float64) {
	step := math.Pow(10, math.Floor(math.Log10(s.end)))
	for s.end/step < 4 {
		step /= 2
	}
	for t := 0.0; t <= s.end; t += step {
		fmt.Fprintf(to, `  <path d="M%.1f %gv5" stroke="#57606a"/><text x="%.1f" y="%g" text-anchor="middle" font-size="12" fill="#57606a">%g s</text>`+"\n",
			s.x(t), foot, s.x(t), foot+19, t)
	}
	for i, line := range []string{
		"Time since the job began; the height is the longest wait at that moment, on a logarithmic scale.",
		"The job deletes three of six days of mail; a client inserts a message every 2 ms and updates an old one every 20 ms.",
	} {
		fmt.Fprintf(to, `  <text x="16" y="%g" font-size="12" fill="#57606a">%s</text>`+"\n", foot+40+17*float64(i), line)
	}
}

func longestWait(r recording) (longest float64) {
	for _, w := range r.waits {
		longest = max(longest, w.took)
	}
	return longest
}

// inWords is a time in seconds with two or three digits that matter.
func inWords(seconds float64) string {
	if seconds < 1 {
		return fmt.Sprintf("%.0f ms", seconds*1000)
	}
	return fmt.Sprintf("%.1f s", seconds)
}
