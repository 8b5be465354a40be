package retention_test

import (
	"context"
	"fmt"
	"time"

	"github.com/mailretention/mailretention/retention"
)

// A policy of 3 days or 5 MiB meets a database with a day too many, one with a queued message and an impossible name.
func ExamplePolicy_Plan() {
	days, limit := 3, int64(5<<20)
	policy := retention.Policy{RawDays: &days, RawBytes: &limit, MessageDays: &days}

	today := time.Date(2026, time.June, 15, 0, 0, 0, 0, time.UTC)
	inventory := retention.Inventory{
		Now:     today.Add(3 * time.Hour),
		Newest:  today.Add(2 * time.Hour),
		Ignored: []retention.Ignored{{Name: "raw-2026-13-45", Reason: "not the name of a day"}},
	}
	for ago, mail := range []int64{1 << 20, 2 << 20, 1 << 20, 3 << 20, 2 << 20, 1 << 20} {
		day := today.AddDate(0, 0, -ago)
		inventory.Tables = append(inventory.Tables, retention.Table{
			Name: "raw-" + day.Format(time.DateOnly), Day: day, Bytes: mail, SizeKnown: true,
		})
	}
	inventory.Tables[5].InUse = "a message in it is still to be sent"

	plan, err := policy.Plan(inventory)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(plan)
	// Output:
	// Plan of 2026-06-15 03:00:00 UTC
	// Policy: raw mail 3 days and 5.0 MiB; messages 3 days; 2 newest days protected
	// 2 of 6 tables go, 5.0 MiB of 10.0 MiB; 5.0 MiB stay
	// Messages before 2026-06-12 go
	//
	// 2026-06-10     1.0 MiB  ███████               keep  in use
	// 2026-06-11     2.0 MiB  ░░░░░░░░░░░░░         drop  age
	// 2026-06-12     3.0 MiB  ░░░░░░░░░░░░░░░░░░░░  drop  size
	// 2026-06-13     1.0 MiB  ███████               keep  within policy
	// 2026-06-14     2.0 MiB  █████████████         keep  active
	// 2026-06-15     1.0 MiB  ███████               keep  active
	//
	// In use:
	//   raw-2026-06-10: a message in it is still to be sent
	//
	// Ignored, never touched:
	//   raw-2026-13-45: not the name of a day
}

// memory is the smallest useful Store: tables in a map, by their age in days.
type memory struct{ ages map[string]int }

func (m memory) Inventory(context.Context) (retention.Inventory, error) {
	inv := retention.Inventory{Now: time.Now()}
	for name, age := range m.ages {
		day := inv.Now.UTC().Truncate(24*time.Hour).AddDate(0, 0, -age)
		inv.Tables = append(inv.Tables, retention.Table{Name: name, Day: day, Bytes: 1 << 20, SizeKnown: true})
	}
	return inv, nil
}

func (m memory) Reconcile(context.Context) (int, error) { return 0, nil }

func (m memory) DropTable(_ context.Context, name string, _ func(int64) error) error {
	delete(m.ages, name)
	return nil
}

func (m memory) PruneMessages(context.Context, retention.Cut, func(int64) error) error { return nil }

func ExampleRunner_Run() {
	store := memory{map[string]int{"today": 0, "recent": 9, "old": 40, "older": 41}}
	days := 30
	runner, err := retention.New(store, retention.Config{
		Name:   "mx.example.com",
		Policy: retention.Policy{RawDays: &days},
		OnEvent: func(e retention.Event) {
			if e.Kind == retention.EventDropped {
				fmt.Println("dropped", e.Table)
			}
		},
	})
	if err != nil {
		fmt.Println(err) // a bad policy shows here, at start-up
		return
	}
	report, err := runner.Run(context.Background())
	fmt.Println(report.Outcome, len(report.Tables), err)
	report, err = runner.Run(context.Background())
	fmt.Println(report.Outcome, len(report.Tables), err)
	// Output:
	// dropped older
	// dropped old
	// done 2 <nil>
	// nothing_to_do 0 <nil>
}

// The preview is what a person looks at before the first run, and after a refusal.
func ExampleRunner_Plan() {
	store := memory{map[string]int{"today": 0, "a": 80, "b": 81, "c": 82, "d": 83}}
	days := 30
	runner, err := retention.New(store, retention.Config{Name: "mx.example.com", Policy: retention.Policy{RawDays: &days}})
	if err != nil {
		fmt.Println(err)
		return
	}
	plan, err := runner.Plan(context.Background())
	fmt.Println(len(plan.Drops), "of", len(plan.Drops)+len(plan.Keeps))
	fmt.Println(err)
	// Output:
	// 4 of 5
	// retention: refused: would empty: 4 tables would go and none stay beside the protected ones; look at the clock and the plan, and set AllowEmpty for one run if it is right
}

func ExampleRunAll() {
	days := 30
	runners := func(yield func(*retention.Runner) bool) {
		for _, name := range []string{"mx1.example.com", "mx2.example.com"} {
			store := memory{map[string]int{"today": 0, "recent": 3, "old": 50}}
			runner, err := retention.New(store, retention.Config{Name: name, Policy: retention.Policy{RawDays: &days}})
			if err != nil {
				fmt.Println(err)
				continue
			}
			if !yield(runner) {
				return
			}
		}
	}
	err := retention.RunAll(context.Background(), runners, 1, func(r retention.Report, err error) {
		fmt.Println(r.Name, r.Outcome, err)
	})
	fmt.Println(err)
	// Output:
	// mx1.example.com done <nil>
	// mx2.example.com done <nil>
	// <nil>
}
