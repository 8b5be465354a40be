package retention_test

import (
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/mailretention/mailretention/retention"
	"github.com/stretchr/testify/require"
)

func TestReportString(t *testing.T) {
	tables := func(verdicts ...retention.Verdict) (list []retention.TableReport) {
		for _, v := range verdicts {
			list = append(list, retention.TableReport{Verdict: v})
		}
		return list
	}
	for want, r := range map[string]retention.Report{
		"mx: nothing to do after 1.5s": {Name: "mx", Outcome: retention.OutcomeNothingToDo, Took: 1500*time.Millisecond + 3},
		"mx: done after 0s, 2 tables dropped, 3.0 KiB freed, 1 message detached, 2 messages pruned, 1 place repaired": {
			Name: "mx", Outcome: retention.OutcomeDone, Tables: tables(retention.VerdictDropped, retention.VerdictDropped),
			BytesFreed: 3072, RowsDetached: 1, RowsPruned: 2, Repaired: 1,
		},
		"mx: partial after 0s, 1 table kept, 1 table failed, stopped: first line second line": {
			Name: "mx", Outcome: retention.OutcomePartial, Tables: tables(retention.VerdictKept, retention.VerdictFailed),
			Stopped: "first line\nsecond line",
		},
	} {
		require.Equal(t, want, r.String())
	}
}

func TestReportLogValue(t *testing.T) {
	var text strings.Builder
	log := slog.New(slog.NewTextHandler(&text, nil))
	log.Info("x", "report", retention.Report{Name: "mx", Outcome: retention.OutcomeDone, Took: time.Second, BytesFreed: 5})
	require.Contains(t, text.String(), "report.name=mx report.outcome=done report.took=1s report.dropped=0")
	require.Contains(t, text.String(), "report.bytes_freed=5")
}
