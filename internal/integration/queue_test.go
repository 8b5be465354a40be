package integration

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mailretention/mailretention/internal/faultsql"
	"github.com/mailretention/mailretention/provisioner"
	"github.com/mailretention/mailretention/retention"
)

const manyPending = 200_000

func TestQueuedAndHeldMailBeatTheSizeLimit(t *testing.T) {
	m := newMailbox(t)
	for _, back := range []int{0, 1, 5, 6, 7} {
		m.fill(back, 3, 100)
	}
	w := m.worker()
	defer w.die()
	m.queue = m.ids(7)[1:2] // the oldest
	m.exec("UPDATE messages SET held = 1 WHERE id = ?", m.ids(6)[0])
	before := m.state()

	run := func() (retention.Report, error) {
		return retention.Run(t.Context(), w.store, retention.Config{Name: "test", Policy: sizeLimit(1)})
	}
	report, err := run()
	require.NoError(t, err)
	require.Equal(t, m.days(5), dropped(report))
	require.EqualValues(t, 4*300-1, report.Plan.Shortfall)
	for back, why := range map[int]string{7: "still to be sent", 6: "held"} {
		for _, keep := range report.Plan.Keeps {
			if keep.Table.Name == m.table(back) {
				require.Equal(t, []retention.Reason{retention.ReasonInUse}, keep.Reasons)
				require.Contains(t, keep.Table.InUse, why)
			}
		}
		require.Len(t, m.ids(back), 3)
	}
	require.Equal(t, m.days(0, 1, 6, 7), m.tables())
	requireNothingLost(t, before, m.state(), m.state(), "of what is queued or held")

	m.queue = nil
	m.exec("UPDATE messages SET held = 0")
	report, err = run()
	require.NoError(t, err)
	require.Equal(t, m.days(6, 7), dropped(report), "they go as soon as nobody needs them")
	m.requireBooksAgree()
}

// A message that comes to be needed after the plan keeps its table and its pointer, whenever that is.
func TestMailThatIsNeededAfterThePlanStays(t *testing.T) {
	needs := map[string]func(m *mailbox, id int64){
		"queued": func(m *mailbox, id int64) { m.queue = append(m.queue, id) },
		"held":   func(m *mailbox, id int64) { m.exec("UPDATE messages SET held = 1 WHERE id = ?", id) },
	}
	moments := map[string]func(cfg *retention.Config, faults *faultsql.Connector, meanwhile func()){
		"after the plan": func(cfg *retention.Config, _ *faultsql.Connector, meanwhile func()) {
			cfg.OnEvent = func(e retention.Event) {
				if e.Kind == retention.EventPlanned {
					meanwhile()
				}
			}
		},
		"between two batches": func(cfg *retention.Config, _ *faultsql.Connector, meanwhile func()) {
			first := true
			cfg.OnEvent = func(e retention.Event) {
				if e.Kind == retention.EventBatch && first {
					first = false
					meanwhile()
				}
			}
		},
		"just before the drop": func(_ *retention.Config, faults *faultsql.Connector, meanwhile func()) {
			faults.Arm(faultsql.Fault{Text: "CONNECTION_ID()", Before: meanwhile})
		},
	}
	for need, needed := range needs {
		for moment, at := range moments {
			t.Run(need+" "+moment, func(t *testing.T) {
				m := newMailbox(t)
				m.fill(0, 1, 10)
				m.fill(5, twoBatches, 10)
				w := m.worker()
				defer w.die()
				all := m.ids(5)
				last := all[twoBatches-1]
				cfg := retention.Config{Name: "test", Policy: retention.Policy{RawDays: new(3)}}
				at(&cfg, w.faults, func() {
					if len(m.ids(5)) == 0 { // a writer that was slow, just now
						m.exec("UPDATE messages SET raw_table = ?, raw_headers_id = 1, raw_body_id = 2 WHERE id = ?", m.table(5), last)
					}
					needed(m, last)
				})
				report, err := retention.Run(t.Context(), w.store, cfg)
				require.NoError(t, err)
				verdict := m.verdict(report, 5)
				require.Equal(t, retention.VerdictKept, verdict.Verdict)
				require.ErrorIs(t, verdict.Err, retention.ErrInUse)
				require.Equal(t, []int64{last}, m.ids(5))
				require.Equal(t, m.days(0, 5), m.tables())
				require.EqualValues(t, 1, m.count("SELECT COUNT(*) FROM raw_message_sizes WHERE table_name = ?", m.table(5)))
			})
		}
	}
}

// A queue that can't be read protects everything from that moment on.
func TestUnreadableQueueIsRefusedAndProtectsEverything(t *testing.T) {
	unreadable := errors.New("the queue's database is gone")
	for name, at := range map[string]struct {
		moment  retention.EventKind // "": before the run
		dropped int
	}{
		"from the start":          {"", 0},
		"after the plan":          {retention.EventPlanned, 0},
		"after the first table":   {retention.EventDropped, 1},
		"while the first is done": {retention.EventBatch, 1},
	} {
		t.Run(name, func(t *testing.T) {
			m := newMailbox(t)
			for _, back := range []int{0, 1, 5, 6} {
				m.fill(back, 3, 100)
			}
			before := m.state()
			fails := at.moment == ""
			store := m.provisioner(m.db, pendingFunc(func() ([]int64, error) {
				if fails {
					return nil, unreadable
				}
				return nil, nil
			}))
			report, err := retention.Run(t.Context(), store, retention.Config{
				Name: "test", Policy: retention.Policy{RawDays: new(3), MessageDays: new(3)},
				OnEvent: func(e retention.Event) { fails = fails || e.Kind == at.moment },
			})
			require.ErrorIs(t, err, retention.ErrRefused)
			require.ErrorIs(t, err, unreadable)
			require.Equal(t, retention.OutcomeRefused, report.Outcome)
			require.Contains(t, report.Stopped, unreadable.Error())
			require.Len(t, dropped(report), at.dropped)
			require.EqualValues(t, 12, m.count("SELECT COUNT(*) FROM messages"), "no message is pruned")
			if at.dropped == 0 {
				requireSame(t, before, m.state(), "")
			}
		})
	}
}

func TestTwoHundredThousandPendingMessages(t *testing.T) {
	m := newMailbox(t)
	m.fill(0, 1, 10)
	m.fill(5, twoBatches, 10)
	m.fill(6, twoBatches, 10)
	first := m.ids(5)[0]
	var queue []int64
	for i := range int64(manyPending) {
		queue = append(queue, first+i*2) // every second one of both days, and ids that there are not
	}
	store := m.provisioner(m.db, pendingFunc(func() ([]int64, error) { return queue, nil }))
	report, err := retention.Run(t.Context(), store, retention.Config{Name: "test", Policy: retention.Policy{RawDays: new(3), MessageDays: new(3)}})
	require.NoError(t, err)
	require.Empty(t, report.Plan.Drops)
	require.EqualValues(t, twoBatches, report.RowsPruned, "the others")
	require.Len(t, m.ids(5), twoBatches/2)
	require.Len(t, m.ids(6), twoBatches/2)
}

func pendingFunc(ask func() ([]int64, error)) provisioner.Config {
	return provisioner.Config{Pending: func(context.Context) ([]int64, error) { return ask() }}
}
