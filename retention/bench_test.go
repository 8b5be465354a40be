package retention_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/mailretention/mailretention/retention"
)

// BenchmarkPlan plans with every rule and a hold, over tables in the order of a listing by name and in none.
func BenchmarkPlan(b *testing.B) {
	for _, n := range []int{400, 10_000} {
		sorted := days(n)
		slices.Reverse(sorted.Tables)
		shuffled := days(n)
		rng := rand.New(rand.NewPCG(1, 2))
		rng.Shuffle(n, func(i, j int) { shuffled.Tables[i], shuffled.Tables[j] = shuffled.Tables[j], shuffled.Tables[i] })
		policy := retention.Policy{
			RawDays: new(n / 2), RawBytes: new(int64(n/4) * mib), MessageDays: new(n),
			Holds: []retention.Hold{{From: midnight(n - 5), To: midnight(n - 10)}},
		}
		for name, inv := range map[string]retention.Inventory{"sorted": sorted, "shuffled": shuffled} {
			b.Run(fmt.Sprintf("tables=%d/%s", n, name), func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					if _, err := policy.Plan(inv); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}
