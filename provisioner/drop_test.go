package provisioner_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

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

// A table whose columns aren't a raw table's is not known to be ours.
func TestDropTableLeavesOtherColumns(t *testing.T) {
	for name, test := range map[string]struct{ columns, difference string }{
		"another program's":         {"id int, note text", `column "data" is missing, column "next" is missing`},
		"one of another family":     {"id int, data longtext, next int", `column "data" is longtext, not bytes`},
		"of the families, and more": {"id bigint unsigned, data mediumblob, NEXT bigint, note text, KEY (next)", ""},
	} {
		t.Run(name, func(t *testing.T) {
			s := provisioned(t, provisioner.Config{})
			s.execf("CREATE TABLE %s (%s)", s.Ident(s.day(9)), test.columns)
			s.book(s.day(9), 1)
			id := s.addMessage(9, 1, false)
			err := s.DropTable(t.Context(), s.day(9), nil)
			if test.difference == "" {
				require.NoError(t, err)
				require.Empty(t, s.tables())
				return
			}
			require.ErrorIs(t, err, provisioner.ErrSchemaMismatch)
			require.ErrorContains(t, err, s.day(9))
			require.ErrorContains(t, err, test.difference)
			require.ErrorContains(t, err, "drop it by hand")
			require.Equal(t, []string{s.day(9)}, s.tables())
			require.Equal(t, []int64{id}, s.pointing())
			require.Equal(t, []string{s.day(9) + " 1"}, s.books())
		})
	}
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
			s := provisioned(t, provisioner.Config{BatchTime: time.Hour, Guard: func(_ context.Context, tx *sql.Tx) error {
				if calls++; calls > allowed {
					return lost
				}
				return nil
			}})
			s.addDay(9, 1)
			s.addMessages(9, 300) // two batches, on a slow machine too
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

// An index on more than the raw table has the messages in another order than that of their ids.
func TestDropTableByAnIndexOnMore(t *testing.T) {
	schema := provisioner.PostalSchema()
	schema.Messages.RawIndex = "on_raw_table_and_time"
	s := provisioned(t, provisioner.Config{Schema: schema})
	s.exec("CREATE INDEX on_raw_table_and_time ON " + s.Ident("messages") + " (raw_table, timestamp)")
	s.addDay(9, 1)
	s.addMessages(9, 1000)
	s.exec("UPDATE " + s.Ident("messages") + " SET timestamp=timestamp-id")
	batches := 0
	require.NoError(t, s.DropTable(t.Context(), s.day(9), func(int64) error { batches++; return nil }))
	require.Empty(t, s.pointing())
	require.Less(t, batches, 20)
}

// Each reading passes over the references that come before: one that is repeated every few batches would take a square of the table's size.
func TestReferencesAreReadAFewTimes(t *testing.T) {
	s := provisioned(t, provisioner.Config{})
	table := s.addDay(10, 1)
	s.addMessages(10, 5000)
	p, connector := s.faulty(provisioner.Config{BatchTime: time.Nanosecond})
	require.NoError(t, p.DropTable(t.Context(), table, nil))
	require.Zero(t, s.pointingAt(10))
	updates, readings := 0, 0
	for _, statement := range connector.Log() {
		switch {
		case strings.HasPrefix(statement, "UPDATE"):
			updates++
		case strings.HasPrefix(statement, "SELECT `id`, CASE"):
			readings++
		}
	}
	require.GreaterOrEqual(t, updates, 20)
	require.Equal(t, 3, readings, "one finds all, one finds none, and one comes behind the drop")
}
