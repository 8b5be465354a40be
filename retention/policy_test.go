package retention_test

import (
	"math"
	"testing"
	"time"

	"github.com/mailretention/mailretention/retention"
	"github.com/stretchr/testify/require"
)

// TestPolicyValues documents what each value of a limit means for a day of 1 MiB each, today and the seven before.
func TestPolicyValues(t *testing.T) {
	const invalid = "invalid"
	for name, c := range map[string]struct {
		policy retention.Policy
		want   string // the ages that go
	}{
		"RawDays nil":         {retention.Policy{}, ""},
		"RawDays 0":           {retention.Policy{RawDays: new(0)}, "7:age 6:age 5:age 4:age 3:age 2:age"},
		"RawDays 1":           {retention.Policy{RawDays: new(1)}, "7:age 6:age 5:age 4:age 3:age 2:age"},
		"RawDays 5":           {retention.Policy{RawDays: new(5)}, "7:age 6:age"},
		"RawDays 7":           {retention.Policy{RawDays: new(7)}, ""},
		"RawDays huge":        {retention.Policy{RawDays: new(math.MaxInt)}, ""},
		"RawDays −1":          {retention.Policy{RawDays: new(-1)}, invalid},
		"RawDays very small":  {retention.Policy{RawDays: new(math.MinInt)}, invalid},
		"RawBytes nil":        {retention.Policy{RawBytes: nil}, ""},
		"RawBytes 0":          {retention.Policy{RawBytes: new(int64(0))}, "7:size 6:size 5:size 4:size 3:size 2:size"},
		"RawBytes 1":          {retention.Policy{RawBytes: new(int64(1))}, "7:size 6:size 5:size 4:size 3:size 2:size"},
		"RawBytes 6.5 MiB":    {retention.Policy{RawBytes: new(int64(13 * mib / 2))}, "7:size 6:size"},
		"RawBytes huge":       {retention.Policy{RawBytes: new(int64(math.MaxInt64))}, ""},
		"RawBytes −1":         {retention.Policy{RawBytes: new(int64(-1))}, invalid},
		"MessageDays −1":      {retention.Policy{MessageDays: new(-1)}, invalid},
		"MinKeepDays 0":       {retention.Policy{RawDays: new(0), MinKeepDays: 0}, "7:age 6:age 5:age 4:age 3:age 2:age"},
		"MinKeepDays 1":       {retention.Policy{RawDays: new(0), MinKeepDays: 1}, "7:age 6:age 5:age 4:age 3:age 2:age 1:age"},
		"MinKeepDays 7":       {retention.Policy{RawDays: new(0), MinKeepDays: 7}, "7:age"},
		"MinKeepDays huge":    {retention.Policy{RawDays: new(0), RawBytes: new(int64(0)), MinKeepDays: math.MaxInt}, ""},
		"MinKeepDays −1":      {retention.Policy{MinKeepDays: -1}, invalid},
		"days and bytes":      {retention.Policy{RawDays: new(6), RawBytes: new(int64(5 * mib))}, "7:age 6:size 5:size"},
		"days beyond bytes":   {retention.Policy{RawDays: new(math.MaxInt), RawBytes: new(int64(6 * mib))}, "7:size 6:size"},
		"bytes beyond days":   {retention.Policy{RawDays: new(5), RawBytes: new(int64(math.MaxInt64))}, "7:age 6:age"},
		"messages touch none": {retention.Policy{MessageDays: new(0)}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			plan, err := c.policy.Plan(days(8))
			if c.want == invalid {
				require.ErrorIs(t, err, retention.ErrBadPolicy)
				require.ErrorIs(t, err, retention.ErrRefused)
				require.Empty(t, plan.Drops)
				return
			}
			require.NoError(t, err)
			plan.Keeps = nil
			require.Equal(t, c.want, verdicts(plan))
		})
	}
}

func TestValidateJoinsAllFaults(t *testing.T) {
	err := retention.Policy{
		RawDays: new(-1), RawBytes: new(int64(-2)), MessageDays: new(-3), MinKeepDays: -4,
		Holds: []retention.Hold{
			hold(1, 2),
			{From: time.Date(2026, time.June, 3, 0, 0, 0, 0, time.FixedZone("", 7200)), To: midnight(0)},
			{To: midnight(0).Add(time.Nanosecond)},
			{From: time.Date(0, time.December, 31, 0, 0, 0, 0, time.UTC), To: time.Date(10_000, time.January, 1, 0, 0, 0, 0, time.UTC)},
		},
	}.Validate()
	require.ErrorIs(t, err, retention.ErrBadPolicy)
	require.EqualError(t, err, `retention: refused: bad policy: RawDays is -1: it must not be negative; nil keeps for ever
RawBytes is -2: it must not be negative; nil keeps for ever
MessageDays is -3: it must not be negative; nil keeps for ever
MinKeepDays is -4: it must not be negative; 0 means 2
Holds[0].From is 2026-06-14, after Holds[0].To, which is 2026-06-13: swap them
Holds[1].From is 2026-06-03T00:00:00+02:00: use midnight UTC of the day
Holds[2].To is 2026-06-15T00:00:00.000000001Z: use midnight UTC of the day
Holds[3].From is 0000-12-31T00:00:00Z: use a year from 1 to 9999, or the zero time for an open end
Holds[3].To is 10000-01-01T00:00:00Z: use a year from 1 to 9999, or the zero time for an open end`)
}

func TestValidateAccepts(t *testing.T) {
	for name, p := range map[string]retention.Policy{
		"the zero policy":          {},
		"zero limits":              {RawDays: new(0), RawBytes: new(int64(0)), MessageDays: new(0)},
		"largest limits":           {RawDays: new(math.MaxInt), RawBytes: new(int64(math.MaxInt64)), MessageDays: new(math.MaxInt), MinKeepDays: math.MaxInt},
		"open holds":               {Holds: []retention.Hold{{}, {From: midnight(1)}, {To: midnight(1)}}},
		"a hold over one day":      {Holds: []retention.Hold{hold(1, 1)}},
		"the first and last day":   {Holds: []retention.Hold{{From: time.Date(1, time.January, 2, 0, 0, 0, 0, time.UTC), To: time.Date(9999, time.December, 31, 0, 0, 0, 0, time.UTC)}}},
		"midnight in another zone": {Holds: []retention.Hold{{From: midnight(1).In(time.FixedZone("", 3600))}}},
	} {
		t.Run(name, func(t *testing.T) { require.NoError(t, p.Validate()) })
	}
}

func TestPolicyString(t *testing.T) {
	for want, p := range map[string]retention.Policy{
		"raw mail for ever; messages for ever; 2 newest days protected":                     {},
		"raw mail 30 days and 1.0 GiB; messages 40 days; 2 newest days protected":           {RawDays: new(30), RawBytes: new(int64(1 << 30)), MessageDays: new(40)},
		"raw mail 0 B; messages 1 day; 1 newest day protected; 2 legal holds; may be empty": {RawBytes: new(int64(0)), MessageDays: new(1), MinKeepDays: 1, Holds: make([]retention.Hold, 2), AllowEmpty: true},
	} {
		require.Equal(t, want, p.String())
	}
}
