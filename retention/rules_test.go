package retention_test

import (
	"math"
	"testing"
	"time"

	"github.com/mailretention/mailretention/retention"
	"github.com/stretchr/testify/require"
)

func TestMessageCut(t *testing.T) {
	early := time.Date(2026, time.June, 15, 0, 59, 59, 999_999_000, time.UTC)
	for name, c := range map[string]struct {
		policy retention.Policy
		now    time.Time
		want   time.Time
	}{
		"whole days beside today":                          {retention.Policy{MessageDays: new(3)}, now, midnight(3)},
		"never after the start of the protected days":      {retention.Policy{MessageDays: new(0)}, now, midnight(1)},
		"nor with more of them":                            {retention.Policy{MessageDays: new(3), MinKeepDays: 10}, now, midnight(9)},
		"MinKeepDays 1 leaves today alone":                 {retention.Policy{MessageDays: new(0), MinKeepDays: 1}, now, midnight(0)},
		"MinKeepDays 1 leaves yesterday for an hour":       {retention.Policy{MessageDays: new(0), MinKeepDays: 1}, early, midnight(1)},
		"a day is a day until its last microsecond":        {retention.Policy{MessageDays: new(3)}, midnight(-1).Add(-time.Microsecond), midnight(3)},
		"and the next one from its first":                  {retention.Policy{MessageDays: new(3)}, midnight(-1), midnight(2)},
		"more days than a time can tell":                   {retention.Policy{MessageDays: new(math.MaxInt)}, now, time.Time{}},
		"MinKeepDays of more days than a time can tell":    {retention.Policy{MessageDays: new(0), MinKeepDays: math.MaxInt}, now, time.Time{}},
		"before 1970, where the policy reaches that far":   {retention.Policy{MessageDays: new(30_000)}, now, midnight(30_000)},
		"raw limits don't matter, nor does the age of raw": {retention.Policy{MessageDays: new(3), RawDays: new(9), RawBytes: new(int64(1))}, now, midnight(3)},
	} {
		t.Run(name, func(t *testing.T) {
			plan, err := c.policy.Plan(retention.Inventory{Now: c.now})
			require.NoError(t, err)
			require.Equal(t, &retention.Cut{Before: c.want}, plan.MessageCut)
		})
	}
	t.Run("no rule, no cut", func(t *testing.T) {
		plan, err := retention.Policy{RawDays: new(1)}.Plan(days(3))
		require.NoError(t, err)
		require.Nil(t, plan.MessageCut)
	})
	t.Run("holds are excepted", func(t *testing.T) {
		holds := []retention.Hold{hold(9, 7), {To: midnight(20)}}
		plan, err := retention.Policy{MessageDays: new(3), Holds: holds}.Plan(days(3))
		require.NoError(t, err)
		require.Equal(t, holds, plan.MessageCut.Except)
	})
}

func TestPlanRefusesToEmpty(t *testing.T) {
	type policy = retention.Policy
	// gone has tables of n days that end ago days before today, and today's.
	gone := func(n, ago int, change ...func(*retention.Table)) retention.Inventory {
		inv := days(1)
		for i := range n {
			tb := table(ago + i)
			for _, c := range change {
				c(&tb)
			}
			inv.Tables = append(inv.Tables, tb)
		}
		return inv
	}
	for name, c := range map[string]struct {
		policy  policy
		inv     retention.Inventory
		refused bool
	}{
		"200 expired tables and today's":               {policy{RawDays: new(30)}, gone(200, 60), true},
		"though a person allows it":                    {policy{RawDays: new(30), AllowEmpty: true}, gone(200, 60), false},
		"four":                                         {policy{RawDays: new(30)}, gone(4, 60), true},
		"three at most are a short outage":             {policy{RawDays: new(30)}, gone(3, 60), false},
		"one stays beside the protected days":          {policy{RawDays: new(30)}, gone(200, 30), false},
		"a table in use is no day that stays":          {policy{RawDays: new(30), Holds: []retention.Hold{hold(62, 61)}}, with(100, inUse, 99, 98), false},
		"only a held one stays":                        {policy{RawDays: new(30), Holds: []retention.Hold{hold(61, 60)}}, gone(10, 60), true},
		"a policy of the protected days only":          {policy{RawDays: new(1)}, gone(200, 60), false},
		"a policy of fewer days than protected":        {policy{RawDays: new(0)}, gone(200, 60), false},
		"a policy of one day more":                     {policy{RawDays: new(2)}, gone(200, 60), true},
		"MinKeepDays as long as the policy":            {policy{RawDays: new(29), MinKeepDays: 30}, gone(200, 60), false},
		"a size that the protected days fill":          {policy{RawBytes: new(int64(mib))}, gone(200, 2), false},
		"a size that a table in use fills":             {policy{RawBytes: new(int64(3 * mib))}, with(9, func(t *retention.Table) { t.InUse, t.Bytes = "queued", 9*mib }, 8), true},
		"a size of nothing":                            {policy{RawBytes: new(int64(0))}, gone(200, 2), false},
		"a size with room for more, but not for a day": {policy{RawBytes: new(int64(2*mib - 1))}, gone(200, 2), true},
		"the days expired, the size leaves no room":    {policy{RawDays: new(30), RawBytes: new(int64(1))}, gone(200, 60), false},
		"an unknown size leaves it open":               {policy{RawDays: new(30), RawBytes: new(int64(2 * mib))}, gone(200, 60, unsized), true},
		"nothing expired":                              {policy{RawDays: new(300)}, gone(200, 60), false},
	} {
		t.Run(name, func(t *testing.T) {
			plan, err := c.policy.Plan(c.inv)
			require.Len(t, append(plan.Drops, make([]retention.Drop, len(plan.Keeps))...), len(c.inv.Tables), "the plan is whole")
			if !c.refused {
				require.NoError(t, err)
				return
			}
			require.ErrorIs(t, err, retention.ErrWouldEmpty)
			require.ErrorIs(t, err, retention.ErrRefused)
			require.NotEmpty(t, plan.Drops, "the plan is there to be read")
		})
	}
}

func TestPlanRefusesToPruneAll(t *testing.T) {
	const days = 30
	cut := midnight(days)
	for name, c := range map[string]struct {
		newest     time.Time
		allowEmpty bool
		refused    bool
	}{
		"the newest is recent":                {newest: now},
		"the newest is of the day of the cut": {newest: cut},
		"the newest is three days below":      {newest: cut.AddDate(0, 0, -3)},
		"the newest is more than three below": {newest: cut.AddDate(0, 0, -3).Add(-time.Microsecond), refused: true},
		"though a person allows it":           {newest: cut.AddDate(-1, 0, 0), allowEmpty: true},
		"the newest is unknown":               {},
		"the newest lies in the future":       {newest: now.AddDate(1, 0, 0)},
	} {
		t.Run(name, func(t *testing.T) {
			policy := retention.Policy{MessageDays: new(days), AllowEmpty: c.allowEmpty}
			plan, err := policy.Plan(retention.Inventory{Now: now, Newest: c.newest})
			require.Equal(t, cut, plan.MessageCut.Before)
			if c.refused {
				require.ErrorIs(t, err, retention.ErrWouldEmpty)
				return
			}
			require.NoError(t, err)
		})
	}
}

func TestPlanWarns(t *testing.T) {
	future := days(3)
	future.Tables = append(future.Tables, table(-2), table(-1))
	for name, c := range map[string]struct {
		policy retention.Policy
		inv    retention.Inventory
		want   []string
	}{
		"of nothing":      {retention.Policy{RawDays: new(9), RawBytes: new(int64(mib * 9)), MessageDays: new(9)}, days(3), nil},
		"of days to come": {retention.Policy{}, future, []string{"2 tables of days to come, the first raw-2026-06-16: never touched; look at the clock"}},
		"of protected tables above the limit": {
			retention.Policy{RawBytes: new(int64(mib)), Holds: []retention.Hold{hold(4, 4)}},
			days(5),
			[]string{"protected tables alone hold 3.0 MiB, the limit is 1.0 MiB"},
		},
		"of unknown sizes": {
			retention.Policy{RawBytes: new(int64(mib * 9))},
			with(3, unsized, 2),
			[]string{"the size of 1 table is unknown, the first raw-2026-06-13: no table goes for size"},
		},
		"of a negative size, which is unknown": {
			retention.Policy{RawBytes: new(int64(mib * 9))},
			with(3, func(t *retention.Table) { t.Bytes = -1 }, 2),
			[]string{"the size of 1 table is unknown, the first raw-2026-06-13: no table goes for size"},
		},
		"of unknown sizes only where they matter": {retention.Policy{RawDays: new(9)}, with(3, unsized, 2), nil},
		"of sizes beyond any sum": {
			retention.Policy{RawBytes: new(int64(math.MaxInt64))},
			with(4, func(t *retention.Table) { t.Bytes = math.MaxInt64 }, 2, 3),
			[]string{"the sizes add up to more than any disk holds: no table goes for size"},
		},
		"of messages that go before their mail": {
			retention.Policy{RawDays: new(9), MessageDays: new(8)},
			days(3),
			[]string{"messages go after 8 days, their raw mail only after 9 days"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			plan, err := c.policy.Plan(c.inv)
			require.NoError(t, err)
			require.Equal(t, c.want, plan.Warnings)
		})
	}
}

func TestPlanNeedsAClock(t *testing.T) {
	for name, clock := range map[string]time.Time{
		"no time":         {},
		"before 1970":     time.Date(1969, time.December, 31, 23, 59, 59, 0, time.UTC),
		"after year 9999": time.Date(10_000, time.January, 1, 0, 0, 0, 0, time.UTC),
	} {
		t.Run(name, func(t *testing.T) {
			inv := days(9)
			inv.Now = clock
			plan, err := retention.Policy{RawDays: new(1), MessageDays: new(1)}.Plan(inv)
			require.ErrorIs(t, err, retention.ErrSuspectClock)
			require.ErrorIs(t, err, retention.ErrRefused)
			require.Empty(t, plan.Drops)
			require.Nil(t, plan.MessageCut)
		})
	}
}

// TestPlanKnowsNoZones gives the same moments in the zones of processes and through changes of daylight saving time.
func TestPlanKnowsNoZones(t *testing.T) {
	policy := retention.Policy{RawDays: new(3), RawBytes: new(int64(4 * mib)), MessageDays: new(4), Holds: []retention.Hold{hold(6, 6)}}
	zones := map[string]*time.Location{"−11": time.FixedZone("", -11*3600), "+14": time.FixedZone("", 14*3600)}
	for _, name := range []string{"Europe/Berlin", "America/St_Johns", "Pacific/Apia"} {
		zone, err := time.LoadLocation(name)
		require.NoError(t, err)
		zones[name] = zone
	}
	for _, clock := range []string{
		"1970-01-01T00:00:00Z", "1970-01-09T23:59:59.999999Z", "2099-12-31T23:59:59.999999Z", "2100-01-01T00:00:00Z",
		"2026-03-29T00:59:59Z", "2026-03-29T01:00:00Z", "2026-10-25T00:30:00Z", "2011-12-30T12:00:00Z", "2024-02-29T12:00:00Z",
	} {
		moment, err := time.Parse(time.RFC3339Nano, clock)
		require.NoError(t, err)
		inv := retention.Inventory{Now: moment}
		for ago := range 8 {
			day := moment.Truncate(24*time.Hour).AddDate(0, 0, -ago)
			inv.Tables = append(inv.Tables, retention.Table{Name: "raw-" + day.Format(time.DateOnly), Day: day, Bytes: mib, SizeKnown: true})
		}
		want, err := policy.Plan(inv)
		require.NoError(t, err)
		require.Len(t, want.Drops, 4, clock)
		for name, zone := range zones {
			there := retention.Inventory{Now: moment.In(zone)}
			for _, tb := range inv.Tables {
				tb.Day = tb.Day.In(zone)
				there.Tables = append(there.Tables, tb)
			}
			got, err := policy.Plan(there)
			require.NoError(t, err)
			require.Equal(t, want, got, "%s in %s", clock, name)
		}
	}
}
