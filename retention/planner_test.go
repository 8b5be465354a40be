package retention_test

import (
	"math"
	"slices"
	"testing"
	"time"

	"github.com/mailretention/mailretention/retention"
	"github.com/stretchr/testify/require"
)

// planCase is a policy, an inventory and the verdicts of the plan; the fuzz target's seeds are made of them too.
type planCase struct {
	name   string
	policy retention.Policy
	inv    retention.Inventory
	want   string
}

func planCases() []planCase {
	future := func(inv retention.Inventory, ago int, bytes int64) retention.Inventory {
		t := table(ago)
		t.Bytes = bytes
		inv.Tables = append(inv.Tables, t)
		return inv
	}
	at := func(inv retention.Inventory, clock string) retention.Inventory {
		inv.Now, _ = time.Parse("2006-01-02 15:04:05.999999", "2026-06-15 "+clock)
		return inv
	}
	type policy = retention.Policy
	return []planCase{
		{"nothing to plan", policy{RawDays: new(3), RawBytes: new(int64(0))}, days(0), ""},
		{"the zero policy keeps all", policy{}, days(4), "3:within_policy 2:within_policy 1:active 0:active"},
		{"a day before today less RawDays goes", policy{RawDays: new(2)}, days(5), "4:age 3:age 2:within_policy 1:active 0:active"},
		{"RawDays 0 leaves the protected days", policy{RawDays: new(0)}, days(4), "3:age 2:age 1:active 0:active"},
		{"no more days than there are", policy{RawDays: new(math.MaxInt)}, days(3), "2:within_policy 1:active 0:active"},

		{"MinKeepDays beats age", policy{RawDays: new(1), MinKeepDays: 4}, days(6), "5:age 4:age 3:active 2:active 1:active 0:active"},
		{"MinKeepDays beats size", policy{RawBytes: new(int64(0)), MinKeepDays: 3}, days(5), "4:size 3:size 2:active 1:active 0:active"},
		{"MinKeepDays beyond all days", policy{RawDays: new(0), MinKeepDays: math.MaxInt}, days(3), "2:active 1:active 0:active"},
		{"MinKeepDays 1 protects today alone", policy{RawDays: new(0), MinKeepDays: 1}, days(3), "2:age 1:age 0:active"},
		{"MinKeepDays 1 protects yesterday at midnight", policy{RawDays: new(0), MinKeepDays: 1}, at(days(3), "00:00:00"), "2:age 1:active 0:active"},
		{"MinKeepDays 1 protects yesterday for an hour", policy{RawBytes: new(int64(0)), MinKeepDays: 1}, at(days(3), "00:59:59.999999"), "2:size 1:active 0:active"},
		{"MinKeepDays 1 protects yesterday no longer", policy{RawBytes: new(int64(0)), MinKeepDays: 1}, at(days(3), "01:00:00"), "2:size 1:size 0:active"},
		{"MinKeepDays 2 has no such hour", policy{RawDays: new(0)}, at(days(3), "00:30:00"), "2:age 1:active 0:active"},

		{"what fits stays", policy{RawBytes: new(int64(5 * mib))}, days(5), "4:within_policy 3:within_policy 2:within_policy 1:active 0:active"},
		{"one byte too much takes the oldest day", policy{RawBytes: new(int64(5*mib - 1))}, days(5), "4:size 3:within_policy 2:within_policy 1:active 0:active"},
		{"days go from the oldest until the rest fits", policy{RawBytes: new(int64(3 * mib))}, days(5), "4:size 3:size 2:within_policy 1:active 0:active"},
		{"size counts what age leaves", policy{RawDays: new(3), RawBytes: new(int64(3 * mib))}, days(6), "5:age 4:age 3:size 2:within_policy 1:active 0:active"},
		{"age alone may make it fit", policy{RawDays: new(3), RawBytes: new(int64(4 * mib))}, days(6), "5:age 4:age 3:within_policy 2:within_policy 1:active 0:active"},
		{"the walk ends where all that is left is protected", policy{RawBytes: new(int64(1))}, days(4), "3:size 2:size 1:active 0:active"},
		{"the walk skips what is in use", policy{RawBytes: new(int64(4 * mib))}, with(6, inUse, 5), "5:in_use 4:size 3:size 2:within_policy 1:active 0:active"},
		{"no other day goes in a held day's place", policy{RawBytes: new(int64(4 * mib)), Holds: []retention.Hold{hold(5, 5)}}, days(6), "5:legal_hold 4:size 3:within_policy 2:within_policy 1:active 0:active"},
		{"nor in the place of a held day that has expired", policy{RawDays: new(4), RawBytes: new(int64(5 * mib)), Holds: []retention.Hold{hold(5, 5)}}, days(6), "5:legal_hold 4:within_policy 3:within_policy 2:within_policy 1:active 0:active"},

		{"a future table stays and is not counted", policy{RawDays: new(0), RawBytes: new(int64(3 * mib))}, future(days(2), -1, 5<<30), "1:active 0:active -1:future"},
		{"a future table makes no other go", policy{RawBytes: new(int64(4 * mib))}, future(days(4), -400, 5<<30), "3:within_policy 2:within_policy 1:active 0:active -400:future"},

		{"an unknown size stops the rule of size", policy{RawBytes: new(int64(0))}, with(4, unsized, 3), "3:within_policy 2:within_policy 1:active 0:active"},
		{"even that of a protected table", policy{RawBytes: new(int64(0))}, with(4, unsized, 0), "3:within_policy 2:within_policy 1:active 0:active"},
		{"an unknown size does not stop the rule of age", policy{RawDays: new(2), RawBytes: new(int64(0))}, with(5, unsized, 2), "4:age 3:age 2:within_policy 1:active 0:active"},
		{"the unknown size of what goes by age stops nothing", policy{RawDays: new(3), RawBytes: new(int64(3 * mib))}, with(5, unsized, 4), "4:age 3:size 2:within_policy 1:active 0:active"},
		{"a negative size is unknown", policy{RawBytes: new(int64(0))}, with(4, func(t *retention.Table) { t.Bytes = -5 << 30 }, 2), "3:within_policy 2:within_policy 1:active 0:active"},
		{"sizes beyond any sum stop the rule of size", policy{RawBytes: new(int64(0))}, with(4, func(t *retention.Table) { t.Bytes = math.MaxInt64 }, 3, 2), "3:within_policy 2:within_policy 1:active 0:active"},

		{"in use beats age", policy{RawDays: new(2)}, with(5, inUse, 4), "4:in_use 3:age 2:within_policy 1:active 0:active"},
		{"a hold beats age", policy{RawDays: new(2), Holds: []retention.Hold{hold(4, 4)}}, days(6), "5:age 4:legal_hold 3:age 2:within_policy 1:active 0:active"},
		{"a hold covers both its ends", policy{RawDays: new(2), Holds: []retention.Hold{hold(5, 4)}}, days(7), "6:age 5:legal_hold 4:legal_hold 3:age 2:within_policy 1:active 0:active"},
		{"a hold without beginning", policy{RawDays: new(2), Holds: []retention.Hold{{To: midnight(4)}}}, days(6), "5:legal_hold 4:legal_hold 3:age 2:within_policy 1:active 0:active"},
		{"a hold without end", policy{RawDays: new(2), Holds: []retention.Hold{{From: midnight(4)}}}, days(6), "5:age 4:legal_hold 3:legal_hold 2:legal_hold 1:legal_hold,active 0:legal_hold,active"},
		{"a hold over all days", policy{RawDays: new(0), RawBytes: new(int64(0)), Holds: []retention.Hold{{}}}, days(3), "2:legal_hold 1:legal_hold,active 0:legal_hold,active"},
		{"overlapping holds", policy{RawDays: new(0), Holds: []retention.Hold{hold(5, 4), hold(4, 3)}}, days(7), "6:age 5:legal_hold 4:legal_hold 3:legal_hold 2:age 1:active 0:active"},
		{
			"every reason, in order of precedence",
			policy{RawDays: new(0), Holds: []retention.Hold{{}}},
			with(3, inUse, 2, 1, 0), "2:legal_hold,in_use 1:legal_hold,in_use,active 0:legal_hold,in_use,active",
		},
		{
			"a future table's reasons",
			policy{Holds: []retention.Hold{{}}},
			retention.Inventory{Now: now, Tables: []retention.Table{{Name: name(-1), Day: midnight(-1), InUse: "queued"}}},
			"-1:legal_hold,in_use,future",
		},
	}
}

func TestPlan(t *testing.T) {
	for _, c := range planCases() {
		t.Run(c.name, func(t *testing.T) {
			plan, err := c.policy.Plan(c.inv)
			require.NoError(t, err)
			require.Equal(t, c.want, verdicts(plan))
		})
	}
}

func TestPlanSums(t *testing.T) {
	policy := retention.Policy{RawBytes: new(int64(3 * mib)), Holds: []retention.Hold{hold(6, 6)}}
	inv := with(7, inUse, 5, 4, 3, 2)
	future := table(-1)
	future.Bytes = 5 << 30
	inv.Tables = append(inv.Tables, future)

	plan, err := policy.Plan(inv)
	require.NoError(t, err)
	require.EqualValues(t, 7*mib, plan.Bytes, "future tables do not count")
	require.EqualValues(t, 7*mib, plan.BytesAfter)
	require.EqualValues(t, 4*mib, plan.Shortfall)
	require.Equal(t, policy, plan.Policy)
	require.Equal(t, now, plan.Now)

	plan, err = retention.Policy{RawDays: new(3), RawBytes: new(int64(3 * mib))}.Plan(days(6))
	require.NoError(t, err)
	require.EqualValues(t, 6*mib, plan.Bytes)
	require.EqualValues(t, 3*mib, plan.BytesAfter)
	require.Zero(t, plan.Shortfall)

	plan, err = retention.Policy{RawBytes: new(int64(1))}.Plan(with(4, func(t *retention.Table) { t.Bytes = math.MaxInt64 }, 2, 3))
	require.NoError(t, err)
	require.Equal(t, int64(math.MaxInt64), plan.Bytes)
	require.Equal(t, int64(math.MaxInt64-1), plan.Shortfall)
}

func TestPlanListsATableOnce(t *testing.T) {
	policy := retention.Policy{RawDays: new(2), RawBytes: new(int64(0))}
	for name, c := range map[string]struct {
		change func(t *retention.Table)
		want   string
	}{
		"twice the same":        {func(*retention.Table) {}, "3:age 1:active 0:active"},
		"in use in one account": {inUse, "3:in_use 1:active 0:active"},
		"sizes that differ":     {func(t *retention.Table) { t.Bytes++ }, "3:age 1:active 0:active"},
		"a newer day in one":    {func(t *retention.Table) { t.Day = midnight(1) }, "1:active 1:active 0:active"},
		"an older day in one":   {func(t *retention.Table) { t.Day = midnight(9) }, "3:age 1:active 0:active"},
	} {
		t.Run(name, func(t *testing.T) {
			inv := days(2)
			other := table(3)
			c.change(&other)
			inv.Tables = append(inv.Tables, table(3), other)
			for range 2 {
				plan, err := policy.Plan(inv)
				require.NoError(t, err)
				require.Equal(t, c.want, verdicts(plan))
				slices.Reverse(inv.Tables)
			}
		})
	}
	t.Run("a size that two accounts give differently is unknown", func(t *testing.T) {
		inv := days(4)
		other := table(3)
		other.Bytes++
		inv.Tables = append(inv.Tables, other)
		plan, err := retention.Policy{RawBytes: new(int64(0))}.Plan(inv)
		require.NoError(t, err)
		require.Empty(t, plan.Drops)
	})
}

func TestPlanLeavesATableWithoutDayAlone(t *testing.T) {
	for name, day := range map[string]time.Time{"zero": {}, "before year 1": time.Unix(-1<<40, 0), "after year 9999": time.Unix(1<<40, 0)} {
		t.Run(name, func(t *testing.T) {
			inv := days(2)
			inv.Tables = append(inv.Tables, retention.Table{Name: name, Day: day}, table(5), retention.Table{Name: "raw-2026-06-10"})
			inv.Ignored = []retention.Ignored{{Name: "raw-x", Reason: "not a day"}, {Name: "raw-2024-13-45", Reason: "not a day"}}
			plan, err := retention.Policy{RawDays: new(0)}.Plan(inv)
			require.NoError(t, err)
			require.Equal(t, "1:active 0:active", verdicts(plan), "a table of which one account has no day stays too")
			require.ElementsMatch(t, []string{name, "raw-2026-06-10", "raw-2024-13-45", "raw-x"}, names(plan.Ignored))
		})
	}
}

func names(ignored []retention.Ignored) (list []string) {
	for _, i := range ignored {
		list = append(list, i.Name)
	}
	return list
}

func TestPlanDoesNotChangeItsInput(t *testing.T) {
	inv := days(5)
	inv.Ignored = []retention.Ignored{{Name: "z"}, {Name: "a"}}
	inv.Drift = []retention.Drift{{Table: "z"}, {Table: "a"}}
	copied := retention.Inventory{
		Now: inv.Now, Newest: inv.Newest,
		Tables: slices.Clone(inv.Tables), Ignored: slices.Clone(inv.Ignored), Drift: slices.Clone(inv.Drift),
	}
	plan, err := retention.Policy{RawDays: new(2), RawBytes: new(int64(mib))}.Plan(inv)
	require.NoError(t, err)
	require.Equal(t, copied, inv)
	require.Equal(t, []string{"a", "z"}, names(plan.Ignored))
	require.Equal(t, []retention.Drift{{Table: "a"}, {Table: "z"}}, plan.Drift)

	plan.Keeps[0].Reasons = append(plan.Keeps[0].Reasons, "x")
	require.Equal(t, []retention.Reason{retention.ReasonActive}, plan.Keeps[1].Reasons, "keeps share no reasons")
}
