package mysqlerr_test

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"testing"

	"github.com/go-sql-driver/mysql"
	"github.com/stretchr/testify/require"

	"github.com/mailretention/mailretention/internal/mysqlerr"
	"github.com/mailretention/mailretention/internal/mysqltest"
)

func TestMain(m *testing.M) { mysqltest.Main(m) }

// classes has the class of each number that isn't of the zero class.
var classes = map[uint16]mysqlerr.Class{
	1213: mysqlerr.Retry, 1020: mysqlerr.Retry,
	1205: mysqlerr.Busy, 3572: mysqlerr.Busy,
	1290: mysqlerr.NotWritable, 1792: mysqlerr.NotWritable, 1836: mysqlerr.NotWritable, 3100: mysqlerr.NotWritable, 3101: mysqlerr.NotWritable,
	1047: mysqlerr.BackOff, 1040: mysqlerr.BackOff, 1203: mysqlerr.BackOff, 1226: mysqlerr.BackOff, 1053: mysqlerr.BackOff,
	1180: mysqlerr.Ambiguous, 1317: mysqlerr.Ambiguous, 1969: mysqlerr.Ambiguous, 3024: mysqlerr.Ambiguous, 1927: mysqlerr.Ambiguous,
	1142: mysqlerr.Final, 1143: mysqlerr.Final, 1044: mysqlerr.Final, 1045: mysqlerr.Final, 1227: mysqlerr.Final,
	1146: mysqlerr.Final, 1406: mysqlerr.Final, 1049: mysqlerr.Final, 1054: mysqlerr.Final,
}

func TestClassOfWhatIsNoServersError(t *testing.T) {
	for name, c := range map[string]struct {
		err  error
		want mysqlerr.Class
	}{
		"context cancelled":      {context.Canceled, mysqlerr.Ambiguous},
		"deadline":               {fmt.Errorf("wrapped: %w", context.DeadlineExceeded), mysqlerr.Ambiguous},
		"invalid connection":     {mysql.ErrInvalidConn, mysqlerr.Ambiguous},
		"bad connection":         {driver.ErrBadConn, mysqlerr.Ambiguous},
		"end of the stream":      {io.EOF, mysqlerr.Ambiguous},
		"end inside a packet":    {io.ErrUnexpectedEOF, mysqlerr.Ambiguous},
		"closed":                 {net.ErrClosed, mysqlerr.Ambiguous},
		"connection refused":     {&net.OpError{Op: "dial", Err: errors.New("refused")}, mysqlerr.Ambiguous},
		"timeout of the network": {os.ErrDeadlineExceeded, mysqlerr.Ambiguous},
		"joined":                 {errors.Join(errors.New("a"), mysql.ErrInvalidConn), mysqlerr.Ambiguous},
		"no rows":                {sql.ErrNoRows, ""},
		"transaction is over":    {sql.ErrTxDone, ""},
		"another's":              {errors.New("Error 1213: Deadlock found"), ""},
	} {
		t.Run(name, func(t *testing.T) {
			require.Equal(t, c.want, mysqlerr.Classify(c.err))
			require.Zero(t, mysqlerr.Number(c.err))
			require.False(t, mysqlerr.Is(c.err, 0, mysqlerr.Deadlock))
		})
	}
}

// The number alone decides, whatever the text says and however the error is wrapped.
func FuzzClassify(f *testing.F) {
	for number := range classes {
		f.Add(number, "")
	}
	f.Add(uint16(0), "Error 1213 (40001): Deadlock found when trying to get lock")
	f.Add(uint16(mysqlerr.NoSuchTable), "Deadlock found")
	f.Fuzz(func(t *testing.T, number uint16, text string) {
		err := errors.Join(errors.New(text), fmt.Errorf("%q: %w", text, &mysql.MySQLError{Number: number, Message: text}))
		require.Equal(t, classes[number], mysqlerr.Classify(err))
		require.Equal(t, number, mysqlerr.Number(err))
		require.Equal(t, number != 0, mysqlerr.Is(err, number))
		require.False(t, mysqlerr.Is(err))
		require.False(t, mysqlerr.Is(err, number+1))
	})
}
