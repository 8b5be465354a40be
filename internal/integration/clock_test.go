package integration

import (
	"encoding/json"
	"fmt"
	"math"
	"testing"
	"time"
	_ "time/tzdata" // zones, whatever the machine has

	"github.com/stretchr/testify/require"

	"github.com/mailretention/mailretention/internal/mysqltest"
	"github.com/mailretention/mailretention/provisioner"
	"github.com/mailretention/mailretention/retention"
)

// clockAt is a parameter of a DSN that sets the server's clock for the session.
func clockAt(t time.Time) string {
	return fmt.Sprintf("timestamp=%d.%06d", t.Unix(), t.Nanosecond()/int(time.Microsecond))
}

// through is the mailbox's store on sessions with these parameters.
func (m *mailbox) through(params ...string) *provisioner.Provisioner {
	m.t.Helper()
	return m.provisioner(mysqltest.Open(m.t, m.name, params...), provisioner.Config{})
}

// The database's clock and the local one differ: nothing is touched, not even what drifted, and the plan can be read.
func TestSuspectClockTouchesNothing(t *testing.T) {
	m := newMailbox(t)
	for back := range 9 {
		m.fill(back, 2, 100)
	}
	m.exec("INSERT INTO raw_message_sizes (table_name, size) VALUES (?, 5)", m.table(60))
	before := m.state()
	for name, ahead := range map[string]time.Duration{"ahead": 2 * time.Hour, "behind": -2 * time.Hour} {
		t.Run(name, func(t *testing.T) {
			report, err := retention.Run(t.Context(), m.through(clockAt(time.Now().Add(ahead))), retention.Config{
				Name: "test", Policy: retention.Policy{RawDays: new(4), MessageDays: new(4)},
			})
			require.ErrorIs(t, err, retention.ErrSuspectClock)
			require.Equal(t, retention.OutcomeRefused, report.Outcome)
			require.NotEmpty(t, report.Plan.Drops)
			require.Empty(t, report.Tables)
			requireSame(t, before, m.state(), "")
		})
	}
	require.Len(t, dropped(m.run(retention.Policy{RawDays: new(4)})), 4, "with clocks that agree they go")
}

// The plan depends on the server's UTC date alone: around midnight it is the same in every zone of the process and the session.
func TestPlanAtMidnightIsTheSameInEveryZone(t *testing.T) {
	m := newMailbox(t)
	const around = 5                                                // days
	middle := time.Date(2026, time.March, 29, 0, 0, 0, 0, time.UTC) // the clocks of Berlin go forward on it
	for n := -around; n <= around; n++ {
		m.createTable("raw-" + middle.AddDate(0, 0, n).Format(time.DateOnly))
	}
	plan := func(at time.Time, session string) retention.Plan {
		runner, err := retention.New(m.through(clockAt(at), "time_zone='"+session+"'", "loc=Local", "parseTime=true"), retention.Config{
			Name: "test", MaxSkew: math.MaxInt64,
			Policy: retention.Policy{RawDays: new(1), MessageDays: new(1), MinKeepDays: 1, AllowEmpty: true},
		})
		require.NoError(t, err)
		plan, err := runner.Plan(t.Context())
		require.NoError(t, err)
		return plan
	}
	local := time.Local
	defer func() { time.Local = local }()
	for at, expired := range map[time.Time]int{
		middle.Add(-time.Microsecond): around - 2, // it is the day before, one day beside it stays
		middle:                        around - 1,
		middle.Add(24*time.Hour - time.Microsecond): around - 1,
		middle.AddDate(0, 0, 1):                     around,
		middle.Add(time.Hour):                       around - 1, // when Berlin's clocks jump
		middle.Add(time.Hour - time.Microsecond):    around - 1,
		middle.Add(11*time.Hour - time.Microsecond): around - 1, // midnight in Samoa
		middle.Add(10 * time.Hour):                  around - 1, // and on Kiritimati
	} {
		var first []byte
		for zone, session := range map[string]string{"UTC": "+00:00", "Pacific/Pago_Pago": "-11:00", "Pacific/Kiritimati": "+13:00", "Europe/Berlin": "+02:00"} {
			var err error
			time.Local, err = time.LoadLocation(zone)
			require.NoError(t, err)
			p := plan(at, session)
			require.Equal(t, at, p.Now)
			require.Len(t, p.Drops, expired, "%s in %s", at, zone)
			text, err := json.Marshal(p)
			require.NoError(t, err)
			if first == nil {
				first = text
			}
			require.JSONEq(t, string(first), string(text), "%s in %s", at, zone)
		}
	}
}
