package integration

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mailretention/mailretention/retention"
)

// everythingGoes is the strictest policy that there is.
func everythingGoes(holds ...retention.Hold) retention.Policy {
	return retention.Policy{RawDays: new(0), RawBytes: new(int64(0)), MessageDays: new(0), Holds: holds, AllowEmpty: true}
}

// hold is over the days from so many back to so many back; never: an open end.
func (m *mailbox) hold(from, to int) retention.Hold {
	h := retention.Hold{Reason: "court"}
	if from != never {
		h.From = m.day(from)
	}
	if to != never {
		h.To = m.day(to)
	}
	return h
}

const never = 1 << 20

// A hold beats every limit, and keeps tables, messages and their children.
func TestLegalHoldsBeatEveryLimit(t *testing.T) {
	type holds = []retention.Hold
	for name, test := range map[string]struct {
		holds func(m *mailbox) holds
		stay  []int // beside today and yesterday
	}{
		"none":                  {func(*mailbox) holds { return nil }, nil},
		"a day":                 {func(m *mailbox) holds { return holds{m.hold(4, 4)} }, []int{4}},
		"days":                  {func(m *mailbox) holds { return holds{m.hold(5, 3)} }, []int{3, 4, 5}},
		"all days":              {func(m *mailbox) holds { return holds{m.hold(never, never)} }, []int{2, 3, 4, 5, 6}},
		"open towards the past": {func(m *mailbox) holds { return holds{m.hold(never, 4)} }, []int{4, 5, 6}},
		"open towards today":    {func(m *mailbox) holds { return holds{m.hold(4, never)} }, []int{2, 3, 4}},
		"overlapping":           {func(m *mailbox) holds { return holds{m.hold(5, 4), m.hold(4, 3), m.hold(4, 4)} }, []int{3, 4, 5}},
	} {
		t.Run(name, func(t *testing.T) {
			m := newMailbox(t)
			for back := range 7 {
				m.fill(back, 2, 100)
			}
			stay := append([]int{0, 1}, test.stay...)
			report := m.run(everythingGoes(test.holds(m)...))
			require.Len(t, dropped(report), 7-len(stay))
			require.Equal(t, m.days(stay...), m.tables())
			for _, back := range stay {
				require.Len(t, m.ids(back), 2)
			}
			require.EqualValues(t, 2*len(stay), m.count("SELECT COUNT(*) FROM messages"))
			require.EqualValues(t, 2*len(stay), m.count("SELECT COUNT(*) FROM deliveries"))
			m.requireBooksAgree()
		})
	}
}

// A hold that is given while a run works is heeded from its next step on.
func TestLegalHoldGivenDuringARun(t *testing.T) {
	for name, test := range map[string]struct {
		moment        retention.EventKind
		ofTable, kept bool // the event is a table's; the day's table is kept and not its messages alone
	}{
		"between plan and drop":       {moment: retention.EventPlanned, kept: true},
		"between batches of a table":  {moment: retention.EventBatch, ofTable: true, kept: true},
		"between tables":              {moment: retention.EventDropped, ofTable: true, kept: true},
		"between batches of messages": {moment: retention.EventBatch},
	} {
		t.Run(name, func(t *testing.T) {
			m := newMailbox(t)
			m.fill(8, twoBatches, 100)
			m.fill(6, 5, 100)
			m.fill(0, 1, 100)
			var given []retention.Hold
			report, err := retention.Run(t.Context(), m.store, retention.Config{
				Name: "test", Policy: retention.Policy{RawDays: new(3), MessageDays: new(3)},
				Holds: func(context.Context) ([]retention.Hold, error) { return given, nil },
				OnEvent: func(e retention.Event) {
					if e.Kind == test.moment && (e.Table != "") == test.ofTable {
						given = []retention.Hold{m.hold(6, 6)}
					}
				},
			})
			require.NoError(t, err)
			require.Equal(t, retention.OutcomeDone, report.Outcome)
			require.EqualValues(t, twoBatches, report.RowsPruned)
			require.EqualValues(t, 6, m.count("SELECT COUNT(*) FROM messages"))
			require.EqualValues(t, 6, m.count("SELECT COUNT(*) FROM deliveries"))
			if !test.kept {
				require.Equal(t, m.days(8, 6), dropped(report))
				return
			}
			verdict := m.verdict(report, 6)
			require.Equal(t, retention.VerdictKept, verdict.Verdict)
			require.ErrorContains(t, verdict.Err, "court")
			require.Equal(t, m.days(0, 6), m.tables())
			require.Len(t, m.ids(6), 5)
		})
	}
}

// Holds that can't be read are holds over everything, whenever that is.
func TestUnreadableLegalHoldsProtectEverything(t *testing.T) {
	unreadable := errors.New("the case database is gone")
	for name, from := range map[string]retention.EventKind{
		"from the start": "", "after the plan": retention.EventPlanned, "after the first batch": retention.EventBatch,
	} {
		t.Run(name, func(t *testing.T) {
			m := newMailbox(t)
			m.fill(0, 1, 100)
			m.fill(5, twoBatches, 100)
			m.fill(6, 5, 100)
			fails := from == ""
			report, err := retention.Run(t.Context(), m.store, retention.Config{
				Name: "test", Policy: retention.Policy{RawDays: new(3), MessageDays: new(3)},
				Holds: func(context.Context) ([]retention.Hold, error) {
					if fails {
						return nil, unreadable
					}
					return nil, nil
				},
				OnEvent: func(e retention.Event) { fails = fails || e.Kind == from },
			})
			require.ErrorIs(t, err, retention.ErrRefused)
			require.ErrorIs(t, err, unreadable)
			require.Equal(t, retention.OutcomeRefused, report.Outcome)
			require.Equal(t, m.days(0, 5, 6), m.tables())
			require.EqualValues(t, 1+twoBatches+5, m.count("SELECT COUNT(*) FROM messages"))
		})
	}
}
