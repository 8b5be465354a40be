package benchmark

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mailretention/mailretention/lease"
	"github.com/mailretention/mailretention/provisioner"
	"github.com/mailretention/mailretention/retention"
)

// networkTime is how long a network takes there and back, as between the zones of a data centre.
const networkTime = time.Millisecond

// BenchmarkNothingToDo runs where nothing has to go, in a small database and in a large one, against as many bare round trips; and in the
// small one again through a network.
func BenchmarkNothingToDo(b *testing.B) {
	eachSetting(b, func(b *testing.B, s *server) {
		far := *s
		far.away = networkTime
		for _, n := range []int{3000, *manyRows} {
			m := s.newMailbox(b, content{perDay: evenly(30, n), bytes: 10, lean: true})
			b.Run(fmt.Sprintf("messages=%d", n), func(b *testing.B) { m.nothing(b, s) })
			if n != *manyRows {
				b.Run(fmt.Sprintf("messages=%d/network=%v", n, networkTime), func(b *testing.B) { m.nothing(b, &far) })
			}
		}
	})
}

// nothing compares a run that has nothing to do, on a server, with as many round trips to it.
func (m *mailbox) nothing(b *testing.B, s *server) {
	statements := m.statementsOfNothing()
	db := s.open(b, m.name)
	leases, err := lease.New(s.open(b, m.name), lease.Config{})
	require.NoError(b, err)
	store, err := provisioner.New(db, provisioner.Config{Database: m.name, Guard: leases.Guard})
	require.NoError(b, err)
	runner, err := retention.New(store, retention.Config{Name: m.name, Policy: aMonth(), Locker: leases})
	require.NoError(b, err)
	compare(b, func(ctx context.Context) error {
		report, err := runner.Run(ctx)
		require.Equal(b, retention.OutcomeNothingToDo, report.Outcome)
		return err
	}, roundTrips(db, statements))
	b.ReportMetric(float64(len(statements)), "statements")
}

// BenchmarkInventory reads all that a plan needs of a database with 400 raw tables, against the bare listing query alone.
func BenchmarkInventory(b *testing.B) {
	const tables = 400
	eachSetting(b, func(b *testing.B, s *server) {
		m := s.newMailbox(b, content{perDay: evenly(tables, tables*10), bytes: 10, lean: true})
		store := m.store(m.db, nil)
		compare(b, func(ctx context.Context) error {
			inv, err := store.Inventory(ctx)
			require.Len(b, inv.Tables, tables)
			return err
		}, func(ctx context.Context) error {
			names, err := column[string](ctx, m.db, listTables, m.name)
			require.Len(b, names, tables)
			return err
		})
	})
}

// compare does two things in turn, and reports the median of their ratios, and that of the first's times as the time per operation.
func compare(b *testing.B, ours, bare func(context.Context) error) {
	b.Helper()
	var ratios, times []float64
	took := func(do func(context.Context) error) float64 {
		began := time.Now()
		require.NoError(b, do(b.Context()))
		return float64(time.Since(began))
	}
	for b.Loop() {
		mine := took(ours)
		times, ratios = append(times, mine), append(ratios, mine/took(bare))
	}
	b.ReportMetric(median(times), "ns/op")
	b.ReportMetric(median(ratios), "x-bare")
	b.ReportMetric(load(), "load")
}
