package integration

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/mailretention/mailretention/internal/mysqltest"
	"github.com/mailretention/mailretention/lease"
	"github.com/mailretention/mailretention/provisioner"
	"github.com/mailretention/mailretention/retention"
	"github.com/mailretention/mailretention/retention/retentiontest"
	"github.com/stretchr/testify/require"
)

func TestProvisionerIsAStore(t *testing.T) {
	retentiontest.TestStore(t, func(t *testing.T, f retentiontest.Fixture) retention.Store {
		db, name := mysqltest.DB(t)
		var pending []int64
		p, err := provisioner.New(db, provisioner.Config{Database: name, Pending: func(context.Context) ([]int64, error) { return pending, nil }})
		require.NoError(t, err)
		require.NoError(t, p.Provision(t.Context()))
		id := int64(0)
		for _, d := range f.Days {
			day, err := time.Parse("raw-2006-01-02", d.Table)
			require.NoError(t, err)
			_, err = db.Exec(fmt.Sprintf("CREATE TABLE %s (%s)", p.Ident(d.Table), provisioner.PostalSchema().RawColumns))
			require.NoError(t, err)
			_, err = db.Exec("INSERT INTO raw_message_sizes (table_name, size) VALUES (?, ?)", d.Table, d.Bytes)
			require.NoError(t, err)
			for i := range d.Messages {
				id++
				_, err = db.Exec("INSERT INTO messages (id, `timestamp`, raw_table) VALUES (?, ?, ?)", id, day.Unix()+int64(i), d.Table)
				require.NoError(t, err)
				if i < d.Pending {
					pending = append(pending, id)
				}
			}
		}
		return p
	})
}

func TestLeasesAreALocker(t *testing.T) {
	retentiontest.TestLocker(t, func(t *testing.T) retention.Locker {
		db, _ := mysqltest.DB(t)
		l, err := lease.New(db, lease.Config{})
		require.NoError(t, err)
		require.NoError(t, l.Provision(t.Context()))
		return l
	})
}
