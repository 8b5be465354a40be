package main

import (
	"fmt"
	"io"
	"sync/atomic"

	"github.com/vbauerster/mpb/v8"
	"github.com/vbauerster/mpb/v8/decor"

	"github.com/mailretention/mailretention/retention"
)

const (
	barWidth  = 64 // columns
	nameWidth = 24
)

// progress shows a bar for each server that is at work and one for all. Where w is no terminal it shows nothing.
type progress struct {
	bars *mpb.Progress
	all  *mpb.Bar
}

func newProgress(w io.Writer, servers int) *progress {
	bars := mpb.New(mpb.WithOutput(w), mpb.WithWidth(barWidth))
	all := bars.AddBar(int64(servers),
		mpb.BarPriority(servers), // below the others
		mpb.PrependDecorators(decor.Name("servers", decor.WC{W: nameWidth, C: decor.DindentRight})),
		mpb.AppendDecorators(decor.CountersNoUnit(" %d of %d")))
	return &progress{bars: bars, all: all}
}

// end takes the bars away.
func (p *progress) end() { p.bars.Shutdown() }

// of returns what follows the events of one server's run.
func (p *progress) of(s server, maxDrops int) func(retention.Event) {
	var step atomic.Value // string: what it is at
	var bar *mpb.Bar
	var rows int64
	step.Store("")
	return func(e retention.Event) {
		switch e.Kind {
		case retention.EventPlanned:
			bar = p.add(s, steps(e.Report.Plan, maxDrops), &step)
		case retention.EventDropping:
			rows = 0
			step.Store(e.Table)
		case retention.EventBatch:
			rows += e.Rows
			step.Store(fmt.Sprintf("%s, %d rows", stepName(e.Table), rows))
		case retention.EventDropped, retention.EventKept, retention.EventFailed, retention.EventPruned:
			rows = 0
			bar.Increment()
		case retention.EventFinished:
			if bar != nil {
				bar.SetTotal(-1, true)
			}
			p.all.Increment()
		}
	}
}

func (p *progress) add(s server, total int, step *atomic.Value) *mpb.Bar {
	return p.bars.AddBar(int64(total),
		mpb.BarRemoveOnComplete(),
		mpb.PrependDecorators(decor.Name(s.path(), decor.WC{W: nameWidth, C: decor.DindentRight})),
		mpb.AppendDecorators(decor.CountersNoUnit(" %d of %d "), decor.Any(func(decor.Statistics) string { return step.Load().(string) })))
}

// steps is how many tables the run drops, and one more for the messages.
func steps(p retention.Plan, maxDrops int) int {
	n := len(p.Drops)
	if maxDrops > 0 {
		n = min(n, maxDrops)
	}
	if p.MessageCut != nil {
		n++
	}
	return n
}

func stepName(table string) string {
	if table == "" {
		return "messages"
	}
	return table
}
