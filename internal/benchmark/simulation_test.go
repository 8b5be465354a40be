package benchmark

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mailretention/mailretention/retention"
)

// night is a fleet whose workers all begin at the same time, under a clock that is simulated: the runs are real, the servers are a model.
type night struct {
	databases int // each loses one raw table, as on every night
	servers   int // that the databases are spread over
	workers   int // processes that go through all databases, sharing them by leases
	parallel  int // databases that each works on at once
}

// What things cost, rounded from the figures in the README.
const (
	heldTime      = 500 * time.Microsecond // to find that another has it, or that it was done
	inventoryTime = 4 * time.Millisecond   // and the lease
	clearTime     = 8 * time.Millisecond   // of a small table: its references and its row in the bookkeeping
	dropTime      = 2 * time.Millisecond   // of a small file: a server drops one table after another
)

// took runs the night and returns how long it took and how often a database was done.
func (n night) took(t *testing.T) (wall time.Duration, runs int) {
	t.Helper()
	var servers []*modelServer
	for range n.servers {
		servers = append(servers, &modelServer{drops: make(chan struct{}, 1)})
	}
	leases := &modelLeases{done: map[string]bool{}}
	began := time.Now()
	var workers sync.WaitGroup
	for range n.workers {
		workers.Go(func() {
			err := retention.RunAll(t.Context(), n.runners(t, servers, leases), n.parallel, func(r retention.Report, err error) {
				if r.Outcome == retention.OutcomeDone {
					leases.Lock()
					runs++
					leases.Unlock()
				} else if !errors.Is(err, retention.ErrHeld) {
					t.Errorf("%s: %v", r, err)
				}
			})
			if err != nil {
				t.Error(err)
			}
		})
	}
	workers.Wait()
	return time.Since(began), runs
}

// runners are those of one worker, in an order of its own.
func (n night) runners(t *testing.T, servers []*modelServer, leases *modelLeases) iter.Seq[*retention.Runner] {
	order := rand.Perm(n.databases)
	return func(yield func(*retention.Runner) bool) {
		for _, i := range order {
			store := &modelStore{server: servers[i%len(servers)]}
			runner, err := retention.New(store, retention.Config{Name: fmt.Sprint(i), Policy: rawTables(2), Locker: leases})
			if err != nil {
				t.Error(err)
			}
			if err != nil || !yield(runner) {
				return
			}
		}
	}
}

// modelServer drops one table at a time.
type modelServer struct{ drops chan struct{} }

// modelStore is a database with four days, one of which goes.
type modelStore struct {
	server *modelServer
	gone   bool
}

func (s *modelStore) Inventory(context.Context) (retention.Inventory, error) {
	time.Sleep(inventoryTime)
	now := time.Now().UTC()
	inv := retention.Inventory{Now: now, Newest: now}
	for ago := range 4 {
		day := now.Truncate(24*time.Hour).AddDate(0, 0, -ago)
		if ago < 3 || !s.gone {
			inv.Tables = append(inv.Tables, retention.Table{Name: "raw-" + day.Format(time.DateOnly), Day: day, SizeKnown: true})
		}
	}
	return inv, nil
}

func (s *modelStore) Reconcile(context.Context) (int, error) {
	time.Sleep(inventoryTime)
	return 0, nil
}

func (s *modelStore) DropTable(context.Context, string, func(int64) error) error {
	time.Sleep(clearTime)
	s.server.drops <- struct{}{}
	time.Sleep(dropTime)
	<-s.server.drops
	s.gone = true
	return nil
}

func (s *modelStore) PruneMessages(context.Context, retention.Cut, func(int64) error) error {
	return nil
}

// modelLeases are leases that rest until the next night.
type modelLeases struct {
	sync.Mutex
	done map[string]bool
}

func (l *modelLeases) Do(ctx context.Context, name string, fn func(context.Context) error) error {
	l.Lock()
	done := l.done[name]
	l.done[name] = true
	l.Unlock()
	if done {
		time.Sleep(heldTime)
		return fmt.Errorf("%w: %s", retention.ErrHeld, name)
	}
	return fn(ctx)
}

// A night of ten thousand databases: each is done once, and what it takes is the work over the workers, or over the servers where
// these are the limit, and what each worker spends on finding what others have done.
func TestTenThousandDatabases(t *testing.T) {
	const n = 10_000
	each := 2*inventoryTime + clearTime + dropTime
	for _, night := range []night{
		{n, 1, 1, 1},
		{n, 1, 1, 8},
		{n, 1, 4, 8},
		{n, 10, 4, 8},
	} {
		t.Run(fmt.Sprintf("servers=%d/workers=%d/parallel=%d", night.servers, night.workers, night.parallel), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				wall, runs := night.took(t)
				require.Equal(t, n, runs, "each database is done once")
				atOnce := night.workers * night.parallel
				work := n*each/time.Duration(atOnce) + 2*n*heldTime*time.Duration(night.workers-1)/time.Duration(atOnce)
				servers := n * dropTime / time.Duration(night.servers)
				t.Logf("%v; by the work %v, by the servers %v", wall, work, servers)
				require.GreaterOrEqual(t, wall, max(n*each/time.Duration(atOnce), servers)*9/10)
				require.LessOrEqual(t, wall, (max(work, servers)+servers/10)*12/10)
			})
		})
	}
}
