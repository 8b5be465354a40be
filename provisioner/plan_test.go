package provisioner

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mailretention/mailretention/internal/mysqltest"
	"github.com/mailretention/mailretention/retention"
)

// The statements whose plan matters find their rows by an index, however many rows the statistics say that there are.
func TestPlans(t *testing.T) {
	for _, doublings := range []int{9, 13} {
		t.Run(fmt.Sprint(1<<doublings), func(t *testing.T) { testPlans(t, doublings) })
	}
}

// testPlans does so for a table of one row that is doubled so many times.
func testPlans(t *testing.T, doublings int) {
	db, name := mysqltest.DB(t)
	p, err := New(db, Config{Database: name})
	require.NoError(t, err)
	require.NoError(t, p.Provision(t.Context()))
	n := p.names
	exec := func(query string) {
		t.Helper()
		_, err := db.ExecContext(t.Context(), query)
		require.NoError(t, err, query)
	}
	exec(fmt.Sprintf("INSERT INTO %s (scope, spam, timestamp, raw_table) VALUES ('incoming', 0, 1000, 'raw-2020-01-01')", n.messages))
	for range doublings {
		exec(fmt.Sprintf("INSERT INTO %[1]s (scope, spam, timestamp, raw_table) SELECT scope, spam, timestamp+1, IF(id%%4=0, 'raw-2020-01-02', raw_table) FROM %[1]s", n.messages))
	}
	exec(fmt.Sprintf("INSERT INTO %s (message_id) SELECT id FROM %s", n.children[0].table, n.messages))
	exec(fmt.Sprintf("ANALYZE TABLE %s, %s", n.messages, n.children[0].table))

	cut := retention.Cut{Before: time.Unix(1003, 0), Except: []retention.Hold{{From: time.Unix(86400, 0), To: time.Unix(86400, 0)}}}
	ranges, list := []span{{1, 500}, {800, 900}}, []span{{3, 3}, {5, 5}, {4000, 4000}}
	var many []span
	for id := range int64(maxSpans) {
		many = append(many, span{id*2 + 1, id*2 + 1})
	}
	probe := PostalSchema().Messages.Probe
	day := []any{"raw-2020-01-01", "raw-2020-01-01"}
	for what, test := range map[string]struct {
		query string
		args  []any
		key   string
	}{
		"references":         {n.selectReferences(n.unheld(), 0, 1000), day, "on_raw_table"},
		"further references": {n.selectReferences(n.unheld(), 4000, 1000), day, "on_raw_table"},
		"dangling":           {n.selectDangling(1), []any{"raw-2019-01-01", "raw-2019-12-31"}, "on_raw_table"},
		"dangling in gaps":   {n.selectDangling(2), []any{"raw-2018-01-01", "raw-2018-01-01", "raw-2019-01-01", "raw-2019-12-31"}, "on_raw_table"},
		"clear a range":      {n.clearReferences(n.unheld(), ranges), day, "PRIMARY"},
		"clear a list":       {n.clearReferences(n.unheld(), many), day, "PRIMARY"},
		"messages by id":     {n.selectFates(n.mayGo(cut), n.isOld(cut.Before), 10, 1000), nil, "PRIMARY"},
		"old messages":       {n.selectOld(probe, n.mayGo(cut), 0, 1000), nil, "on_scope_and_spam"},
		"delete a range":     {n.deleteMessages(n.mayGo(cut), ranges), nil, "PRIMARY"},
		"delete a list":      {n.deleteMessages(n.mayGo(cut), list), nil, "PRIMARY"},
		"delete a long list": {n.deleteMessages(n.mayGo(cut), many), nil, "PRIMARY"},
		"lock a range":       {n.lockMessages(ranges), nil, "PRIMARY"},
		"lock a long list":   {n.lockMessages(many), nil, "PRIMARY"},
		"children":           {n.deleteChildren(n.children[0], ranges), nil, "on_message_id"},
		"children of many":   {n.deleteChildren(n.children[0], many), nil, "on_message_id"},
		"orphans":            {n.selectOrphans(n.children[0], 10, 4000, 1000), nil, "on_message_id"},
	} {
		t.Run(what, func(t *testing.T) {
			plan := explainPlan(t, p, test.query, test.args)
			require.Equal(t, test.key, plan["key"], "%v", plan)
			require.NotContains(t, []string{"ALL", "index"}, plan["type"], "%v", plan)
			require.NotContains(t, plan["Extra"], "filesort")
		})
	}
}

// explainPlan returns the first row of a statement's plan. MariaDB's EXPLAIN doesn't heed safe updates, as its ANALYZE does: it runs the
// statement and shows how, and what that has done is undone.
func explainPlan(t *testing.T, p *Provisioner, query string, args []any) map[string]string {
	t.Helper()
	explain := "EXPLAIN FORMAT=TRADITIONAL "
	if mysqltest.IsMariaDB(t) {
		explain = "ANALYZE "
	}
	const safe = "/*M! SET STATEMENT sql_safe_updates=1 FOR */ "
	if rest, found := strings.CutPrefix(query, safe); found {
		explain, query = safe+explain, rest
	}
	tx, err := p.db.BeginTx(t.Context(), nil)
	require.NoError(t, err)
	defer tx.Rollback()
	rows, err := tx.QueryContext(t.Context(), explain+query, args...)
	require.NoError(t, err)
	defer rows.Close()
	columns, err := rows.Columns()
	require.NoError(t, err)
	require.True(t, rows.Next())
	values, dest := make([]*string, len(columns)), make([]any, len(columns))
	for i := range values {
		dest[i] = &values[i]
	}
	require.NoError(t, rows.Scan(dest...))
	plan := map[string]string{}
	for i, column := range columns {
		if values[i] != nil {
			plan[column] = *values[i]
		}
	}
	return plan
}
