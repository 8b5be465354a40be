package lease_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"
	"github.com/stretchr/testify/require"

	"github.com/mailretention/mailretention/internal/mysqltest"
	"github.com/mailretention/mailretention/lease"
)

// bare is the measure: an autocommit UPDATE of one row by a key like the lease's, with literals as the lease's statements
// have them, and bounded in time as they are.
const (
	bare    = "UPDATE bare SET n=n+1 WHERE name=x'78'"
	bounded = 10 * time.Second
)

func benchPool(b *testing.B) *sql.DB {
	b.Helper()
	db, _ := mysqltest.DB(b)
	db.SetMaxIdleConns(100)
	_, err := db.Exec("CREATE TABLE bare (name varbinary(255) PRIMARY KEY, n bigint NOT NULL)")
	require.NoError(b, err)
	_, err = db.Exec("INSERT INTO bare VALUES (x'78',0)")
	require.NoError(b, err)
	return db
}

// against times both by turns, so that they meet the same machine, and reports the ratio of what they typically take.
func against(b *testing.B, a, bare func() error) {
	b.Helper()
	var timesA, timesB []time.Duration
	timed := func(times *[]time.Duration, do func() error) {
		begin := time.Now()
		if err := do(); err != nil {
			b.Fatal(err)
		}
		*times = append(*times, time.Since(begin))
	}
	for b.Loop() {
		timed(&timesA, a)
		timed(&timesB, bare)
	}
	b.ReportMetric(float64(typical(timesA))/float64(typical(timesB)), "x-bare")
	b.ReportMetric(float64(typical(timesA).Nanoseconds()), "ns/call")
}

// typical is the mean of the middle half.
func typical(times []time.Duration) (mean time.Duration) {
	slices.Sort(times)
	middle := times[len(times)/4 : len(times)-len(times)/4]
	for _, t := range middle {
		mean += t
	}
	return mean / time.Duration(len(middle))
}

func median(times []time.Duration) time.Duration {
	slices.Sort(times)
	return times[len(times)/2]
}

func bareUpdate(b *testing.B, db *sql.DB) func() error {
	return func() error {
		ctx, cancel := context.WithTimeout(b.Context(), bounded)
		defer cancel()
		_, err := db.ExecContext(ctx, bare)
		return err
	}
}

func BenchmarkAcquireRelease(b *testing.B) {
	db := benchPool(b)
	leases := provisioned(b, db, lease.Config{})
	update := bareUpdate(b, db)
	against(b, func() error {
		l, err := leases.Acquire(b.Context(), "x")
		if err != nil {
			return err
		}
		return l.Release(b.Context())
	}, func() error { return errors.Join(update(), update()) })
}

func BenchmarkRenew(b *testing.B) {
	db := benchPool(b)
	l, err := provisioned(b, db, lease.Config{}).Acquire(b.Context(), "x")
	require.NoError(b, err)
	b.ReportAllocs()
	against(b, func() error { return l.Renew(b.Context()) }, bareUpdate(b, db))
}

func BenchmarkGuard(b *testing.B) {
	db := benchPool(b)
	leases := provisioned(b, db, lease.Config{})
	l, err := leases.Acquire(b.Context(), "x")
	require.NoError(b, err)
	ctx, cancel := l.Heartbeat(b.Context())
	defer cancel()
	inTx := func(do func(tx *sql.Tx) (time.Duration, error)) (time.Duration, error) {
		tx, err := db.BeginTx(ctx, nil)
		if err != nil {
			return 0, err
		}
		took, err := do(tx)
		return took, errors.Join(err, tx.Commit())
	}
	var guards, bares []time.Duration
	for b.Loop() { // the statement alone, inside a transaction
		took, err := inTx(func(tx *sql.Tx) (time.Duration, error) {
			begin := time.Now()
			err := leases.Guard(ctx, tx)
			return time.Since(begin), err
		})
		require.NoError(b, err)
		guards = append(guards, took)
		took, err = inTx(func(tx *sql.Tx) (time.Duration, error) {
			begin := time.Now()
			_, err := tx.ExecContext(ctx, bare)
			return time.Since(begin), err
		})
		require.NoError(b, err)
		bares = append(bares, took)
	}
	b.ReportMetric(float64(typical(guards))/float64(typical(bares)), "x-bare")
	b.ReportMetric(float64(typical(guards).Nanoseconds()), "ns/call")
}

func BenchmarkContenders(b *testing.B) {
	const contenders, raging = 64, 5 * time.Second
	db := benchPool(b)
	_, err := db.Exec(naiveTable)
	require.NoError(b, err)
	leases := provisioned(b, db, lease.Config{})
	fight := func(turn func(ctx context.Context, who int) error) (terms int, deadlocks int) {
		ctx, cancel := context.WithTimeout(b.Context(), raging)
		defer cancel()
		var mu sync.Mutex
		var running sync.WaitGroup
		for who := range contenders {
			running.Go(func() {
				for ctx.Err() == nil {
					err := turn(ctx, who)
					mu.Lock()
					if err == nil {
						terms++
					}
					if e, ok := errors.AsType[*mysql.MySQLError](err); ok && e.Number == 1213 {
						deadlocks++
					}
					mu.Unlock()
				}
			})
		}
		running.Wait()
		return terms, deadlocks
	}
	for b.Loop() {
		terms, deadlocks := fight(func(ctx context.Context, _ int) error {
			l, err := leases.Wait(ctx, "x")
			if err != nil {
				return err
			}
			return l.Release(ctx)
		})
		require.Zero(b, deadlocks)
		naive, naiveDeadlocks := fight(func(ctx context.Context, who int) error {
			n := &naiveLease{db: db, owner: fmt.Sprint(who), ttl: time.Minute}
			for pause := time.Millisecond; ; pause = min(2*pause, time.Second) { // as Wait does
				err := n.acquire(ctx, "x")
				if err == nil {
					return n.release(ctx, "x")
				}
				if !errors.Is(err, errNaiveHeld) {
					return err
				}
				time.Sleep(pause)
			}
		})
		b.ReportMetric(float64(terms)/raging.Seconds(), "terms/s")
		b.ReportMetric(float64(naive)/raging.Seconds(), "naive-terms/s")
		b.ReportMetric(float64(naiveDeadlocks)/raging.Seconds(), "naive-deadlocks/s")
		b.ReportMetric(float64(terms)/float64(naive), "x-naive")
	}
}

// 1,000 leases on one pool, each renewed in turn.
func BenchmarkRenewThousandLeases(b *testing.B) {
	const count, parallel = 1000, 8
	db := benchPool(b)
	db.SetMaxOpenConns(parallel)
	leases := provisioned(b, db, lease.Config{})
	var held []*lease.Lease
	for i := range count {
		l, err := leases.Acquire(b.Context(), heldName(i))
		require.NoError(b, err)
		held = append(held, l)
	}
	renewals := 0
	b.ReportAllocs()
	for b.Loop() {
		errs := make([]error, parallel)
		var running sync.WaitGroup
		for p := range parallel {
			running.Go(func() {
				for i := p; i < count; i += parallel {
					errs[p] = errors.Join(errs[p], held[i].Renew(b.Context()))
				}
			})
		}
		running.Wait()
		require.NoError(b, errors.Join(errs...))
		renewals += count
	}
	b.ReportMetric(float64(renewals)/b.Elapsed().Seconds(), "renewals/s")
}

// The time from a kill -9 of the holder's process until others have its leases: those that polled before, and those that begin then.
func BenchmarkTakeover(b *testing.B) {
	const ttl, each = time.Second, 20
	db := benchPool(b)
	db.SetMaxOpenConns(2 * each)
	leases := provisioned(b, db, lease.Config{TTL: ttl})
	var polled, cold []time.Duration
	for b.Loop() {
		took := takeovers(b, db, leases, ttl, each)
		polled, cold = append(polled, took[:each]...), append(cold, took[each:]...)
	}
	for name, times := range map[string][]time.Duration{"polled": polled, "cold": cold} {
		b.ReportMetric(median(times).Seconds()/ttl.Seconds(), name+"-p50-TTLs")
		b.ReportMetric(times[len(times)*9/10].Seconds()/ttl.Seconds(), name+"-p90-TTLs")
		b.ReportMetric(times[len(times)-1].Seconds()/ttl.Seconds(), name+"-max-TTLs")
	}
}

// takeovers returns how long each contender took: first those that polled, then those that began at the kill.
func takeovers(b *testing.B, db *sql.DB, leases *lease.Leases, ttl time.Duration, each int) []time.Duration {
	b.Helper()
	_, err := db.Exec("DELETE FROM leases")
	require.NoError(b, err)
	var name string
	require.NoError(b, db.QueryRow("SELECT DATABASE()").Scan(&name))
	holder := spawn(b, "holder", orders{DSN: mysqltest.DSN(b, name), TTL: ttl, Workers: 2 * each})
	require.Equal(b, "holding", holder.hear().State)
	took, errs := make([]time.Duration, 2*each), make([]error, 2*each)
	var killed time.Time
	kill := make(chan struct{})
	var running sync.WaitGroup
	for i := range took {
		running.Go(func() {
			if i >= each {
				<-kill
			}
			l, err := leases.Wait(b.Context(), heldName(i))
			if err == nil {
				took[i] = time.Since(killed)
				err = l.Release(b.Context())
			}
			errs[i] = err
		})
	}
	time.Sleep(ttl / 2) // some renewals later
	killed = time.Now()
	require.NoError(b, holder.cmd.Process.Kill())
	close(kill)
	running.Wait()
	require.NoError(b, errors.Join(errs...))
	return took
}
