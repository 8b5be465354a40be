package integration

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mailretention/mailretention/lease"
	"github.com/mailretention/mailretention/provisioner"
	"github.com/mailretention/mailretention/retention"
)

const rounds = 100

type ending struct {
	report retention.Report
	err    error
}

// The fault that began it all: two workers on one database, and the second met a table that the first had dropped.
func TestRunnersAtOnceWithoutLeaseNeverFail(t *testing.T) {
	for name, runners := range map[string]int{"two": 2, "sixteen": 16} {
		t.Run(name, func(t *testing.T) {
			m := newMailbox(t)
			m.db.SetMaxIdleConns(2 * runners)
			policy := retention.Policy{RawDays: new(3), MessageDays: new(5)}
			kept := m.days(0, 1, 3)
			for _, back := range []int{0, 1, 3} {
				m.fill(back, 3, 100)
			}
			for range rounds {
				m.fill(4, 5, 100)
				m.fill(6, 5, 100)
				endings := together(runners, func(int) ending {
					report, err := retention.Run(t.Context(), m.store, retention.Config{Name: "test", Policy: policy})
					return ending{report, err}
				})
				var droppedBySome []string
				for _, e := range endings {
					require.NoError(t, e.err)
					require.Subset(t, m.days(4, 6), dropped(e.report))
					droppedBySome = append(droppedBySome, dropped(e.report)...)
				}
				slices.Sort(droppedBySome)
				require.Equal(t, m.days(4, 6), slices.Compact(droppedBySome))
				require.Equal(t, kept, m.tables())
			}
			m.requireBooksAgree()
			require.EqualValues(t, 9+rounds*5, m.count("SELECT COUNT(*) FROM messages"), "the rows of day 6 are gone, all others are there")
			require.EqualValues(t, 9+rounds*5, m.count("SELECT COUNT(*) FROM deliveries"))
		})
	}
}

func TestRunnersAtOnceWithLeaseDropEachTableOnce(t *testing.T) {
	const runners = 16
	m := newMailbox(t)
	m.db.SetMaxIdleConns(2 * runners)
	policy := retention.Policy{RawDays: new(3)}
	m.fill(0, 3, 100)
	m.fill(3, 3, 100)
	var configs []retention.Config
	var stores []*provisioner.Provisioner
	for range runners {
		leases := m.leases(lease.Config{})
		stores = append(stores, m.provisioner(m.db, provisioner.Config{Guard: leases.Guard}))
		configs = append(configs, retention.Config{Name: "test", Policy: policy, Locker: leases})
	}
	for range rounds {
		m.fill(4, 5, 100)
		m.fill(6, 5, 100)
		endings := together(runners, func(i int) ending {
			report, err := retention.Run(t.Context(), stores[i], configs[i])
			return ending{report, err}
		})
		var all []string
		for _, e := range endings {
			all = append(all, dropped(e.report)...)
			switch e.report.Outcome {
			case retention.OutcomeDone, retention.OutcomeNothingToDo:
				require.NoError(t, e.err)
			case retention.OutcomeHeld:
				require.ErrorIs(t, e.err, retention.ErrHeld)
				require.ErrorIs(t, e.err, lease.ErrHeld)
			default:
				require.NoError(t, e.err, "outcome %s", e.report.Outcome)
				t.Fatalf("outcome %s", e.report.Outcome)
			}
		}
		slices.Sort(all)
		require.Equal(t, m.days(4, 6), all, "each by exactly one")
	}
	require.Equal(t, m.days(0, 3), m.tables())
	m.requireBooksAgree()
}

// A writer makes today's table, books into it and points at it while retention runs over the same database.
func TestCreatorsAndRetentionAtOnceOnTodaysTable(t *testing.T) {
	const creators, runs = 8, 20
	m := newMailbox(t)
	m.db.SetMaxIdleConns(2 * creators)
	ctx, stop := context.WithTimeout(t.Context(), time.Minute)
	defer stop()
	policy := retention.Policy{RawDays: new(0), RawBytes: new(int64(0)), MessageDays: new(0)}
	booked := together(creators+2, func(i int) error {
		if i >= creators {
			for range runs {
				if _, err := retention.Run(ctx, m.store, retention.Config{Name: "test", Policy: policy}); err != nil {
					return err
				}
			}
			return nil
		}
		for range runs {
			if _, err := m.store.EnsureDay(ctx, m.today); err != nil {
				return err
			}
			err := m.store.InsertInto(ctx, m.today, func(ctx context.Context, table string) (int64, error) {
				_, err := m.db.ExecContext(ctx, "INSERT INTO "+m.store.Ident(table)+" (data) VALUES ('mail')")
				return 10, err
			})
			if err != nil {
				return err
			}
		}
		return nil
	})
	require.NoError(t, errors.Join(booked...))
	require.Equal(t, m.days(0), m.tables())
	require.EqualValues(t, creators*runs*10, m.count("SELECT SUM(size) FROM raw_message_sizes WHERE table_name = ?", m.table(0)))
	require.EqualValues(t, 1, m.count("SELECT COUNT(*) FROM raw_message_sizes"))
	require.EqualValues(t, creators*runs, m.count("SELECT COUNT(*) FROM "+m.store.Ident(m.table(0))))
}
