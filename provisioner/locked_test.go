package provisioner_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mailretention/mailretention/internal/mysqlerr"
	"github.com/mailretention/mailretention/provisioner"
)

// A table that another has for itself, as in a long ALTER TABLE, can't even be looked at: it stays as it is, and the next ones go.
func TestDropTableThatIsLocked(t *testing.T) {
	s := provisioned(t, provisioner.Config{LockWait: time.Second})
	s.addDay(9, 1)
	s.addDay(8, 1)
	id := s.addMessage(9, 1, false)
	end := s.redefine(s.day(9))
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute) // a server's own bound is a day, or a year
	defer cancel()
	err := s.DropTable(ctx, s.day(9), nil)
	require.Equal(t, mysqlerr.Busy, mysqlerr.Classify(err), "%v", err)
	require.NoError(t, s.DropTable(t.Context(), s.day(8), nil))
	require.Equal(t, []string{s.day(9)}, s.tables())
	require.Equal(t, []int64{id}, s.pointing())
	require.Equal(t, []string{s.day(9) + " 1"}, s.books())
	end()
	require.NoError(t, s.DropTable(t.Context(), s.day(9), nil))
	require.Empty(t, s.tables())
	require.Empty(t, s.pointing())
}

// redefine has a raw table locked, as in the middle of a change of its definition, until end is called: a RENAME has it, and waits for another table.
func (s *store) redefine(table string) (end func()) {
	s.t.Helper()
	s.exec("CREATE TABLE " + s.Ident("z") + " (id int)")
	reader := s.reader("z")
	c, err := s.db.Conn(s.t.Context())
	require.NoError(s.t, err)
	var id int64
	require.NoError(s.t, c.QueryRowContext(s.t.Context(), "SELECT CONNECTION_ID()").Scan(&id))
	ended := make(chan error)
	go func() {
		_, err := c.ExecContext(s.t.Context(), fmt.Sprintf("RENAME TABLE %s TO %s, %s TO %s", s.Ident(table), s.Ident("moved"), s.Ident("z"), s.Ident("zz")))
		ended <- err
	}()
	for waits := 0; waits == 0; time.Sleep(time.Millisecond) {
		s.scan("SELECT COUNT(*) FROM information_schema.PROCESSLIST WHERE ID=? AND STATE LIKE '%metadata lock%'", []any{id}, &waits)
	}
	return func() {
		s.exec("KILL QUERY " + fmt.Sprint(id))
		require.True(s.t, mysqlerr.Is(<-ended, mysqlerr.QueryInterrupted))
		require.NoError(s.t, c.Close())
		require.NoError(s.t, reader.Rollback())
	}
}
