package provisioner_test

import (
	"context"
	"database/sql"
	"net"
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

func TestDropTableWhoseAnswerIsLost(t *testing.T) {
	s := provisioned(t, provisioner.Config{})
	for name, test := range map[string]struct {
		fault faultsql.Fault
		again bool // it happens twice
		fails bool
	}{
		"the drop's":                   {fault: faultsql.Fault{Text: "DROP TABLE", Kind: faultsql.LoseAnswer}},
		"the drop never ran":           {fault: faultsql.Fault{Text: "DROP TABLE", Kind: faultsql.FailBefore}, fails: true},
		"the clearing's commit's":      {fault: faultsql.Fault{Text: "COMMIT", Kind: faultsql.LoseAnswer}},
		"the clearing was a deadlock":  {fault: faultsql.Fault{Text: "UPDATE", Kind: faultsql.ServerError, Number: mysqlerr.Deadlock}},
		"the clearing met a lock":      {fault: faultsql.Fault{Text: "UPDATE", Kind: faultsql.ServerError, Number: mysqlerr.LockWaitTimeout}},
		"the clearing met a newer row": {fault: faultsql.Fault{Text: "UPDATE", Kind: faultsql.ServerError, Number: mysqlerr.ChangedSinceRead}},
		"row-based logging is refused": {fault: faultsql.Fault{Text: "UPDATE", Kind: faultsql.ServerError, Number: mysqlerr.BinlogStatementOnly}},
		"the clearing isn't allowed":   {fault: faultsql.Fault{Text: "UPDATE", Kind: faultsql.ServerError, Number: mysqlerr.TableDenied}, fails: true},
		"the look after the drop's":    {fault: faultsql.Fault{Text: "LIMIT 0", Kind: faultsql.LoseAnswer}},
		"both looks after the drop's":  {fault: faultsql.Fault{Text: "LIMIT 0", Kind: faultsql.LoseAnswer}, again: true, fails: true},
	} {
		t.Run(name, func(t *testing.T) {
			p, faults := s.faulty(provisioner.Config{})
			s.addDay(9, 1)
			s.addMessages(9, 300)
			faults.Arm(test.fault)
			if test.again {
				faults.Arm(test.fault)
			}
			err := p.DropTable(t.Context(), s.day(9), nil)
			require.Zero(t, faults.Armed())
			require.Equal(t, test.fails, err != nil, "%v", err)
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

// A batch comes to nothing before it has begun, and another worker does its work: what was read before says nothing of what is left.
func TestDropTableWhoseOnlyBatchIsDoneByAnother(t *testing.T) {
	for name, kind := range map[string]faultsql.Kind{"the connection breaks": faultsql.FailBefore, "a deadlock": faultsql.ServerError} {
		t.Run(name, func(t *testing.T) {
			s := provisioned(t, provisioner.Config{})
			p, faults := s.faulty(provisioner.Config{})
			s.addDay(9, 1)
			s.addMessage(9, 1, false)
			faults.Arm(faultsql.Fault{Text: "BEGIN", Kind: kind, Number: mysqlerr.Deadlock, Before: func() {
				s.exec("UPDATE " + s.Ident("messages") + " SET raw_table=NULL")
			}})
			require.NoError(t, p.DropTable(t.Context(), s.day(9), nil))
			require.Zero(t, faults.Armed())
			require.Empty(t, s.tables())
			require.Empty(t, s.books())
		})
	}
}

// One batch has all references, and its outcome isn't known at first: what was read before says nothing of what is left.
func TestDropTableWhoseOnlyBatchIsDecidedAgain(t *testing.T) {
	for name, fault := range map[string]faultsql.Fault{
		"done, and the answer lost": {Text: "COMMIT", Kind: faultsql.LoseAnswer},
		"not done":                  {Text: "UPDATE", Kind: faultsql.ServerError, Number: mysqlerr.Deadlock},
	} {
		t.Run(name, func(t *testing.T) {
			s := provisioned(t, provisioner.Config{})
			p, faults := s.faulty(provisioner.Config{})
			s.addDay(9, 1)
			held := s.addMessage(9, 1, true)
			s.addMessage(9, 1, false)
			faults.Arm(fault)
			require.ErrorIs(t, p.DropTable(t.Context(), s.day(9), nil), retention.ErrInUse)
			require.Zero(t, faults.Armed())
			require.Equal(t, []int64{held}, s.pointing())

			s.execf("UPDATE %s SET held=0", s.Ident("messages"))
			faults.Arm(fault)
			require.NoError(t, p.DropTable(t.Context(), s.day(9), nil))
			require.Zero(t, faults.Armed())
			require.Empty(t, s.tables())
			require.Empty(t, s.pointing())
		})
	}
}
