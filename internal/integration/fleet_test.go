package integration

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mailretention/mailretention/internal/mariadb"
	"github.com/mailretention/mailretention/internal/mysqltest"
	"github.com/mailretention/mailretention/provisioner"
	"github.com/mailretention/mailretention/retention"
)

const (
	fleetSize = 50
	corrupt   = 17 // the number of the database that is broken
	allRights = "SELECT, INSERT, UPDATE, DELETE, CREATE, DROP"
)

// fleet is many mail servers on one database server, and an account that works on all of them.
type fleet struct {
	t      *testing.T
	root   *sql.DB
	worker *sql.DB
	boxes  []*mailbox // as root sees them
	stores []*provisioner.Provisioner
}

func newFleet(t *testing.T) *fleet {
	t.Helper()
	server := mysqltest.Server(t, mariadb.Options{Grants: true})
	f := &fleet{t: t, root: openAs(t, server, "root", ""), worker: openAs(t, server, "worker", "")}
	f.worker.SetMaxIdleConns(2 * fleetSize)
	for i := range fleetSize {
		name := fmt.Sprintf("postal-server-%d", i)
		m := openMailbox(t, f.root, name)
		require.NoError(t, m.store.Provision(t.Context()))
		m.db = openAs(t, server, "root", name)
		m.grant("worker", allRights+" ON `"+name+"`.*")
		m.fill(0, 1, 10)
		f.boxes = append(f.boxes, m)
		f.stores = append(f.stores, m.provisioner(f.worker, provisioner.Config{}))
	}
	return f
}

// expire gives each mail server a table that goes in the next run.
func (f *fleet) expire() {
	f.t.Helper()
	for _, m := range f.boxes {
		if !slices.Contains(m.tables(), m.table(6)) {
			m.fill(6, 1, 10)
		}
	}
}

// run runs all, and returns each one's ending by its name.
func (f *fleet) run(ctx context.Context, parallel int, each func()) (map[string]ending, error) {
	f.t.Helper()
	var runners []*retention.Runner
	for i, m := range f.boxes {
		runner, err := retention.New(f.stores[i], retention.Config{Name: m.name, Policy: retention.Policy{RawDays: new(3), AllowEmpty: true}})
		require.NoError(f.t, err)
		runners = append(runners, runner)
	}
	endings := map[string]ending{}
	err := retention.RunAll(ctx, slices.Values(runners), parallel, func(report retention.Report, err error) {
		endings[report.Name] = ending{report, err}
		each()
	})
	return endings, err
}

// Whatever one of fifty databases suffers from, the other forty-nine are done, and it is reported.
func TestOneCorruptDatabaseOfFiftyIsReportedAndTheOthersAreDone(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	m := f.boxes[corrupt]
	database := "`" + m.name + "`"
	for _, test := range []struct {
		name     string
		parallel int
		harm     func()
		heal     func()
	}{
		{
			"the messages' columns differ", 1,
			func() { m.exec("ALTER TABLE messages RENAME COLUMN held TO kept") },
			func() { m.exec("ALTER TABLE messages RENAME COLUMN kept TO held") },
		},
		{
			"a raw table's columns differ", 1,
			func() { m.exec("ALTER TABLE " + m.store.Ident(m.table(6)) + " RENAME COLUMN data TO notes") },
			func() {
				require.Contains(t, m.tables(), m.table(6))
				require.Len(t, m.ids(6), 1)
				require.EqualValues(t, 1, m.count("SELECT COUNT(*) FROM raw_message_sizes WHERE table_name=?", m.table(6)))
				m.exec("ALTER TABLE " + m.store.Ident(m.table(6)) + " RENAME COLUMN notes TO data")
			},
		},
		{
			"rights are revoked", 4,
			func() { m.exec("REVOKE " + allRights + " ON " + database + ".* FROM worker@localhost") },
			func() { m.grant("worker", allRights+" ON "+database+".*") },
		},
		{
			"its server is read only", 4,
			func() {
				replica, server := privateMailbox(t, mariadb.Options{Grants: true})
				replica.fill(6, 1, 10)
				replica.grant("worker", allRights+" ON `"+replica.name+"`.*")
				replica.exec("SET GLOBAL read_only = 1")
				f.stores[corrupt] = replica.provisioner(openAs(t, server, "worker", ""), provisioner.Config{})
			},
			func() { f.stores[corrupt] = m.provisioner(f.worker, provisioner.Config{}) },
		},
		{
			"it is gone", fleetSize,
			func() { m.exec("DROP DATABASE " + database) },
			func() {},
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			f.expire()
			test.harm()
			endings, err := f.run(t.Context(), test.parallel, func() {})
			test.heal()
			require.NoError(t, err)
			require.Len(t, endings, fleetSize)
			require.Error(t, endings[m.name].err)
			require.Empty(t, dropped(endings[m.name].report))
			require.Contains(t, []retention.Outcome{retention.OutcomeFailed, retention.OutcomePartial}, endings[m.name].report.Outcome)
			for i, other := range f.boxes {
				if i != corrupt {
					require.NoError(t, endings[other.name].err)
					require.Equal(t, other.days(6), dropped(endings[other.name].report))
				}
			}
		})
	}
}

// The fleet's context ends in the middle: what each report says was done is done, and nothing else.
func TestCancelledFleetReportsWhatWasDone(t *testing.T) {
	t.Parallel()
	const enough = 10
	f := newFleet(t)
	f.expire()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	reports := 0
	endings, err := f.run(ctx, 4, func() {
		if reports++; reports == enough {
			cancel()
		}
	})
	require.ErrorIs(t, err, context.Canceled)
	require.GreaterOrEqual(t, len(endings), enough)
	require.Less(t, len(endings), fleetSize)
	for _, m := range f.boxes {
		if e := endings[m.name]; len(dropped(e.report)) > 0 {
			require.Equal(t, m.days(0), m.tables())
			continue
		} else if e.report.Name != "" {
			require.ErrorIs(t, e.err, context.Canceled)
		}
		require.Equal(t, m.days(0, 6), m.tables())
	}
}

// Three tables in a row that fail end the run of their database, and of no other.
func TestThreeFailuresInARowStopOneDatabaseOnly(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	f.expire()
	m := f.boxes[corrupt]
	m.fillDays(7, 11)
	m.exec("REVOKE DROP ON `" + m.name + "`.* FROM worker@localhost")
	before := m.tables()
	endings, err := f.run(t.Context(), 4, func() {})
	require.NoError(t, err)
	for _, other := range f.boxes {
		e := endings[other.name]
		if other != m {
			require.NoError(t, e.err)
			require.Equal(t, other.days(6), dropped(e.report))
			continue
		}
		require.Equal(t, retention.OutcomePartial, e.report.Outcome)
		require.Len(t, e.report.Tables, 3, "of the six that have expired")
		require.Contains(t, e.report.Stopped, "in a row")
		_, named := errors.AsType[*retention.TableError](e.err)
		require.True(t, named)
		require.Equal(t, before, other.tables())
	}
}
