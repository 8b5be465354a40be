package integration

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mailretention/mailretention/retention"
)

// fillDays makes a raw table without messages, with a row in the bookkeeping, for each of these days.
func (m *mailbox) fillDays(from, to int) {
	m.t.Helper()
	for back := from; back <= to; back++ {
		m.fill(back, 0, 0)
	}
}

// After a long outage all but today's table has expired: a person decides, and then it can go step by step.
func TestAfterALongOutageNothingGoesUntilAPersonAllowsIt(t *testing.T) {
	const expired, step = 200, 150
	m := newMailbox(t)
	m.fill(0, 1, 100)
	m.fillDays(31, 30+expired)
	policy := retention.Policy{RawDays: new(30)}
	run := func() (retention.Report, error) {
		return retention.Run(t.Context(), m.store, retention.Config{Name: "test", Policy: policy, MaxDrops: step})
	}
	report, err := run()
	require.ErrorIs(t, err, retention.ErrWouldEmpty)
	require.Equal(t, retention.OutcomeRefused, report.Outcome)
	require.Len(t, report.Plan.Drops, expired)
	require.Len(t, m.tables(), 1+expired)

	policy.AllowEmpty = true
	report, err = run()
	require.NoError(t, err)
	require.Equal(t, retention.OutcomePartial, report.Outcome)
	require.Contains(t, report.Stopped, "50 tables left")
	require.Equal(t, m.table(30+expired), dropped(report)[0], "the oldest first")
	require.Len(t, m.tables(), 1+expired-step)
	report, err = run()
	require.NoError(t, err)
	require.Equal(t, retention.OutcomeDone, report.Outcome)
	require.Equal(t, m.days(0), m.tables())
	m.requireBooksAgree()
}

func TestThreeExpiredTablesGoWithoutAsking(t *testing.T) {
	m := newMailbox(t)
	m.fill(0, 1, 100)
	m.fillDays(31, 33)
	require.Equal(t, m.days(31, 32, 33), dropped(m.run(retention.Policy{RawDays: new(30)})))
}

func TestMessageCutFarAboveTheNewestMessageIsRefused(t *testing.T) {
	m := newMailbox(t)
	m.fill(30, 5, 100)
	before := m.state()
	policy := retention.Policy{MessageDays: new(10)}
	_, err := retention.Run(t.Context(), m.store, retention.Config{Name: "test", Policy: policy})
	require.ErrorIs(t, err, retention.ErrWouldEmpty)
	requireSame(t, before, m.state(), "")
	policy.AllowEmpty = true
	require.EqualValues(t, 5, m.run(policy).RowsPruned)
}

// A table of a day to come is never touched, and its size makes no other go.
func TestFutureTableMakesNoOtherGo(t *testing.T) {
	m := newMailbox(t)
	for back := range 5 {
		m.fill(back, 2, 100)
	}
	m.fillDays(-30, -30)
	m.exec("UPDATE raw_message_sizes SET size = ? WHERE table_name = ?", int64(orphanBytes), m.table(-30))
	report := m.run(sizeLimit(1000))
	require.Equal(t, retention.OutcomeNothingToDo, report.Outcome)
	require.NotEmpty(t, report.Plan.Warnings)
	require.Equal(t, m.days(-30, 0, 1, 2, 3, 4), m.tables())
}
