package provisioner_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mailretention/mailretention/internal/faultsql"
	"github.com/mailretention/mailretention/internal/mysqlerr"
	"github.com/mailretention/mailretention/provisioner"
	"github.com/mailretention/mailretention/retention"
)

// TestPruneMessages shows for each message, a time before or after the cut, what becomes of it.
func TestPruneMessages(t *testing.T) {
	const (
		day = 24 * time.Hour
		old = "cut - 86400"
	)
	cutOf := func(s *store) time.Time { return s.today.Add(-day) }
	hold := func(s *store, from, to int) retention.Hold { // days before the cut, 0: open
		var h retention.Hold
		if from != 0 {
			h.From = cutOf(s).Add(-time.Duration(from) * day)
		}
		if to != 0 {
			h.To = cutOf(s).Add(-time.Duration(to) * day)
		}
		return h
	}
	type message struct {
		time    string // an SQL expression in which cut is the cut
		held    bool
		pending bool
		stays   bool
	}
	for name, test := range map[string]struct {
		messages []message
		except   func(s *store) []retention.Hold
	}{
		"each by its own time": {messages: []message{
			{time: old}, {time: "cut", stays: true}, {time: old}, {time: "cut + 1", stays: true}, {time: old},
		}},
		"six decimals at the cut": {messages: []message{
			{time: "cut - 0.000001"}, {time: "cut", stays: true}, {time: "cut + 0.000001", stays: true}, {time: "cut - 0.999999"},
		}},
		"no time": {messages: []message{
			{time: "NULL", stays: true}, {time: "0", stays: true}, {time: old}, {time: "-5", stays: true}, {time: "1"}, {time: "0.000001"},
		}},
		"in the future": {messages: []message{{time: "cut + 86400*1000", stays: true}, {time: old}}},
		"held and pending": {messages: []message{
			{time: old, held: true, stays: true}, {time: old, pending: true, stays: true}, {time: old}, {time: old, held: true, pending: true, stays: true},
		}},
		"a day on hold": {
			except: func(s *store) []retention.Hold { return []retention.Hold{hold(s, 3, 3)} },
			messages: []message{
				{time: "cut - 3*86400 - 0.000001"}, {time: "cut - 3*86400", stays: true}, {time: "cut - 2*86400 - 0.000001", stays: true}, {time: "cut - 2*86400"},
			},
		},
		"holds that overlap": {
			except: func(s *store) []retention.Hold { return []retention.Hold{hold(s, 5, 3), hold(s, 4, 2)} },
			messages: []message{
				{time: "cut - 6*86400"}, {time: "cut - 5*86400", stays: true}, {time: "cut - 4*86400", stays: true}, {time: "cut - 2*86400", stays: true}, {time: "cut - 86400"},
			},
		},
		"a hold without an end": {
			except:   func(s *store) []retention.Hold { return []retention.Hold{hold(s, 3, 0)} },
			messages: []message{{time: "cut - 3*86400 - 1"}, {time: "cut - 3*86400", stays: true}, {time: old, stays: true}},
		},
		"a hold without a beginning": {
			except:   func(s *store) []retention.Hold { return []retention.Hold{hold(s, 0, 3)} },
			messages: []message{{time: "1", stays: true}, {time: "cut - 2*86400 - 1", stays: true}, {time: "cut - 2*86400"}},
		},
		"a hold on everything": {
			except:   func(*store) []retention.Hold { return []retention.Hold{{}} },
			messages: []message{{time: "1", stays: true}, {time: old, stays: true}},
		},
	} {
		for variant, probe := range map[string]string{"with a probe": provisioner.PostalSchema().Messages.Probe, "without": ""} {
			t.Run(name+" "+variant, func(t *testing.T) {
				q := &queue{}
				schema := provisioner.PostalSchema()
				schema.Messages.Probe = probe
				s := provisioned(t, provisioner.Config{Pending: q.Pending, Schema: schema})
				var stay []int64
				for n, m := range test.messages {
					id := int64(7 * (n + 1)) // with gaps
					at := strings.ReplaceAll(m.time, "cut", fmt.Sprint(cutOf(s).Unix()))
					s.exec(fmt.Sprintf("INSERT INTO %s (id, scope, spam, timestamp, held) VALUES (%d, 'outgoing', 0, %s, %v)", s.Ident("messages"), id, at, m.held))
					s.addChildren(id)
					if m.pending {
						q.add(id)
					}
					if m.stays {
						stay = append(stay, id)
					}
				}
				cut := retention.Cut{Before: cutOf(s)}
				if test.except != nil {
					cut.Except = test.except(s)
				}
				var rows int64
				require.NoError(t, s.PruneMessages(t.Context(), cut, func(n int64) error { rows += n; return nil }))
				s.requireMessages(stay)
				require.EqualValues(t, len(test.messages)-len(stay), rows)
			})
		}
	}
}

// prune prunes all messages before today.
func (s *store) prune() error {
	return s.PruneMessages(s.t.Context(), retention.Cut{Before: s.today}, nil)
}

func TestPruneOnlyTheNewestId(t *testing.T) {
	s := provisioned(t, provisioner.Config{})
	first := s.addMessages(0, 3000)
	odd := s.addMessages(730, 1)
	s.addChildren(first)
	s.addChildren(odd)
	require.NoError(t, s.prune())
	require.Len(t, s.ids("SELECT id FROM "+s.Ident("messages")), 3000)
	for _, child := range provisioner.PostalSchema().Children {
		require.Equal(t, []int64{first}, s.ids("SELECT message_id FROM "+s.Ident(child.Name)))
	}
}

// More old messages behind young ones than a probe reads: then the walk goes on to the end.
func TestPruneManyBehindYoungOnes(t *testing.T) {
	s := provisioned(t, provisioner.Config{})
	s.addMessages(3, 100)
	young := s.addMessages(0, 900)
	s.addMessages(3, 2500)
	s.addMessages(0, 500)
	s.addMessages(9, 700)
	require.NoError(t, s.prune())
	ids := s.ids("SELECT id FROM " + s.Ident("messages") + " ORDER BY id")
	require.Len(t, ids, 1400)
	require.Equal(t, young, ids[0])
}

// With nothing to do, pruning reads the first messages and asks the probe, however many messages there are.
func TestPruneWithNothingToDo(t *testing.T) {
	s := provisioned(t, provisioner.Config{})
	p, faults := s.faulty(provisioner.Config{})
	s.addMessages(0, 5000)
	require.NoError(t, p.PruneMessages(t.Context(), retention.Cut{Before: s.today}, nil))
	faults.Reset()
	require.NoError(t, p.PruneMessages(t.Context(), retention.Cut{Before: s.today}, nil))
	require.Len(t, faults.Log(), 2, "%q", faults.Log())
}

func TestPruneWithNothingButPending(t *testing.T) {
	q := &queue{}
	s := provisioned(t, provisioner.Config{Pending: q.Pending})
	p, faults := s.faulty(provisioner.Config{Pending: q.Pending})
	s.addMessages(0, 1000)
	first := s.addMessages(5, 1500)
	for id := range int64(1500) {
		q.add(first + id)
	}
	require.NoError(t, p.PruneMessages(t.Context(), retention.Cut{Before: s.today}, nil))
	require.Less(t, faults.Count(), 6, "there was no walk: %q", faults.Log())
	require.Len(t, s.ids("SELECT id FROM "+s.Ident("messages")), 2500)
}

// Days on hold are walked through only when there is something behind them.
func TestPruneBehindDaysOnHold(t *testing.T) {
	s := provisioned(t, provisioner.Config{})
	p, faults := s.faulty(provisioner.Config{})
	s.addMessages(9, 3000)
	cut := retention.Cut{Before: s.today, Except: []retention.Hold{{From: s.today.AddDate(0, 0, -9), To: s.today.AddDate(0, 0, -9)}}}
	require.NoError(t, p.PruneMessages(t.Context(), cut, nil))
	require.Less(t, faults.Count(), 6, "%q", faults.Log())

	few := s.addMessages(5, 10)
	faults.Reset()
	require.NoError(t, p.PruneMessages(t.Context(), cut, nil))
	require.Less(t, faults.Count(), 40, "%q", faults.Log())
	s.addMessages(5, 5000)
	s.addMessages(0, 100)
	require.NoError(t, p.PruneMessages(t.Context(), cut, nil))
	ids := s.ids("SELECT id FROM " + s.Ident("messages") + " ORDER BY id")
	require.Len(t, ids, 3100)
	require.Equal(t, few-1, ids[2999])
}

func TestPruneManyChildrenOfOneMessage(t *testing.T) {
	s := provisioned(t, provisioner.Config{})
	id := s.addMessages(5, 300)
	s.insertMany(100_000, fmt.Sprintf("INSERT INTO %s (message_id) SELECT %d", s.Ident("loads"), id+100))
	s.addChildren(id + 299)
	require.NoError(t, s.prune())
	s.requireMessages(nil)
}

func TestPruneChildrenWithoutMessage(t *testing.T) {
	s := provisioned(t, provisioner.Config{})
	s.exec("INSERT INTO " + s.Ident("messages") + " (id, timestamp) VALUES (5000, 1)")
	s.exec("INSERT INTO " + s.Ident("messages") + fmt.Sprintf(" (id, timestamp) VALUES (7000, %d)", s.today.Unix()))
	s.insertMany(3000, "INSERT INTO "+s.Ident("links")+" (message_id) SELECT 1+n")
	s.exec("INSERT INTO " + s.Ident("links") + " (message_id) VALUES (NULL), (0), (-3), (4999), (5000), (5000), (6000), (7000), (7001)")
	require.NoError(t, s.prune())
	require.Equal(t, []string{"", "-3", "0", "7000", "7001"}, s.column("SELECT COALESCE(message_id, '') FROM "+s.Ident("links")+" ORDER BY message_id"),
		"from the first young message on, a child's message may not be committed yet")
}

func TestPruneFaults(t *testing.T) {
	for name, test := range map[string]struct {
		fault faultsql.Fault
		fails bool
	}{
		"a commit's answer is lost":     {fault: faultsql.Fault{Text: "COMMIT", At: 2, Kind: faultsql.LoseAnswer}},
		"a connection breaks":           {fault: faultsql.Fault{Text: "DELETE", At: 3, Kind: faultsql.FailBefore}},
		"a deadlock":                    {fault: faultsql.Fault{Text: "DELETE", At: 9, Kind: faultsql.ServerError, Number: mysqlerr.Deadlock}},
		"a lock":                        {fault: faultsql.Fault{Text: "DELETE", At: 9, Kind: faultsql.ServerError, Number: mysqlerr.LockWaitTimeout}},
		"row-based logging is refused":  {fault: faultsql.Fault{Text: "DELETE", Kind: faultsql.ServerError, Number: mysqlerr.BinlogStatementOnly}},
		"the account may not delete":    {fault: faultsql.Fault{Text: "DELETE", Kind: faultsql.ServerError, Number: mysqlerr.TableDenied}, fails: true},
		"the messages can't be read":    {fault: faultsql.Fault{Text: "SELECT", At: 2, Kind: faultsql.ServerError, Number: mysqlerr.TableDenied}, fails: true},
		"everything is dead from there": {fault: faultsql.Fault{Text: "DELETE", At: 4, Kind: faultsql.Dead}, fails: true},
	} {
		t.Run(name, func(t *testing.T) {
			s := provisioned(t, provisioner.Config{})
			p, faults := s.faulty(provisioner.Config{})
			first := s.addMessages(5, 300)
			s.addChildren(first)
			s.addMessages(0, 3)
			faults.Arm(test.fault)
			err := p.PruneMessages(t.Context(), retention.Cut{Before: s.today}, nil)
			require.Equal(t, test.fails, err != nil, "%v", err)
			require.Zero(t, faults.Armed())
			if test.fails {
				faults.Heal()
				require.NoError(t, p.PruneMessages(t.Context(), retention.Cut{Before: s.today}, nil))
			}
			require.Len(t, s.ids("SELECT id FROM "+s.Ident("messages")), 3)
			require.Empty(t, s.ids("SELECT message_id FROM "+s.Ident("links")))
		})
	}
}

// lock returns a transaction that has changed a message and its deliveries.
func (s *store) lock(id int64) *sql.Tx {
	s.t.Helper()
	tx, err := s.db.BeginTx(s.t.Context(), nil)
	require.NoError(s.t, err)
	s.t.Cleanup(func() { tx.Rollback() })
	for _, query := range []string{"UPDATE " + s.Ident("deliveries") + " SET status='x' WHERE message_id=", "UPDATE " + s.Ident("messages") + " SET status='x' WHERE id="} {
		_, err = tx.ExecContext(s.t.Context(), query+fmt.Sprint(id))
		require.NoError(s.t, err)
	}
	return tx
}

// A client that works on the message behind the last that goes is not waited for.
func TestPruneDoesNotTouchWhatStays(t *testing.T) {
	s := provisioned(t, provisioner.Config{})
	p, faults := s.faulty(provisioner.Config{})
	last := s.addMessages(5, 50) + 49
	stays := s.addMessages(0, 1)
	s.addChildren(last)
	s.addChildren(stays)
	client := s.lock(stays)
	require.NoError(t, p.PruneMessages(t.Context(), retention.Cut{Before: s.today}, nil))
	require.NotContains(t, faults.Log(), "ROLLBACK")
	require.NoError(t, client.Commit())
	s.requireMessages([]int64{stays})
}

// A client that works on a message that goes is waited for, but not with locks in hand.
func TestPruneMeetsALock(t *testing.T) {
	s := provisioned(t, provisioner.Config{})
	client := s.lock(s.addMessages(5, 500) + 200)
	released := make(chan error, 1)
	var begun sync.Once
	require.NoError(t, s.PruneMessages(t.Context(), retention.Cut{Before: s.today}, func(int64) error {
		begun.Do(func() {
			time.AfterFunc(3*time.Second/2, func() { released <- client.Commit() }) // longer than a batch waits
		})
		return nil
	}))
	require.NoError(t, <-released)
	s.requireMessages(nil)
}

func TestGuardFencesPruning(t *testing.T) {
	lost := errors.New("lease lost")
	calls, allowed := 0, 1
	s := provisioned(t, provisioner.Config{Guard: func(context.Context, *sql.Tx) error {
		if calls++; calls > allowed {
			return lost
		}
		return nil
	}})
	first := s.addMessages(5, 300)
	s.addChildren(first + 299)
	err := s.prune()
	require.ErrorIs(t, err, lost)
	require.ErrorIs(t, err, retention.ErrStop)
	require.Len(t, s.ids("SELECT id FROM "+s.Ident("messages")), 200)
	require.Len(t, s.ids("SELECT message_id FROM "+s.Ident("links")), 1)
}

// Several that prune at once, without any lease, are all right.
func TestPruneAtOnce(t *testing.T) {
	s := provisioned(t, provisioner.Config{})
	s.db.SetMaxIdleConns(20)
	first := s.addMessages(5, 5000)
	s.addMessages(0, 10)
	s.addChildren(first)
	results := make(chan error)
	for range 16 {
		go func() { results <- s.prune() }()
	}
	for range 16 {
		require.NoError(t, <-results)
	}
	require.Len(t, s.ids("SELECT id FROM "+s.Ident("messages")), 10)
	require.Empty(t, s.ids("SELECT message_id FROM "+s.Ident("links")))
}

// Nothing of the server's day goes, whatever a cut says that was made by another clock.
func TestPruneLeavesToday(t *testing.T) {
	s := provisioned(t, provisioner.Config{})
	s.addMessages(1, 10)
	first := s.addMessages(0, 2)
	require.NoError(t, s.PruneMessages(t.Context(), retention.Cut{Before: s.today.AddDate(1, 0, 0)}, nil))
	require.Equal(t, []int64{first, first + 1}, s.ids(fmt.Sprint("SELECT id FROM ", s.Ident("messages"), " ORDER BY id")))
}
