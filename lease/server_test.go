package lease_test

import (
	"context"
	"database/sql"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mailretention/mailretention/internal/mysqltest"
	"github.com/mailretention/mailretention/lease"
)

// provisioned returns leases on a table of their own.
func provisioned(t testing.TB, db *sql.DB, cfg lease.Config) *lease.Leases {
	t.Helper()
	l := newLeases(t, db, cfg)
	require.NoError(t, l.Provision(t.Context()))
	return l
}

func newLeases(t testing.TB, db *sql.DB, cfg lease.Config) *lease.Leases {
	t.Helper()
	l, err := lease.New(db, cfg)
	require.NoError(t, err)
	return l
}

func TestSmoke(t *testing.T) {
	mysqltest.NoLeaks(t)
	db, _ := mysqltest.DB(t)
	a := provisioned(t, db, lease.Config{Owner: "a", MinHold: time.Minute})
	b := provisioned(t, db, lease.Config{Owner: "b"})
	la, err := a.Acquire(t.Context(), "x")
	require.NoError(t, err)
	t.Log(la.Token(), la.TrustedUntil())
	_, err = b.Acquire(t.Context(), "x")
	t.Log(err)
	require.ErrorIs(t, err, lease.ErrHeld)
	require.NoError(t, la.Renew(t.Context()))
	require.NoError(t, la.Release(t.Context()))
	require.NoError(t, la.Release(t.Context()))
	lb, err := b.Acquire(t.Context(), "x")
	require.NoError(t, err)
	require.Greater(t, lb.Token(), la.Token())
	i, err := b.Inspect(t.Context(), "x")
	require.NoError(t, err)
	t.Logf("%+v", i)
	require.NoError(t, lb.Release(t.Context()))
	require.NoError(t, a.Do(t.Context(), "x", func(ctx context.Context) error {
		tx, err := db.BeginTx(ctx, nil)
		require.NoError(t, err)
		require.NoError(t, a.Guard(ctx, tx))
		return tx.Commit()
	}))
	err = a.Do(t.Context(), "x", nil)
	t.Log(err)
	require.ErrorIs(t, err, lease.ErrHeld)
	all, err := b.List(t.Context())
	require.NoError(t, err)
	t.Logf("%+v", all)
}
