package retention_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mailretention/mailretention/retention"
	"github.com/stretchr/testify/require"
)

var errBroken = errors.New("broken")

// bench is a store of eight days, of which the policy drops 4, 5, 6 and 7 days ago, and prunes messages.
type bench struct {
	script
	events
	cfg retention.Config
}

func newBench() *bench {
	b := &bench{cfg: retention.Config{Name: "mx", Policy: retention.Policy{RawDays: new(3), MessageDays: new(3)}}}
	b.cfg.OnEvent = b.on
	return b
}

// run runs under a virtual clock that agrees with the database's.
func (b *bench) run(t *testing.T, check func(t *testing.T, report retention.Report, err error)) {
	b.runUnder(t, context.Background(), check)
}

func (b *bench) runUnder(t *testing.T, ctx context.Context, check func(t *testing.T, report retention.Report, err error)) {
	synctest.Test(t, func(t *testing.T) {
		b.inv = today(8)
		report, err := retention.Run(ctx, &b.script, b.cfg)
		check(t, report, err)
	})
}

// today returns an inventory of one table for each of the last n days of the local clock, newest first.
func today(n int) retention.Inventory {
	inv := retention.Inventory{Now: time.Now().UTC(), Newest: time.Now().UTC()}
	for ago := range n {
		day := inv.Now.Truncate(24*time.Hour).AddDate(0, 0, -ago)
		inv.Tables = append(inv.Tables, retention.Table{Name: fmt.Sprintf("raw%d", ago), Day: day, Bytes: mib, SizeKnown: true})
	}
	return inv
}

func TestRunOrder(t *testing.T) {
	b := newBench()
	b.inventory = func(context.Context) (retention.Inventory, error) {
		inv := b.inv
		if !slices.Contains(b.calls, "reconcile") {
			inv.Drift = []retention.Drift{{Table: "raw-2000-01-01", Kind: retention.DriftOrphan, Bytes: 5 << 30}}
		}
		return inv, nil
	}
	b.reconcile = func(context.Context) (int, error) { return 1, nil }
	b.cfg.Locker = locker(func(ctx context.Context, name string, fn func(context.Context) error) error {
		b.note("lease " + name)
		defer b.note("release")
		return fn(ctx)
	})
	b.run(t, func(t *testing.T, report retention.Report, err error) {
		require.NoError(t, err)
		require.Equal(t, "lease retention/mx, inventory, reconcile, inventory, drop raw7, drop raw6, drop raw5, drop raw4, prune, reconcile, release", b.script.log())
		require.Equal(t, "planned, dropping raw7, batch raw7, dropped raw7, dropping raw6, batch raw6, dropped raw6, dropping raw5, batch raw5, dropped raw5, "+
			"dropping raw4, batch raw4, dropped raw4, batch, pruned, finished", b.events.log())
		require.Equal(t, retention.OutcomeDone, report.Outcome)
		require.Equal(t, "mx", report.Name)
		require.Equal(t, 2, report.Repaired)
		require.EqualValues(t, 8, report.RowsDetached)
		require.EqualValues(t, 3, report.RowsPruned)
		require.EqualValues(t, 4*mib, report.BytesFreed)
		require.Empty(t, report.Stopped)
		require.Empty(t, report.Plan.Drift, "the plan is made of the second reading")
		require.Equal(t, "mx: done after 0s, 4 tables dropped, 4.0 MiB freed, 8 messages detached, 3 messages pruned, 2 places repaired", report.String())
	})
}

func TestRunReconcilesOnlyOnDriftAndAfterDrops(t *testing.T) {
	b := newBench()
	b.cfg.Policy.RawDays = nil
	b.run(t, func(t *testing.T, report retention.Report, err error) {
		require.NoError(t, err)
		require.Equal(t, "inventory, prune", b.script.log())
		require.Equal(t, retention.OutcomeDone, report.Outcome)
	})
}

func TestRunJoinsOneErrorForEachTable(t *testing.T) {
	b := newBench()
	b.drop = failing(map[string]error{"raw7": errBroken, "raw5": errBroken})
	b.run(t, func(t *testing.T, report retention.Report, err error) {
		require.EqualError(t, err, "raw7: broken\nraw5: broken")
		first, ok := errors.AsType[*retention.TableError](err)
		require.True(t, ok)
		require.Equal(t, "raw7", first.Table)

		var verdicts []retention.Verdict
		for _, tr := range report.Tables {
			verdicts = append(verdicts, tr.Verdict)
			require.Equal(t, tr.Verdict == retention.VerdictFailed, errors.Is(tr.Err, errBroken))
			require.Equal(t, retention.ReasonAge, tr.Reason)
		}
		require.Equal(t, []retention.Verdict{retention.VerdictFailed, retention.VerdictDropped, retention.VerdictFailed, retention.VerdictDropped}, verdicts)
	})
}

func TestRunReportsDetachedTables(t *testing.T) {
	b := newBench()
	b.drop = func(_ context.Context, name string, p progress) error {
		result := map[string]error{"raw7": errBroken, "raw6": retention.ErrInUse}
		return errors.Join(p(4), p(1), result[name])
	}
	b.run(t, func(t *testing.T, report retention.Report, _ error) {
		require.EqualValues(t, 20, report.RowsDetached)
		for i, detached := range []bool{true, true, false, false} {
			require.Equal(t, detached, report.Tables[i].Detached, report.Tables[i].Table.Name)
			require.EqualValues(t, 5, report.Tables[i].Rows)
		}
	})
}

func TestRunTellsHowLongStepsTook(t *testing.T) {
	b := newBench()
	b.drop = func(_ context.Context, _ string, p progress) error {
		time.Sleep(time.Second)
		err := p(1)
		time.Sleep(2 * time.Second)
		return errors.Join(err, p(1))
	}
	b.run(t, func(t *testing.T, report retention.Report, err error) {
		require.NoError(t, err)
		require.Equal(t, 12*time.Second, report.Took)
		require.Equal(t, 3*time.Second, report.Tables[0].Took)
		require.Equal(t, time.UTC, report.Started.Location())
		took := map[retention.EventKind][]time.Duration{}
		for _, e := range b.list {
			took[e.Kind] = append(took[e.Kind], e.Took)
		}
		require.Equal(t, []time.Duration{time.Second, 2 * time.Second}, took[retention.EventBatch][:2])
		require.Equal(t, 3*time.Second, took[retention.EventDropped][0])
		require.Equal(t, 12*time.Second, took[retention.EventFinished][0])
	})
}

func TestEventsCarryTheReportSoFar(t *testing.T) {
	b := newBench()
	b.run(t, func(t *testing.T, _ retention.Report, _ error) {
		tables, detached := 0, int64(0)
		for _, e := range b.list {
			require.GreaterOrEqual(t, len(e.Report.Tables), tables)
			require.GreaterOrEqual(t, e.Report.RowsDetached, detached)
			tables, detached = len(e.Report.Tables), e.Report.RowsDetached
			require.Len(t, e.Report.Plan.Drops, 4)
			require.Equal(t, e.Kind == retention.EventFinished, e.Report.Outcome != "")
		}
		require.Equal(t, 4, tables)
	})
}

func TestRunLogs(t *testing.T) {
	var text bytes.Buffer
	b := newBench()
	b.drop = failing(map[string]error{"raw6": errBroken, "raw5": retention.ErrInUse})
	b.cfg.Logger = slog.New(slog.NewTextHandler(&text, &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == slog.TimeKey {
			return slog.Attr{}
		}
		return a
	}}))
	b.run(t, func(t *testing.T, _ retention.Report, _ error) {
		require.Equal(t, `level=INFO msg="retention planned" mail_server=mx drops=4 warnings=[]
level=INFO msg="retention dropped" mail_server=mx table=raw7 rows=2 took=0s
level=WARN msg="retention failed" mail_server=mx table=raw6 rows=0 took=0s err=broken
level=INFO msg="retention kept" mail_server=mx table=raw5 rows=0 took=0s err="retention: in use"
level=INFO msg="retention dropped" mail_server=mx table=raw4 rows=2 took=0s
level=INFO msg="retention pruned" mail_server=mx table="" rows=3 took=0s
level=WARN msg="retention finished" mail_server=mx report.name=mx report.outcome=partial report.took=0s report.dropped=2 report.kept=1 `+
			`report.failed=1 report.repaired=0 report.rows_detached=4 report.rows_pruned=3 report.bytes_freed=2097152 report.stopped="" err="raw6: broken"
`, text.String())
	})
}

func TestNewJoinsAllFaults(t *testing.T) {
	_, err := retention.New(nil, retention.Config{MaxDrops: -1, MaxSkew: -time.Second, Policy: retention.Policy{MinKeepDays: -1}})
	require.EqualError(t, err, `retention: the store is nil: give one, such as a *provisioner.Provisioner
retention: Name is "": give the mail server's name, which names the lease
retention: MaxDrops is -1: it must not be negative; 0 means no bound
retention: MaxSkew is -1s: it must not be negative; 0 means 1h0m0s
retention: refused: bad policy: MinKeepDays is -1: it must not be negative; 0 means 2`)
	require.ErrorIs(t, err, retention.ErrBadPolicy)
}
