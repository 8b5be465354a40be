package provisioner

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"

	"github.com/go-sql-driver/mysql"
	"github.com/stretchr/testify/require"

	"github.com/mailretention/mailretention/retention"
)

func TestRetried(t *testing.T) {
	deadlock := &mysql.MySQLError{Number: 1213}
	for name, test := range map[string]struct {
		err   error
		calls int
	}{
		"a deadlock":              {deadlock, maxRetries + 1},
		"a lock wait timeout":     {&mysql.MySQLError{Number: 1205}, maxRetries + 1},
		"rows that have changed":  {errDecideAgain, maxRetries + 1},
		"no auto-increment":       {&mysql.MySQLError{Number: 1467}, maxRetries + 1},
		"no success":              {errors.New("broken"), 1},
		"a lost connection":       {mysql.ErrInvalidConn, 1},
		"a guard that met a lock": {fmt.Errorf("%w: %w", retention.ErrStop, deadlock), 1},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				calls := 0
				err := retried(t.Context(), func() error {
					calls++
					return test.err
				})
				require.ErrorIs(t, err, test.err)
				require.Equal(t, test.calls, calls)
			})
		})
	}
}

func TestRetriedEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		err := retried(ctx, func() error {
			cancel()
			return &mysql.MySQLError{Number: 1213}
		})
		require.ErrorIs(t, err, context.Canceled)
	})
}
