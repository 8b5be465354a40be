package retentiontest_test

import (
	"context"
	"fmt"
	"time"

	"github.com/mailretention/mailretention/retention"
	"github.com/mailretention/mailretention/retention/retentiontest"
)

func ExampleNewStore() {
	now := time.Now().UTC()
	table := func(ago int) string { return now.AddDate(0, 0, -ago).Format("raw-2006-01-02") }
	store := retentiontest.NewStore(retentiontest.Fixture{Now: now, Days: []retentiontest.Day{
		{Table: table(0), Messages: 20, Bytes: 40_000},
		{Table: table(9), Messages: 30, Bytes: 60_000},
		{Table: table(40), Messages: 25, Bytes: 50_000},
		{Table: table(50), Messages: 25, Bytes: 50_000, Pending: 1},
	}})
	days := 30
	report, err := retention.Run(context.Background(), store, retention.Config{
		Name:   "mx.example.com",
		Policy: retention.Policy{RawDays: &days, MessageDays: &days},
		Locker: retentiontest.NewLocker(),
	})
	fmt.Println(report.Outcome, err)
	fmt.Println(len(report.Tables), "dropped,", store.Messages(), "messages left")
	// Output:
	// done <nil>
	// 1 dropped, 51 messages left
}
