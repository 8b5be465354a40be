package retention_test

import (
	"encoding/json"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/mailretention/mailretention/retention"
	"github.com/stretchr/testify/require"
)

// The tables of a property's inventory are bytes, three for each: the age less 8, the size, and bits.
const (
	recordLen   = 3
	newestAge   = -8 // of age byte 0, in days
	largeSizes  = 250
	flagInUse   = 1
	flagUnsized = 2
	flagUndated = 4
	flagAlias   = 8 // another name for the same day
)

// inventoryOf reads records. Every byte string is an inventory.
func inventoryOf(clock time.Duration, records []byte) retention.Inventory {
	inv := retention.Inventory{Now: midnight(0).Add(clock.Abs() % (24 * time.Hour))}
	for ; len(records) >= recordLen; records = records[recordLen:] {
		t := table(int(records[0]) + newestAge)
		t.Bytes = bytesOf(records[1])
		if records[2]&flagInUse != 0 {
			t.InUse = "queued"
		}
		t.SizeKnown = records[2]&flagUnsized == 0
		if records[2]&flagUndated != 0 {
			t.Day = time.Time{}
		}
		if records[2]&flagAlias != 0 {
			t.Name = strings.ToUpper(t.Name)
		}
		inv.Tables = append(inv.Tables, t)
	}
	return inv
}

// bytesOf gives sizes of which sums are interesting: small, around the largest, and none at all.
func bytesOf(b byte) int64 {
	switch {
	case b < largeSizes:
		return int64(b) * mib / 2
	case b == largeSizes:
		return -1
	}
	return math.MaxInt64 / int64(256-int(b))
}

// recordsOf is the reverse of inventoryOf, for seeds.
func recordsOf(inv retention.Inventory) (records []byte) {
	for _, t := range inv.Tables {
		ago := int(midnight(0).Sub(t.Day) / (24 * time.Hour))
		if ago-newestAge < 0 || ago-newestAge > 255 {
			continue
		}
		var flags byte
		if t.InUse != "" {
			flags |= flagInUse
		}
		if !t.SizeKnown {
			flags |= flagUnsized
		}
		records = append(records, byte(ago-newestAge), byte(min(t.Bytes/(mib/2), 255)), flags)
	}
	return records
}

// policyOf makes a policy of numbers: a negative one is no limit.
func policyOf(rawDays int, rawBytes int64, messageDays, minKeepDays int, holds ...retention.Hold) retention.Policy {
	p := retention.Policy{MinKeepDays: max(0, minKeepDays), Holds: holds, AllowEmpty: true}
	if rawDays >= 0 {
		p.RawDays = &rawDays
	}
	if rawBytes >= 0 {
		p.RawBytes = &rawBytes
	}
	if messageDays >= 0 {
		p.MessageDays = &messageDays
	}
	return p
}

func number[N int | int64](limit *N) N {
	if limit == nil {
		return -1
	}
	return *limit
}

func FuzzPlan(f *testing.F) {
	for _, c := range planCases() {
		older, newer := 0, 0
		if len(c.policy.Holds) > 0 && !c.policy.Holds[0].From.IsZero() {
			older = int(midnight(0).Sub(c.policy.Holds[0].From) / (24 * time.Hour))
			newer = older
		}
		f.Add(number(c.policy.RawDays), number(c.policy.RawBytes), number(c.policy.MessageDays), c.policy.MinKeepDays,
			int64(c.inv.Now.Sub(midnight(0))), older, newer, recordsOf(c.inv))
	}
	f.Fuzz(func(t *testing.T, rawDays int, rawBytes int64, messageDays, minKeepDays int, clock int64, older, newer int, records []byte) {
		older, newer = older%1000, newer%1000
		extra := hold(max(older, newer), min(older, newer))
		checkProperties(t, policyOf(rawDays, rawBytes, messageDays, minKeepDays), extra, inventoryOf(time.Duration(clock), records))
	})
}

// TestPlanProperties tries many small inventories, where the rules meet each other most.
func TestPlanProperties(t *testing.T) {
	for seed := range uint64(500) {
		rng := rand.New(rand.NewPCG(seed, 1))
		records := make([]byte, recordLen*rng.IntN(12))
		for i := range records {
			switch i % recordLen {
			case 0:
				records[i] = byte(rng.IntN(24)) // around today
			case 1:
				records[i] = byte(rng.IntN(12))
				if rng.IntN(40) == 0 {
					records[i] = byte(largeSizes + rng.IntN(6))
				}
			case 2:
				if rng.IntN(5) == 0 {
					records[i] = byte(rng.IntN(16))
				}
			}
		}
		older := rng.IntN(14)
		policy := policyOf(rng.IntN(12)-2, int64(rng.IntN(40)-4)*mib/2, rng.IntN(12)-2, rng.IntN(5))
		inv := inventoryOf(time.Duration(rng.Int64N(int64(24*time.Hour))), records)
		checkProperties(t, policy, hold(older, older-rng.IntN(5)), inv)
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
}

func checkProperties(t *testing.T, policy retention.Policy, extra retention.Hold, inv retention.Inventory) {
	plan := mustPlan(t, policy, inv)
	held := policy
	held.Holds = []retention.Hold{extra}
	heldPlan := mustPlan(t, held, inv)

	for _, p := range []retention.Plan{plan, heldPlan} {
		checkListing(t, p, inv)
		checkProtection(t, p)
		checkSums(t, p)
		checkOrder(t, p, inv)
		checkRest(t, p, inv)
		checkPicture(t, p)
	}
	require.Empty(t, less(heldPlan, plan), "a hold never drops more")
	for _, stricter := range stricter(policy) {
		require.Empty(t, less(plan, mustPlan(t, stricter, inv)), "%s drops no less than %s", stricter, policy)
		stricter.Holds = held.Holds
		require.Empty(t, less(heldPlan, mustPlan(t, stricter, inv)), "%s drops no less than %s", stricter, held)
	}
	require.Equal(t, naiveDrops(policy, inv), dropNames(plan), "the plan is that of the plain rules")
}

func mustPlan(t *testing.T, policy retention.Policy, inv retention.Inventory) retention.Plan {
	plan, err := policy.Plan(inv)
	require.NoError(t, err)
	return plan
}

func dropNames(p retention.Plan) []string {
	names := []string{}
	for _, d := range p.Drops {
		names = append(names, d.Table.Name)
	}
	return names
}

// less returns what a drops and b does not.
func less(a, b retention.Plan) []string {
	also := dropNames(b)
	return slices.DeleteFunc(dropNames(a), func(name string) bool { return slices.Contains(also, name) })
}

func checkListing(t *testing.T, p retention.Plan, inv retention.Inventory) {
	listed := map[string]int{}
	for _, d := range p.Drops {
		listed[d.Table.Name]++
	}
	for _, k := range p.Keeps {
		require.NotEmpty(t, k.Reasons)
		listed[k.Table.Name]++
	}
	for _, i := range p.Ignored {
		listed[i.Name]++
	}
	for _, tb := range inv.Tables {
		require.Equal(t, 1, listed[tb.Name], "%s is listed once", tb.Name)
	}
	byDay := func(a, b retention.Table) int { return a.Day.Compare(b.Day) }
	require.True(t, slices.IsSortedFunc(p.Drops, func(a, b retention.Drop) int { return byDay(a.Table, b.Table) }))
	require.True(t, slices.IsSortedFunc(p.Keeps, func(a, b retention.Keep) int { return byDay(a.Table, b.Table) }))
}

func checkProtection(t *testing.T, p retention.Plan) {
	keep := max(1, p.Policy.MinKeepDays)
	if p.Policy.MinKeepDays == 0 || p.Now.Hour() == 0 {
		keep = max(2, keep)
	}
	for _, d := range p.Drops {
		require.Empty(t, d.Table.InUse)
		require.Contains(t, []retention.Reason{retention.ReasonAge, retention.ReasonSize}, d.Reason)
		ago := int(midnight(0).Sub(d.Table.Day) / (24 * time.Hour))
		require.GreaterOrEqual(t, ago, keep, "a protected day")
		for _, h := range p.Policy.Holds {
			require.True(t, d.Table.Day.Before(h.From) || d.Table.Day.After(h.To), "a held day")
		}
	}
}

func checkSums(t *testing.T, p retention.Plan) {
	require.GreaterOrEqual(t, p.Bytes, int64(0))
	require.GreaterOrEqual(t, p.BytesAfter, int64(0))
	require.LessOrEqual(t, p.BytesAfter, p.Bytes)
	require.GreaterOrEqual(t, p.Shortfall, int64(0))
	if p.Policy.RawBytes != nil && p.BytesAfter > *p.Policy.RawBytes {
		require.Equal(t, p.BytesAfter-*p.Policy.RawBytes, p.Shortfall)
	}
}

func checkOrder(t *testing.T, p retention.Plan, inv retention.Inventory) {
	rng := rand.New(rand.NewPCG(uint64(len(inv.Tables)), 7))
	inv.Tables = slices.Clone(inv.Tables)
	for range 2 {
		rng.Shuffle(len(inv.Tables), func(i, j int) { inv.Tables[i], inv.Tables[j] = inv.Tables[j], inv.Tables[i] })
		require.Equal(t, p, mustPlan(t, p.Policy, inv), "the order of the tables is of no account")
	}
}

func checkRest(t *testing.T, p retention.Plan, inv retention.Inventory) {
	gone := dropNames(p)
	inv.Tables = slices.DeleteFunc(slices.Clone(inv.Tables), func(tb retention.Table) bool { return slices.Contains(gone, tb.Name) })
	rest := mustPlan(t, p.Policy, inv)
	require.Empty(t, rest.Drops, "planning what remains drops no table")
	require.Equal(t, p.BytesAfter, rest.BytesAfter)
	require.Equal(t, p.Keeps, rest.Keeps)
	require.Equal(t, p.Shortfall, rest.Shortfall)
}

func checkPicture(t *testing.T, p retention.Plan) {
	for line := range strings.Lines(p.String()) {
		require.LessOrEqual(t, utf8.RuneCountInString(strings.TrimSuffix(line, "\n")), 80, line)
	}
	text, err := json.Marshal(p)
	require.NoError(t, err)
	var back retention.Plan
	require.NoError(t, decode(string(text), &back))
	require.Equal(t, p.String(), back.String())
}

// stricter returns policies of which each takes at least what p takes.
func stricter(p retention.Policy) []retention.Policy {
	var list []retention.Policy
	with := func(change func(p *retention.Policy)) {
		q := p
		change(&q)
		list = append(list, q)
	}
	with(func(q *retention.Policy) { q.RawDays = new(3) })
	if p.RawDays != nil {
		with(func(q *retention.Policy) { q.RawDays = new(*p.RawDays / 2) })
		list = list[1:]
	}
	if p.RawBytes == nil {
		with(func(q *retention.Policy) { q.RawBytes = new(int64(3 * mib)) })
	} else {
		with(func(q *retention.Policy) { q.RawBytes = new(*p.RawBytes / 2) })
	}
	if p.MinKeepDays > 1 {
		with(func(q *retention.Policy) { q.MinKeepDays = 1 })
	}
	return list
}

// naiveDrops is the rules for a policy without holds, written down as plainly as possible.
func naiveDrops(p retention.Policy, inv retention.Inventory) []string {
	plan, _ := retention.Policy{}.Plan(inv) // sorted, and each table once
	keep := p.MinKeepDays
	if keep == 0 || keep == 1 && inv.Now.Hour() < 1 {
		keep = 2
	}
	drops, left := []string{}, []retention.Table{}
	sum, unknown := 0.0, false
	protected := func(tb retention.Table) bool {
		return tb.InUse != "" || midnight(0).Sub(tb.Day).Hours()/24 < float64(keep)
	}
	for _, k := range plan.Keeps {
		switch ago := int(midnight(0).Sub(k.Table.Day).Hours() / 24); {
		case !protected(k.Table) && p.RawDays != nil && ago > *p.RawDays:
			drops = append(drops, k.Table.Name)
		case ago >= 0:
			left = append(left, k.Table)
			sum += float64(k.Table.Bytes)
			unknown = unknown || !k.Table.SizeKnown || k.Table.Bytes < 0
		}
	}
	if p.RawBytes == nil || unknown || sum >= math.MaxInt64 {
		return drops
	}
	bytes := int64(0)
	for _, tb := range left {
		bytes += tb.Bytes
	}
	for _, tb := range left {
		if bytes > *p.RawBytes && !protected(tb) {
			drops = append(drops, tb.Name)
			bytes -= tb.Bytes
		}
	}
	return drops
}
