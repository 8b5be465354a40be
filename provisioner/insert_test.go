package provisioner_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/go-sql-driver/mysql"
	"github.com/stretchr/testify/require"

	"github.com/mailretention/mailretention/internal/faultsql"
	"github.com/mailretention/mailretention/internal/mysqlerr"
	"github.com/mailretention/mailretention/provisioner"
)

func TestInsertIntoMakesTheTableAndBooks(t *testing.T) {
	bothBooks(t, func(t *testing.T, s *store) {
		for i := range 3 {
			require.NoError(t, s.insert(t.Context(), s.today, int64(100+i)))
		}
		require.Equal(t, []string{s.day(0) + " 303"}, s.books())
		require.Equal(t, []string{"3"}, s.column("SELECT COUNT(*) FROM "+s.Ident(s.day(0))))
	})
}

func TestInsertIntoANewDayBySixteenAtOnce(t *testing.T) {
	bothBooks(t, func(t *testing.T, s *store) {
		atOnce(t, 16, func(int) error {
			for range 5 {
				if err := s.insert(t.Context(), s.today, 10); err != nil {
					return err
				}
			}
			return nil
		})
		require.Equal(t, []string{s.day(0) + " 800"}, s.books())
	})
}

func TestInsertIntoAnOldDayThatIsThere(t *testing.T) {
	s := provisioned(t, provisioner.Config{})
	s.addTable(s.day(30))
	require.NoError(t, s.insert(t.Context(), s.today.AddDate(0, 0, -30), 42))
	require.Equal(t, []string{s.day(30) + " 42"}, s.books(), "booking that meets no row makes one")
}

func TestInsertIntoAnOldDayThatIsGone(t *testing.T) {
	s := provisioned(t, provisioner.Config{})
	require.ErrorContains(t, s.insert(t.Context(), s.today.AddDate(0, 0, -30), 42), "can be made")
	require.Empty(t, s.tables())
}

func TestInsertIntoBooksToARowWithoutASize(t *testing.T) {
	s := provisioned(t, provisioner.Config{})
	s.addTable(s.day(0))
	s.book(s.day(0), nil)
	require.NoError(t, s.insert(t.Context(), s.today, 5))
	require.Equal(t, []string{s.day(0) + " 5"}, s.books())
}

// An UPDATE that changes nothing affects a row or none, as clientFoundRows has it.
func TestInsertIntoBooksTheSameWithFoundRows(t *testing.T) {
	for _, found := range []string{"clientFoundRows=false", "clientFoundRows=true"} {
		s := provisioned(t, provisioner.Config{}, found)
		require.NoError(t, s.insert(t.Context(), s.today, 5))
		require.NoError(t, s.insert(t.Context(), s.today, 5))
		require.NoError(t, s.InsertInto(t.Context(), s.today, func(context.Context, string) (int64, error) { return 0, nil }))
		require.Equal(t, []string{s.day(0) + " 10"}, s.books())
	}
}

func TestInsertIntoReturnsFnsErrorAsItIs(t *testing.T) {
	s := provisioned(t, provisioner.Config{})
	full := errors.New("full")
	calls := 0
	err := s.InsertInto(t.Context(), s.today, func(context.Context, string) (int64, error) {
		calls++
		return 10, full
	})
	require.Same(t, full, err)
	require.Equal(t, 1, calls)
	require.Empty(t, s.books())
}

func TestInsertIntoGivesUpOnATableThatIsNeverThere(t *testing.T) {
	s := provisioned(t, provisioner.Config{})
	missing := fmt.Errorf("elsewhere: %w", &mysql.MySQLError{Number: 1146})
	calls := 0
	err := s.InsertInto(t.Context(), s.today, func(context.Context, string) (int64, error) {
		calls++
		return 0, missing
	})
	require.Same(t, missing, err)
	require.Equal(t, 4, calls)
}

func TestInsertIntoSaysWhenMailIsStoredButNotBooked(t *testing.T) {
	s := provisioned(t, provisioner.Config{})
	s.addTable(s.day(0))
	s.exec("DROP TABLE " + s.Ident("raw_message_sizes"))
	err := s.insert(t.Context(), s.today, 5)
	require.ErrorIs(t, err, provisioner.ErrNotBooked)
	require.ErrorIs(t, err, provisioner.ErrNotProvisioned)
	require.Equal(t, []string{"1"}, s.column("SELECT COUNT(*) FROM "+s.Ident(s.day(0))))

	err = s.InsertInto(t.Context(), s.today, func(context.Context, string) (int64, error) { return -1, nil })
	require.ErrorIs(t, err, provisioner.ErrNotBooked)
}

func TestInsertIntoEndsWithItsContext(t *testing.T) {
	s := provisioned(t, provisioner.Config{})
	ctx, cancel := context.WithCancel(t.Context())
	err := s.InsertInto(ctx, s.today, func(context.Context, string) (int64, error) {
		cancel()
		return 5, nil
	})
	require.ErrorIs(t, err, provisioner.ErrNotBooked)
	require.ErrorIs(t, err, context.Canceled)
}

func TestInsertIntoBooksInSpiteOfOthers(t *testing.T) {
	for _, number := range []uint16{mysqlerr.Deadlock, mysqlerr.LockWaitTimeout, mysqlerr.AutoincReadFailed} {
		for _, statement := range []string{"COALESCE", "`size`=`size`", "INSERT INTO"} {
			s := provisioned(t, provisioner.Config{})
			through := *s
			var faults *faultsql.Connector
			through.Provisioner, faults = s.faulty(provisioner.Config{})
			faults.Arm(faultsql.Fault{Text: statement, Kind: faultsql.ServerError, Number: number})
			require.NoError(t, through.insert(t.Context(), s.today, 5))
			require.Zero(t, faults.Armed())
			require.Equal(t, []string{s.day(0) + " 5"}, s.books())
		}
	}
}
