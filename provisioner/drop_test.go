package provisioner_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"
	"github.com/stretchr/testify/require"

	"github.com/mailretention/mailretention/internal/faultsql"
	"github.com/mailretention/mailretention/internal/mysqlerr"
	"github.com/mailretention/mailretention/internal/mysqltest"
	"github.com/mailretention/mailretention/provisioner"
	"github.com/mailretention/mailretention/retention"
)

func TestDropTable(t *testing.T) {
	s := provisioned(t, provisioner.Config{})
	s.addDay(9, 100)
	s.addDay(8, 100)
	s.addMessage(9, 60, false)
	s.execf("UPDATE %s SET held=NULL WHERE id=%d", s.Ident("messages"), s.addMessage(9, 40, false))
	other := s.addMessage(8, 100, false)

	var rows int64
	require.NoError(t, s.DropTable(t.Context(), s.day(9), func(n int64) error { rows += n; return nil }))
	require.EqualValues(t, 2, rows)
	require.Equal(t, []string{s.day(8)}, s.tables())
	require.Equal(t, []string{s.day(8) + " 100"}, s.books())
	require.Equal(t, []int64{other}, s.pointing())
	require.Equal(t, []string{"2"}, s.column("SELECT COUNT(*) FROM "+s.Ident("messages")+
		" WHERE raw_table IS NULL AND raw_headers_id IS NULL AND raw_body_id IS NULL AND size IS NULL"))

	require.NoError(t, s.DropTable(t.Context(), s.day(9), nil), "gone already is no error")
}

func TestDropTableRefuses(t *testing.T) {
	s := provisioned(t, provisioner.Config{})
	s.addDay(0, 1)
	s.addDay(-1, 1)
	s.exec("CREATE VIEW " + s.Ident(s.day(20)) + " AS SELECT 1")
	before := s.tables()
	for name, refused := range map[string]bool{
		s.day(0): true, s.day(-1): true, s.day(-1000): true,
		"": true, "messages": true, "raw-2024-13-45": true, "raw-2024-02-30": true, "raw-2024-1-5": true, "raw-backup": true,
		"RAW-2024-01-01": true, "raw-2024-01-05-old": true, "raw-2024-01-05 ": true, "raw-2024-01-05`": true, "raw-２０２４-01-05": true,
		s.day(20): false, // it concerns this name alone
	} {
		err := s.DropTable(t.Context(), name, nil)
		require.Error(t, err, name)
		require.Equal(t, refused, errors.Is(err, retention.ErrRefused), name)
	}
	require.Equal(t, before, s.tables())
}

// The last mails of yesterday may still be written in the first hour of a day, by the server's clock.
func TestDropTableOfYesterday(t *testing.T) {
	midnight := today(t, mysqltest.Open(t, "")).Unix()
	for after, refused := range map[int64]bool{3599: true, 3600: false} {
		s := provisioned(t, provisioner.Config{}, fmt.Sprint("timestamp=", midnight+after))
		s.addDay(1, 1)
		require.Equal(t, refused, errors.Is(s.DropTable(t.Context(), s.day(1), nil), retention.ErrRefused))
		require.Equal(t, refused, len(s.tables()) == 1)
	}
}

func TestDropTableLeavesSequences(t *testing.T) {
	if !mysqltest.IsMariaDB(t) {
		t.Skip("only MariaDB has sequences")
	}
	s := provisioned(t, provisioner.Config{})
	s.exec("CREATE SEQUENCE " + s.Ident(s.day(20)))
	require.ErrorContains(t, s.DropTable(t.Context(), s.day(20), nil), "not a table but a SEQUENCE")
	require.Equal(t, []string{s.day(20)}, s.tables())
}

func TestDropTableIsExact(t *testing.T) {
	s := provisioned(t, provisioner.Config{})
	s.withoutKey()
	s.addDay(9, 1)
	s.addMessage(9, 1, false)
	var alike []string
	for _, name := range []string{"RAW" + s.day(9)[3:], s.day(9) + " ", s.day(9) + "-old", "ｒaw" + s.day(9)[3:]} {
		s.exec("INSERT INTO "+s.Ident("messages")+" (timestamp, raw_table) VALUES (1, ?)", name)
		s.book(name, 1)
		alike = append(alike, name)
	}
	s.addMessage(9, 1, false) // so that the others are between two ids that go
	s.exec("CREATE TABLE " + s.Ident("RAW"+s.day(9)[3:]) + " (id int)")
	require.NoError(t, s.DropTable(t.Context(), s.day(9), nil))
	require.Equal(t, []string{"RAW" + s.day(9)[3:]}, s.tables())
	require.Equal(t, alike, s.column("SELECT raw_table FROM "+s.Ident("messages")+" WHERE raw_table IS NOT NULL ORDER BY id"))
	require.Equal(t, alike, s.column("SELECT table_name FROM "+s.Ident("raw_message_sizes")+" ORDER BY id"))
}

// queue is a Config.Pending that tests change while it is asked.
type queue struct {
	ids  atomic.Pointer[[]int64]
	fail atomic.Pointer[error]
}

func (q *queue) add(ids ...int64) {
	var all []int64
	if known := q.ids.Load(); known != nil {
		all = slices.Clone(*known)
	}
	all = append(all, ids...)
	q.ids.Store(&all)
}

func (q *queue) Pending(context.Context) ([]int64, error) {
	if err := q.fail.Load(); err != nil {
		return nil, *err
	}
	if ids := q.ids.Load(); ids != nil {
		return *ids, nil
	}
	return nil, nil
}

func TestDropTableKeepsWhatIsNeeded(t *testing.T) {
	for name, test := range map[string]struct {
		pending, held []int // of messages 0 to 999
		left          []int
	}{
		"a pending one":           {pending: []int{7}, left: []int{7}},
		"a held one":              {held: []int{500}, left: []int{500}},
		"the first and the last":  {pending: []int{0}, held: []int{999}, left: []int{0, 999}},
		"both for the same":       {pending: []int{3, 4}, held: []int{4, 5}, left: []int{3, 4, 5}},
		"every second is pending": {pending: steps(0, 1000, 2), left: steps(0, 1000, 2)},
	} {
		t.Run(name, func(t *testing.T) {
			q := &queue{}
			s := provisioned(t, provisioner.Config{Pending: q.Pending})
			s.addDay(9, 1)
			first := s.addMessages(9, 1000)
			for _, n := range test.held {
				s.exec(fmt.Sprint("UPDATE ", s.Ident("messages"), " SET held=1 WHERE id=", first+int64(n)))
			}
			var pending, left []int64
			for _, n := range test.pending {
				pending = append(pending, first+int64(n))
			}
			for _, n := range test.left {
				left = append(left, first+int64(n))
			}
			q.add(pending...)

			err := s.DropTable(t.Context(), s.day(9), nil)
			require.ErrorIs(t, err, retention.ErrInUse)
			require.Equal(t, left, s.pointing())
			require.Equal(t, []string{s.day(9)}, s.tables())
			require.Equal(t, []string{s.day(9) + " 1"}, s.books())

			s.exec("UPDATE " + s.Ident("messages") + " SET held=0")
			q.ids.Store(&[]int64{})
			require.NoError(t, s.DropTable(t.Context(), s.day(9), nil))
			require.Empty(t, s.pointing())
			require.Empty(t, s.tables())
		})
	}
}

// steps are the numbers from first up to but without end, by steps.
func steps(first, end, by int) (numbers []int) {
	for n := first; n < end; n += by {
		numbers = append(numbers, n)
	}
	return numbers
}

func TestDropTableNoticesWhatIsNeededMeanwhile(t *testing.T) {
	for name, meanwhile := range map[string]func(s *store, q *queue, id int64){
		"queued": func(_ *store, q *queue, id int64) { q.add(id) },
		"held": func(s *store, _ *queue, id int64) {
			s.exec(fmt.Sprint("UPDATE ", s.Ident("messages"), " SET held=1 WHERE id=", id))
		},
	} {
		t.Run(name+" between two batches", func(t *testing.T) {
			q := &queue{}
			s := provisioned(t, provisioner.Config{Pending: q.Pending})
			s.addDay(9, 1)
			last := s.addMessages(9, 300) + 299
			batches := 0
			err := s.DropTable(t.Context(), s.day(9), func(int64) error {
				if batches++; batches == 1 {
					meanwhile(s, q, last)
				}
				return nil
			})
			require.ErrorIs(t, err, retention.ErrInUse)
			require.Greater(t, batches, 1)
			require.Equal(t, []int64{last}, s.pointing())
			require.Equal(t, []string{s.day(9)}, s.tables())
		})
		t.Run(name+" just before the drop", func(t *testing.T) {
			q := &queue{}
			var s *store
			var id int64
			s = provisioned(t, provisioner.Config{Pending: q.Pending, Guard: func(context.Context, *sql.Tx) error {
				if s.pointingAt(9) == 0 {
					id = s.addMessage(9, 1, false)
					meanwhile(s, q, id)
				}
				return nil
			}})
			s.addDay(9, 1)
			s.addMessage(9, 1, false)
			require.ErrorIs(t, s.DropTable(t.Context(), s.day(9), nil), retention.ErrInUse)
			require.Equal(t, []int64{id}, s.pointing())
			require.Equal(t, []string{s.day(9)}, s.tables())
		})
	}
}

func TestPendingUnknownProtectsEverything(t *testing.T) {
	q := &queue{}
	failure := errors.New("no queue")
	q.fail.Store(&failure)
	s := provisioned(t, provisioner.Config{Pending: q.Pending})
	s.addDay(9, 1)
	s.addDay(8, 1)
	id := s.addMessage(9, 1, false)
	for _, table := range []string{s.day(9), s.day(8)} {
		err := s.DropTable(t.Context(), table, nil)
		require.ErrorIs(t, err, retention.ErrRefused)
		require.ErrorIs(t, err, failure)
	}
	err := s.PruneMessages(t.Context(), retention.Cut{Before: s.today}, nil)
	require.ErrorIs(t, err, retention.ErrRefused)
	require.ErrorIs(t, err, failure)
	require.Equal(t, []int64{id}, s.pointing())
	require.Len(t, s.tables(), 2)
	require.Len(t, s.books(), 2)
}

func TestManyPending(t *testing.T) {
	q := &queue{}
	s := provisioned(t, provisioner.Config{Pending: q.Pending})
	s.addDay(9, 1)
	first := s.addMessages(9, 2000)
	var ids []int64
	for id := range int64(200_000) {
		ids = append(ids, first+1999-id) // among them all but none below
	}
	q.add(ids...)
	require.ErrorIs(t, s.DropTable(t.Context(), s.day(9), nil), retention.ErrInUse)
	require.Equal(t, 2000, s.pointingAt(9))
	require.NoError(t, s.PruneMessages(t.Context(), retention.Cut{Before: s.today}, nil))
	require.Equal(t, 2000, s.pointingAt(9))
}

func TestGuardFencesDrops(t *testing.T) {
	lost := errors.New("lease lost")
	for name, allowed := range map[string]int{"the first batch": 0, "the second batch": 1, "the drop": 2, "the bookkeeping": 3} {
		t.Run(name, func(t *testing.T) {
			calls := 0
			s := provisioned(t, provisioner.Config{Guard: func(_ context.Context, tx *sql.Tx) error {
				if calls++; calls > allowed {
					return lost
				}
				return nil
			}})
			s.addDay(9, 1)
			s.addMessages(9, 300) // two batches
			err := s.DropTable(t.Context(), s.day(9), nil)
			require.ErrorIs(t, err, lost)
			require.ErrorIs(t, err, retention.ErrStop)
			require.Equal(t, max(0, []int{300, 200, 0, 0}[allowed]), s.pointingAt(9), "a batch whose guard failed is rolled back")
			require.Len(t, s.books(), 1)
			require.Equal(t, allowed < 3, len(s.tables()) == 1)
			calls = -100
			require.NoError(t, s.DropTable(t.Context(), s.day(9), nil), "a rerun heals it")
			require.Empty(t, s.books())
		})
	}
}

func TestCallbacksEndTheCall(t *testing.T) {
	stop := errors.New("enough")
	throttle := func(context.Context) error { return nil }
	s := provisioned(t, provisioner.Config{Throttle: func(ctx context.Context) error { return throttle(ctx) }})
	s.addDay(9, 1)
	s.addMessages(9, 1000)
	for _, call := range []func(progress func(int64) error) error{
		func(progress func(int64) error) error { return s.DropTable(t.Context(), s.day(9), progress) },
		func(progress func(int64) error) error {
			return s.PruneMessages(t.Context(), retention.Cut{Before: s.today}, progress)
		},
	} {
		var rows int64
		require.ErrorIs(t, call(func(n int64) error { rows += n; return stop }), stop)
		require.EqualValues(t, 100, rows, "what was done stays done")
	}
	require.Equal(t, 900, s.pointingAt(9), "both began with the same messages")
	throttle = func(context.Context) error { return stop }
	require.ErrorIs(t, s.DropTable(t.Context(), s.day(9), nil), stop)
	require.ErrorIs(t, s.PruneMessages(t.Context(), retention.Cut{Before: s.today}, nil), stop)
	require.Equal(t, 900, s.pointingAt(9))
}

// An open reader keeps the table; others wait behind the DROP no longer than LockWait.
func TestDropTableWhileItIsRead(t *testing.T) {
	s := provisioned(t, provisioner.Config{LockWait: time.Second})
	for ago := 6; ago <= 9; ago++ {
		s.addDay(ago, 1)
	}
	s.addMessages(8, 10)
	reader := s.reader(s.day(8))

	delayed := make(chan time.Duration, 1)
	var reported int64
	for ago := 9; ago >= 6; ago-- {
		started := time.Now()
		if ago == 8 {
			go func() {
				time.Sleep(200 * time.Millisecond) // so that the DROP waits when the writer comes
				began := time.Now()
				_, err := s.db.Exec("INSERT INTO " + s.Ident(s.day(8)) + " (data) VALUES ('x')")
				if err != nil {
					delayed <- time.Hour
				}
				delayed <- time.Since(began)
			}()
		}
		err := s.DropTable(t.Context(), s.day(ago), func(rows int64) error { reported += rows; return nil })
		if ago != 8 {
			require.NoError(t, err)
			continue
		}
		require.True(t, mysqlerr.Is(err, mysqlerr.LockWaitTimeout), "%v", err)
		require.Less(t, time.Since(started), 5*time.Second)
		require.Less(t, <-delayed, 2*time.Second, "LockWait, and what a second is worth to the server")
	}
	require.EqualValues(t, 10, reported, "by which it is known as detached")
	require.Equal(t, []string{s.day(8)}, s.tables())
	require.Equal(t, []string{s.day(8) + " 1"}, s.books())
	require.NoError(t, reader.Rollback())
	require.NoError(t, s.DropTable(t.Context(), s.day(8), nil))
	require.Empty(t, s.tables())
	require.Empty(t, s.books())
}

// reader returns a transaction that has read the table, and so keeps it.
func (s *store) reader(table string) *sql.Tx {
	s.t.Helper()
	tx, err := s.db.BeginTx(s.t.Context(), nil)
	require.NoError(s.t, err)
	s.t.Cleanup(func() { tx.Rollback() })
	var n int
	require.NoError(s.t, tx.QueryRowContext(s.t.Context(), "SELECT COUNT(*) FROM "+s.Ident(table)).Scan(&n))
	return tx
}

// A context that ends while the server waits: the end of the DROP is waited for and known.
func TestDropTableWhoseContextEnds(t *testing.T) {
	for name, release := range map[string]bool{"the reader stays": false, "the reader leaves": true} {
		t.Run(name, func(t *testing.T) {
			s := provisioned(t, provisioner.Config{LockWait: 2 * time.Second})
			s.addDay(9, 1)
			reader := s.reader(s.day(9))
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			go func() {
				s.waitForDrop()
				cancel()
				if release {
					reader.Rollback()
				}
			}()
			err := s.DropTable(ctx, s.day(9), nil)
			if release {
				require.NoError(t, err)
				require.Empty(t, s.tables())
				require.Empty(t, s.books())
				return
			}
			require.True(t, mysqlerr.Is(err, mysqlerr.LockWaitTimeout), "%v", err)
			require.ErrorIs(t, err, context.Canceled)
			require.NoError(t, reader.Rollback())
			require.Equal(t, []string{s.day(9)}, s.tables(), "nor does it go later")
			require.Len(t, s.books(), 1)
		})
	}
}

// waitForDrop returns when the server has a DROP TABLE that waits.
func (s *store) waitForDrop() {
	for s.t.Context().Err() == nil {
		var n int
		err := s.db.QueryRow("SELECT COUNT(*) FROM information_schema.PROCESSLIST WHERE INFO LIKE 'DROP TABLE IF EXISTS%' AND INFO LIKE ? AND STATE LIKE '%metadata lock%'",
			"%"+s.name+"%").Scan(&n)
		if err != nil || n > 0 {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
}

func TestDropTableWhoseContextHasEnded(t *testing.T) {
	s := provisioned(t, provisioner.Config{})
	s.addDay(9, 1)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.ErrorIs(t, s.DropTable(ctx, s.day(9), nil), context.Canceled)
	require.Len(t, s.tables(), 1)
}

// faulty returns a provisioner for the database of s whose statements can be made to fail.
func (s *store) faulty(cfg provisioner.Config) (*provisioner.Provisioner, *faultsql.Connector) {
	s.t.Helper()
	dsn, err := mysql.ParseDSN(mysqltest.DSN(s.t, s.name))
	require.NoError(s.t, err)
	connector, err := mysql.NewConnector(dsn)
	require.NoError(s.t, err)
	faults := faultsql.New(connector)
	db := sql.OpenDB(faults)
	s.t.Cleanup(func() { db.Close() })
	cfg.Database = s.name
	p, err := provisioner.New(db, cfg)
	require.NoError(s.t, err)
	return p, faults
}

func TestDropTableWhoseAnswerIsLost(t *testing.T) {
	s := provisioned(t, provisioner.Config{})
	for name, test := range map[string]struct {
		fault faultsql.Fault
		fails bool
	}{
		"the drop's":                      {fault: faultsql.Fault{Text: "DROP TABLE", Kind: faultsql.LoseAnswer}},
		"the drop never ran":              {fault: faultsql.Fault{Text: "DROP TABLE", Kind: faultsql.FailBefore}, fails: true},
		"the clearing's commit's":         {fault: faultsql.Fault{Text: "COMMIT", Kind: faultsql.LoseAnswer}},
		"the clearing was a deadlock":     {fault: faultsql.Fault{Text: "UPDATE", Kind: faultsql.ServerError, Number: mysqlerr.Deadlock}},
		"the clearing met a lock":         {fault: faultsql.Fault{Text: "UPDATE", Kind: faultsql.ServerError, Number: mysqlerr.LockWaitTimeout}},
		"the clearing met a newer row":    {fault: faultsql.Fault{Text: "UPDATE", Kind: faultsql.ServerError, Number: mysqlerr.ChangedSinceRead}},
		"row-based logging is refused":    {fault: faultsql.Fault{Text: "UPDATE", Kind: faultsql.ServerError, Number: mysqlerr.BinlogStatementOnly}},
		"the clearing isn't allowed":      {fault: faultsql.Fault{Text: "UPDATE", Kind: faultsql.ServerError, Number: mysqlerr.TableDenied}, fails: true},
		"the look after the drop is lost": {fault: faultsql.Fault{Text: "LIMIT 0", Kind: faultsql.LoseAnswer}, fails: true},
	} {
		t.Run(name, func(t *testing.T) {
			p, faults := s.faulty(provisioner.Config{})
			s.addDay(9, 1)
			s.addMessages(9, 300)
			faults.Arm(test.fault)
			err := p.DropTable(t.Context(), s.day(9), nil)
			require.Zero(t, faults.Armed())
			require.Equal(t, test.fails, err != nil, "%v", err)
			killed := slices.ContainsFunc(faults.Log(), func(statement string) bool { return strings.HasPrefix(statement, "KILL QUERY ") })
			require.Equal(t, test.fault.Text == "DROP TABLE", killed, "whether it still runs isn't known")
			if test.fails {
				require.Len(t, s.books(), 1)
				require.NoError(t, p.DropTable(t.Context(), s.day(9), nil))
			}
			require.Empty(t, s.tables())
			require.Empty(t, s.books())
			require.Empty(t, s.pointing())
		})
	}
}

// A lock that stays is met a bounded number of times, and nothing else waits for it behind the batch.
func TestBatchesGiveUp(t *testing.T) {
	s := provisioned(t, provisioner.Config{})
	p, faults := s.faulty(provisioner.Config{})
	s.addDay(9, 1)
	s.addMessages(9, 10)
	for range 50 {
		faults.Arm(faultsql.Fault{Text: "UPDATE", Kind: faultsql.ServerError, Number: mysqlerr.Deadlock})
	}
	require.True(t, mysqlerr.Is(p.DropTable(t.Context(), s.day(9), nil), mysqlerr.Deadlock))
	require.Equal(t, 10, s.pointingAt(9))
	require.Less(t, faults.Armed(), 50)
	require.Greater(t, faults.Armed(), 30)
}

// A DROP whose connection breaks while it waits is ended, so that it doesn't take the table later.
func TestDropTableWhoseConnectionBreaks(t *testing.T) {
	s := provisioned(t, provisioner.Config{})
	s.addDay(9, 1)
	reader := s.reader(s.day(9))
	config, err := mysql.ParseDSN(mysqltest.DSN(t, s.name))
	require.NoError(t, err)
	connections := make(chan net.Conn, 10)
	config.DialFunc = func(ctx context.Context, network, addr string) (net.Conn, error) {
		c, err := new(net.Dialer).DialContext(ctx, network, addr)
		if err == nil {
			connections <- c
		}
		return c, err
	}
	connector, err := mysql.NewConnector(config)
	require.NoError(t, err)
	db := sql.OpenDB(connector)
	defer db.Close()
	p, err := provisioner.New(db, provisioner.Config{Database: s.name})
	require.NoError(t, err)
	go func() {
		s.waitForDrop()
		(<-connections).Close()
	}()
	started := time.Now()
	require.ErrorIs(t, p.DropTable(t.Context(), s.day(9), nil), mysql.ErrInvalidConn)
	require.Less(t, time.Since(started), 5*time.Second, "it was not waited for")
	require.NoError(t, reader.Rollback())
	require.Equal(t, []string{s.day(9)}, s.tables(), "nor does it go later")
	require.Len(t, s.books(), 1)
}

// A writer that was slow for days stores a pointer at a table that went meanwhile: the next call clears it, whatever needs it.
func TestLateWriter(t *testing.T) {
	q := &queue{}
	s := provisioned(t, provisioner.Config{Pending: q.Pending})
	s.addDay(9, 1)
	require.NoError(t, s.DropTable(t.Context(), s.day(9), nil))
	s.addMessage(9, 1, false)
	s.addMessage(9, 1, true)
	q.add(s.addMessage(9, 1, false))
	var rows int64
	require.NoError(t, s.DropTable(t.Context(), s.day(9), func(n int64) error { rows += n; return nil }))
	require.EqualValues(t, 3, rows)
	require.Empty(t, s.pointing())
}

// Several that drop the same table at once, without any lease, are all right.
func TestDropTableAtOnce(t *testing.T) {
	s := provisioned(t, provisioner.Config{})
	s.db.SetMaxIdleConns(20)
	s.addDay(9, 1)
	s.addMessages(9, 5000)
	results := make(chan error)
	for range 16 {
		go func() { results <- s.DropTable(t.Context(), s.day(9), nil) }()
	}
	for range 16 {
		require.NoError(t, <-results)
	}
	require.Empty(t, s.tables())
	require.Empty(t, s.books())
	require.Empty(t, s.pointing())
}

// pointing returns the ids of the messages that point at a raw table.
func (s *store) pointing() []int64 {
	s.t.Helper()
	return s.ids("SELECT id FROM " + s.Ident("messages") + " WHERE raw_table IS NOT NULL ORDER BY id")
}

// pointingAt returns how many messages point at a day's table.
func (s *store) pointingAt(ago int) (n int) {
	s.t.Helper()
	s.scan("SELECT COUNT(*) FROM "+s.Ident("messages")+" WHERE raw_table=?", []any{s.day(ago)}, &n)
	return n
}

func (s *store) ids(query string, args ...any) (ids []int64) {
	s.t.Helper()
	for _, text := range s.column(query, args...) {
		var id int64
		_, err := fmt.Sscan(text, &id)
		require.NoError(s.t, err)
		ids = append(ids, id)
	}
	return ids
}

// addMessages adds n messages of a day with following ids, and returns the first.
func (s *store) addMessages(ago, n int) (first int64) {
	s.t.Helper()
	s.scan("SELECT COALESCE(MAX(id), 0) + 1 FROM "+s.Ident("messages"), nil, &first)
	s.insertMany(n, "INSERT INTO "+s.Ident("messages")+" (id, scope, spam, timestamp, held, size, raw_table, raw_headers_id, raw_body_id) "+
		fmt.Sprintf("SELECT %d+n, 'incoming', 0, %d+n/1000, 0, 10, '%s', 1, 2", first, s.today.AddDate(0, 0, -ago).Unix(), s.day(ago)))
	return first
}

// insertMany completes an INSERT … SELECT of one row for each number n from 0 on.
func (s *store) insertMany(count int, insert string) {
	s.t.Helper()
	digits := "(SELECT 0 AS d UNION ALL SELECT 1 UNION ALL SELECT 2 UNION ALL SELECT 3 UNION ALL SELECT 4 UNION ALL SELECT 5 UNION ALL SELECT 6" +
		" UNION ALL SELECT 7 UNION ALL SELECT 8 UNION ALL SELECT 9)"
	s.exec(insert + " FROM (SELECT a.d+10*b.d+100*c.d+1000*d.d+10000*e.d AS n FROM " +
		digits + " AS a, " + digits + " AS b, " + digits + " AS c, " + digits + " AS d, " + digits + " AS e) AS numbers WHERE n<" + fmt.Sprint(count))
}
