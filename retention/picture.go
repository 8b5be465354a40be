package retention

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

const (
	pictureWidth = 80 // columns of the narrowest terminal in use
	barWidth     = 20 // columns of the largest table's bar
	longRun      = 14 // lines of one verdict that are shown; longer runs are folded
	runEdge      = 5  // lines that stay at either end of a folded run
	rowFormat    = "%-10s  %10s  %-*s  %s"
)

// String returns the plan for people: totals; a line a day with its size, a bar to scale, the verdict and the
// reason, where long runs of one verdict are folded; then what is in use or ignored, drift and warnings. It is at
// most 80 columns wide, and without colour.
func (p Plan) String() string {
	if p.Now.IsZero() {
		return "No plan."
	}
	var b picture
	b.totals(p)
	b.rows(p.rows())
	needed := slices.DeleteFunc(slices.Clone(p.Keeps), func(k Keep) bool { return k.Table.InUse == "" })
	b.list("In use:", len(needed), func(i int) string {
		return needed[i].Table.Name + ": " + needed[i].Table.InUse
	})
	b.list("Ignored, never touched:", len(p.Ignored), func(i int) string {
		return p.Ignored[i].Name + ": " + p.Ignored[i].Reason
	})
	b.list("Bookkeeping, tables and pointers that disagree:", len(p.Drift), func(i int) string {
		return fmt.Sprintf("%s: %s, %s", p.Drift[i].Table, p.Drift[i].Kind, size(p.Drift[i].Bytes))
	})
	b.list("Warnings:", len(p.Warnings), func(i int) string { return p.Warnings[i] })
	return strings.TrimSuffix(b.String(), "\n")
}

// picture is a plan as text.
type picture struct{ strings.Builder }

func (b *picture) totals(p Plan) {
	b.say("", "Plan of %s", p.Now.Format("2006-01-02 15:04:05 UTC"))
	b.say("", "Policy: %s", p.Policy)
	all := len(p.Drops) + len(p.Keeps)
	b.say("", "%d of %s go, %s of %s; %s stay", len(p.Drops), count(all, "table"), size(p.Bytes-p.BytesAfter), size(p.Bytes), size(p.BytesAfter))
	if p.Shortfall > 0 {
		b.say("", "%s above the limit stay all the same", size(p.Shortfall))
	}
	if c := p.MessageCut; c != nil {
		except := ""
		if len(c.Except) > 0 {
			except = ", but for the days of " + count(len(c.Except), "legal hold")
		}
		b.say("", "Messages before %s go%s", date(c.Before), except)
	}
}

// row is one table in the picture.
type row struct {
	Table
	bar     string // what its bar is made of
	verdict string
}

func (p Plan) rows() []row {
	rows := make([]row, 0, len(p.Drops)+len(p.Keeps))
	for _, d := range p.Drops {
		rows = append(rows, row{d.Table, "░", "drop  " + d.Reason.words()})
	}
	for _, k := range p.Keeps {
		words := make([]string, len(k.Reasons))
		for i, r := range k.Reasons {
			words[i] = r.words()
		}
		rows = append(rows, row{k.Table, "█", "keep  " + strings.Join(words, ", ")})
	}
	slices.SortStableFunc(rows, func(a, b row) int { return a.Day.Compare(b.Day) })
	return rows
}

func (r Reason) words() string { return strings.ReplaceAll(string(r), "_", " ") }

func (b *picture) rows(rows []row) {
	var largest int64
	for _, r := range rows {
		largest = max(largest, r.Bytes)
	}
	if len(rows) > 0 {
		b.WriteByte('\n')
	}
	for len(rows) > 0 {
		run := slices.IndexFunc(rows, func(r row) bool { return r.verdict != rows[0].verdict })
		if run < 0 {
			run = len(rows)
		}
		b.run(rows[:run], largest)
		rows = rows[run:]
	}
}

// run writes rows of one verdict.
func (b *picture) run(rows []row, largest int64) {
	middle := rows[:0]
	if len(rows) > longRun {
		middle = rows[runEdge : len(rows)-runEdge]
	}
	for i, r := range rows {
		switch {
		case i < runEdge || i >= runEdge+len(middle):
			b.row(r, largest)
		case i == runEdge:
			b.fold(middle)
		}
	}
}

func (b *picture) row(r row, largest int64) {
	bytes, bar := "?", ""
	if r.sized() {
		bytes, bar = size(r.Bytes), strings.Repeat(r.bar, barLength(r.Bytes, largest))
	}
	b.line(fmt.Sprintf(rowFormat, date(r.Day), bytes, barWidth, bar, r.verdict))
}

// barLength is at least one column for a table that isn't empty.
func barLength(bytes, largest int64) int {
	if bytes <= 0 {
		return 0
	}
	return max(1, int(math.Round(float64(bytes)/float64(largest)*barWidth)))
}

func (b *picture) fold(rows []row) {
	var sum int64
	for _, r := range rows {
		if r.sized() {
			sum = add(sum, r.Bytes)
		}
	}
	b.line(fmt.Sprintf(rowFormat, fmt.Sprintf("…%d more", len(rows)), size(sum), barWidth, "", rows[0].verdict))
}

// list writes a section, folded like the days.
func (b *picture) list(title string, n int, item func(i int) string) {
	if n == 0 {
		return
	}
	b.WriteString("\n" + title + "\n")
	for i := range n {
		switch {
		case n <= longRun || i < runEdge || i >= n-runEdge:
			b.say("  ", "%s", item(i))
		case i == runEdge:
			b.say("  ", "… %d more", n-2*runEdge)
		}
	}
}

// say writes a sentence, broken between words where it is wider than the picture.
func (b *picture) say(indent, format string, args ...any) {
	text := indent
	for _, word := range strings.Fields(fmt.Sprintf(format, args...)) {
		switch {
		case text == indent:
			text += word
		case utf8.RuneCountInString(text)+1+utf8.RuneCountInString(word) > pictureWidth:
			b.line(text)
			text = indent + "  " + word
		default:
			text += " " + word
		}
	}
	b.line(text)
}

// line writes one line, cut where it is wider than the picture. What a terminal would obey is not passed on.
func (b *picture) line(text string) {
	text = strings.TrimRight(text, " ")
	text = strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return utf8.RuneError
	}, text)
	if r := []rune(text); len(r) > pictureWidth {
		text = string(r[:pictureWidth-1]) + "…"
	}
	b.WriteString(text + "\n")
}
