package benchmark

import (
	"context"
	"database/sql"
	"fmt"
	"iter"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mailretention/mailretention/lease"
	"github.com/mailretention/mailretention/retention"
)

const (
	fleetKeeps   = 27 // days of each database that stay, beside today
	fleetGoes    = 2  // days that go
	fleetMails   = 20 // a day
	fleetFillers = 4  // that fill databases at once
)

// fleet is many small mailboxes on one server, which is reached through one pool.
type fleet struct {
	t      testing.TB
	server *server
	db     *sql.DB
	boxes  []*mailbox
	name   string // of the database with the leases
}

func (s *server) newFleet(t testing.TB, n int) *fleet {
	t.Helper()
	f := &fleet{t: t, server: s, db: s.open(t, ""), name: unique()}
	execute(t, s.admin, createDatabase(f.name))
	t.Cleanup(func() { s.dropDatabase(t, f.name) })
	for range n {
		m := &mailbox{t: t, name: unique(), server: s, content: content{perDay: evenly(1+fleetKeeps, (1+fleetKeeps)*fleetMails), keeps: fleetKeeps, bytes: messageBytes, lean: true}}
		t.Cleanup(m.drop)
		f.boxes = append(f.boxes, m)
	}
	s.prepare(t, func() { f.each(func(m *mailbox) { m.make() }) })
	return f
}

// expire adds the days that go.
func (f *fleet) expire() {
	f.t.Helper()
	f.server.prepare(f.t, func() {
		f.each(func(m *mailbox) {
			for ago := range fleetGoes {
				m.fill(1+m.keeps+ago, fleetMails)
			}
		})
	})
}

// each calls fn for each mailbox, several at once, while it has a pool of its own.
func (f *fleet) each(fn func(*mailbox)) {
	f.t.Helper()
	var work sync.WaitGroup
	for start := range fleetFillers {
		work.Go(func() {
			for i := start; i < len(f.boxes); i += fleetFillers {
				db := sql.OpenDB(connector(f.t, f.server.dsn(f.boxes[i].name), 0))
				f.boxes[i].db = db
				fn(f.boxes[i])
				_ = db.Close()
			}
		})
	}
	work.Wait()
}

// runners are those of all mailboxes, under leases of one table.
func (f *fleet) runners(leases *lease.Leases) iter.Seq[*retention.Runner] {
	return func(yield func(*retention.Runner) bool) {
		for _, m := range f.boxes {
			runner, err := retention.New(m.store(f.db, leases), retention.Config{Name: m.name, Policy: rawTables(m.keeps), Locker: leases})
			require.NoError(f.t, err)
			if !yield(runner) {
				return
			}
		}
	}
}

// leases returns those of a new table, and its name.
func (f *fleet) leases() (*lease.Leases, string) {
	f.t.Helper()
	table := f.name + "." + unique()
	leases, err := lease.New(f.server.open(f.t, ""), lease.Config{Table: table})
	require.NoError(f.t, err)
	require.NoError(f.t, leases.Provision(f.t.Context()))
	return leases, table
}

// naive goes through the fleet with the single statements.
func (f *fleet) naive(ctx context.Context) error {
	db := sql.OpenDB(connector(f.t, f.server.dsn(""), 0))
	defer db.Close()
	db.SetMaxOpenConns(1) // so that the database that is chosen stays
	for _, m := range f.boxes {
		if _, err := db.ExecContext(ctx, use(m.name)); err != nil {
			return err
		}
		m.db = db
		if _, err := naiveRaw(ctx, m); err != nil {
			return err
		}
	}
	return nil
}

// BenchmarkFleet works through many small databases, so many at once, against the single statements one after another.
func BenchmarkFleet(b *testing.B) {
	eachSetting(b, func(b *testing.B, s *server) {
		f := s.newFleet(b, *databases)
		for _, parallel := range []int{1, 8, 32} {
			b.Run(fmt.Sprintf("parallel=%d", parallel), func(b *testing.B) { f.race(b, parallel) })
		}
		b.Run("processes=2", f.processes)
		b.Run("sizes", f.sizes)
	})
}

// race compares RunAll with the single statements.
func (f *fleet) race(b *testing.B, parallel int) {
	var ours, naive []time.Duration
	for b.Loop() {
		inTurn(len(ours), func() {
			f.expire()
			leases, _ := f.leases()
			began := time.Now()
			require.NoError(b, retention.RunAll(b.Context(), f.runners(leases), parallel, func(r retention.Report, err error) {
				require.NoError(b, err)
				require.Equal(b, retention.OutcomeDone, r.Outcome)
			}))
			ours = append(ours, time.Since(began))
		}, func() {
			f.expire()
			began := time.Now()
			require.NoError(b, f.naive(b.Context()))
			naive = append(naive, time.Since(began))
		})
	}
	reportRates(b, len(f.boxes), ours, naive, "wall-x-naive")
}

// reportRates compares times for n databases with others; ratio names the figure.
func reportRates(b *testing.B, n int, ours, other []time.Duration, ratio string) {
	b.Helper()
	var rates, ratios []float64
	for i, took := range ours {
		rates = append(rates, float64(n)/took.Seconds())
		ratios = append(ratios, took.Seconds()/other[i].Seconds())
	}
	b.ReportMetric(float64(n)*1e9/median(rates), "ns/op")
	b.ReportMetric(median(rates), "databases/s")
	b.ReportMetric(median(ratios), ratio)
	b.ReportMetric(load(), "load")
}
