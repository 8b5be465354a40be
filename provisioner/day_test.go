package provisioner_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mailretention/mailretention/provisioner"
)

// bothBooks runs a test with the bookkeeping that Provision makes, and with that of existing installations.
func bothBooks(t *testing.T, test func(t *testing.T, s *store)) {
	t.Run("unique key", func(t *testing.T) { test(t, provisioned(t, provisioner.Config{})) })
	t.Run("no unique key", func(t *testing.T) {
		s := provisioned(t, provisioner.Config{})
		s.withoutKey()
		test(t, s)
	})
}

func TestEnsureDayMayBeRepeated(t *testing.T) {
	bothBooks(t, func(t *testing.T, s *store) {
		for range 2 {
			for ago := -1; ago <= 1; ago++ {
				table, err := s.EnsureDay(t.Context(), s.today.AddDate(0, 0, -ago).Add(23*time.Hour))
				require.NoError(t, err)
				require.Equal(t, s.day(ago), table)
			}
		}
		require.Equal(t, []string{s.day(1), s.day(0), s.day(-1)}, s.tables())
		require.Equal(t, []string{s.day(-1) + " 0", s.day(0) + " 0", s.day(1) + " 0"}, s.books())
	})
}

func TestEnsureDayTakesTheDayInUTC(t *testing.T) {
	s := provisioned(t, provisioner.Config{})
	east := time.FixedZone("east", 14*60*60)
	table, err := s.EnsureDay(t.Context(), s.today.Add(time.Minute).In(east))
	require.NoError(t, err)
	require.Equal(t, s.day(0), table)
}

func TestEnsureDayMakesNoOtherDays(t *testing.T) {
	s := provisioned(t, provisioner.Config{})
	for _, ago := range []int{-400, -3, 3, 400} {
		_, err := s.EnsureDay(t.Context(), s.today.AddDate(0, 0, -ago))
		require.ErrorContains(t, err, "only the tables of the days before, of and after it can be made")
	}
	require.Empty(t, s.tables())
	require.Empty(t, s.books())
}

func TestEnsureDayBySixteenAtOnce(t *testing.T) {
	bothBooks(t, func(t *testing.T, s *store) {
		for range 5 {
			atOnce(t, 16, func(int) error {
				_, err := s.EnsureDay(t.Context(), s.today)
				return err
			})
			require.Equal(t, []string{s.day(0)}, s.tables())
			require.Equal(t, []string{s.day(0) + " 0"}, s.books())
			s.exec("DROP TABLE " + s.Ident(s.day(0)))
			s.exec("DELETE FROM " + s.Ident("raw_message_sizes"))
		}
	})
}

func TestEnsureDayHealsACrashBetweenRowAndTable(t *testing.T) {
	bothBooks(t, func(t *testing.T, s *store) {
		s.book(s.day(0), fiveGB)
		_, err := s.EnsureDay(t.Context(), s.today)
		require.NoError(t, err)
		require.Equal(t, []string{s.day(0) + " 0"}, s.books(), "the row was of another table")
	})
}

func TestEnsureDayKeepsWhatIsBooked(t *testing.T) {
	bothBooks(t, func(t *testing.T, s *store) {
		s.addDay(0, 123)
		_, err := s.EnsureDay(t.Context(), s.today)
		require.NoError(t, err)
		require.Equal(t, []string{s.day(0) + " 123"}, s.books())
	})
}

func TestEnsureDayMakesAMissingRow(t *testing.T) {
	bothBooks(t, func(t *testing.T, s *store) {
		s.addTable(s.day(0))
		_, err := s.EnsureDay(t.Context(), s.today)
		require.NoError(t, err)
		require.Equal(t, []string{s.day(0) + " 0"}, s.books())
	})
}

func TestEnsureDayIsNotMisledByRowsThatLookAlike(t *testing.T) {
	bothBooks(t, func(t *testing.T, s *store) {
		s.book("RAW-"+s.day(0)[4:], 7)
		s.exec("INSERT INTO " + s.Ident("raw_message_sizes") + " (table_name, size) VALUES (NULL, 9)")
		_, err := s.EnsureDay(t.Context(), s.today)
		require.NoError(t, err)
		require.NoError(t, s.insert(t.Context(), s.today, 11))
		require.Equal(t, []string{"RAW-" + s.day(0)[4:] + " 7", "NULL 9", s.day(0) + " 11"}, s.books())
	})
}

func TestEnsureDayRefusesAnotherShape(t *testing.T) {
	for name, test := range map[string]struct{ make, difference string }{
		"other columns": {"CREATE TABLE %s (id int, message text)", `column "data" is missing, column "next" is missing`},
		"text":          {"CREATE TABLE %s (id int, data longtext, next int)", `column "data" is longtext, not bytes`},
		"more columns":  {"CREATE TABLE %s (id bigint unsigned, data mediumblob, next bigint, note text)", ""},
	} {
		t.Run(name, func(t *testing.T) {
			s := provisioned(t, provisioner.Config{})
			s.execf(test.make, s.Ident(s.day(0)))
			_, err := s.EnsureDay(t.Context(), s.today)
			if test.difference == "" {
				require.NoError(t, err)
				return
			}
			require.ErrorIs(t, err, provisioner.ErrSchemaMismatch)
			require.ErrorContains(t, err, test.difference)
		})
	}
}
