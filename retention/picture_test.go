package retention_test

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/mailretention/mailretention/retention"
	"github.com/stretchr/testify/require"
)

var update = flag.Bool("update", false, "write the golden files")

// mailOf gives each day a size that looks like mail: more on working days.
func mailOf(n int) retention.Inventory {
	inv := days(n)
	for i := range inv.Tables {
		t := &inv.Tables[i]
		t.Bytes = int64(12+(i*7919)%9) * mib
		if t.Day.Weekday() == time.Saturday || t.Day.Weekday() == time.Sunday {
			t.Bytes /= 4
		}
	}
	return inv
}

func TestPlanStringGolden(t *testing.T) {
	monthly := retention.Policy{RawDays: new(30), RawBytes: new(int64(1 << 30)), MessageDays: new(40)}

	faults := mailOf(45)
	faults.Tables[35].InUse = "a message in it is still to be sent"
	faults.Tables[10].SizeKnown = false
	faults.Ignored = []retention.Ignored{{Name: "raw-2024-13-45", Reason: "not the name of a day, as raw-2026-06-15 is"}}
	faults.Drift = []retention.Drift{
		{Table: "raw-2026-04-16", Kind: retention.DriftOrphan, Bytes: 5 << 30},
		{Table: "raw-2026-06-05", Kind: retention.DriftMissing},
	}

	year := mailOf(400)
	year.Tables = append(year.Tables, table(-3))
	for ago := range 30 {
		year.Drift = append(year.Drift, retention.Drift{Table: name(500 + ago), Kind: retention.DriftOrphan, Bytes: mib})
	}
	byDaysAndSize := retention.Policy{
		RawDays: new(90), RawBytes: new(int64(800 * mib)), MessageDays: new(30), Holds: []retention.Hold{hold(203, 200), hold(85, 84)},
	}

	for file, c := range map[string]struct {
		policy retention.Policy
		inv    retention.Inventory
	}{
		"plan-0.txt":          {monthly, days(0)},
		"plan-3.txt":          {monthly, mailOf(3)},
		"plan-45.txt":         {monthly, mailOf(45)},
		"plan-45-faults.txt":  {monthly, faults},
		"plan-400.txt":        {monthly, mailOf(400)},
		"plan-400-faults.txt": {byDaysAndSize, year},
	} {
		t.Run(file, func(t *testing.T) {
			plan, err := c.policy.Plan(c.inv)
			require.NoError(t, err)
			golden(t, file, plan.String())
		})
	}
}

func golden(t *testing.T, file, got string) {
	path := filepath.Join("testdata", file)
	if *update {
		require.NoError(t, os.WriteFile(path, []byte(got+"\n"), 0o644))
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, string(want), got+"\n")
}

func TestPlanStringOfNoPlan(t *testing.T) {
	require.Equal(t, "No plan.", retention.Plan{}.String())
}

// TestPlanStringIsSafe has names and reasons that a database may hold.
func TestPlanStringIsSafe(t *testing.T) {
	inv := days(2)
	inv.Tables[0].InUse = "line\nbreak and " + strings.Repeat("a long reason ", 20)
	inv.Ignored = []retention.Ignored{{Name: "raw-\x1b[2J", Reason: strings.Repeat("ü", 300)}, {Name: "raw-\xff"}}
	inv.Drift = []retention.Drift{{Table: strings.Repeat("raw ", 40)}}
	plan, err := retention.Policy{}.Plan(inv)
	require.NoError(t, err)
	picture := plan.String()
	require.NotContains(t, picture, "\x1b")
	require.True(t, utf8.ValidString(picture))
	for line := range strings.Lines(picture) {
		require.LessOrEqual(t, utf8.RuneCountInString(line), 81, line)
	}
}

func TestPlanStringFoldsOnlyLongRuns(t *testing.T) {
	plan, err := retention.Policy{}.Plan(days(16))
	require.NoError(t, err)
	require.NotContains(t, plan.String(), "more", "14 days within the policy are shown")

	plan, err = retention.Policy{}.Plan(days(17))
	require.NoError(t, err)
	require.Contains(t, plan.String(), "…5 more")
}

func TestSizesAreBinary(t *testing.T) {
	for bytes, want := range map[int64]string{
		0: "0 B", 1023: "1023 B", 1024: "1.0 KiB", 1536: "1.5 KiB", 1<<20 - 1: "1.0 MiB", 1 << 30: "1.0 GiB", 1<<63 - 1: "8.0 EiB",
	} {
		require.Equal(t, "raw mail "+want+"; messages for ever; 2 newest days protected", retention.Policy{RawBytes: &bytes}.String())
	}
}
