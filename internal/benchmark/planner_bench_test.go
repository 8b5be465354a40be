package benchmark

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mailretention/mailretention/retention"
)

// BenchmarkPlan plans with every rule and a hold, over tables in the order of a listing and in none.
func BenchmarkPlan(b *testing.B) {
	for _, tables := range []int{400, 10_000} {
		inv := inventory(tables)
		policy := retention.Policy{
			RawDays: new(tables / 2), RawBytes: new(int64(tables/4) << 20), MessageDays: new(tables),
			Holds: []retention.Hold{{From: inv.Tables[5].Day, To: inv.Tables[10].Day}},
		}
		plan := func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				plan, err := policy.Plan(inv)
				require.NoError(b, err)
				require.NotEmpty(b, plan.Drops)
			}
		}
		b.Run(fmt.Sprintf("tables=%d/sorted", tables), plan)
		rand.Shuffle(tables, func(i, j int) { inv.Tables[i], inv.Tables[j] = inv.Tables[j], inv.Tables[i] })
		b.Run(fmt.Sprintf("tables=%d/shuffled", tables), plan)
	}
}

// inventory is one of the last so many days, the oldest first, with 1 MiB each.
func inventory(tables int) retention.Inventory {
	now := time.Date(2026, time.June, 15, 12, 0, 0, 0, time.UTC)
	inv := retention.Inventory{Now: now, Newest: now}
	for ago := tables - 1; ago >= 0; ago-- {
		day := now.Truncate(24*time.Hour).AddDate(0, 0, -ago)
		inv.Tables = append(inv.Tables, retention.Table{Name: "raw-" + day.Format(time.DateOnly), Day: day, Bytes: 1 << 20, SizeKnown: true})
	}
	return inv
}
