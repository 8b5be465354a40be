package retention_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/mailretention/mailretention/retention"
	"github.com/stretchr/testify/require"
)

// decode reads JSON as a careful program does.
func decode(text string, into any) error {
	d := json.NewDecoder(strings.NewReader(text))
	d.DisallowUnknownFields()
	return d.Decode(into)
}

func TestPolicyJSONRoundTrips(t *testing.T) {
	for name, p := range map[string]retention.Policy{
		"zero": {Holds: []retention.Hold{}},
		"full": {
			RawDays: new(30), RawBytes: new(int64(1 << 40)), MessageDays: new(0), MinKeepDays: 7, AllowEmpty: true,
			Holds: []retention.Hold{hold(9, 7), {To: midnight(5)}, {From: midnight(3), Reason: "<ß>"}, {}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			text, err := json.Marshal(p)
			require.NoError(t, err)
			var got retention.Policy
			require.NoError(t, decode(string(text), &got))
			require.Equal(t, p, got)
		})
	}
}

func TestPolicyJSON(t *testing.T) {
	text, err := json.Marshal(retention.Policy{RawDays: new(30), Holds: []retention.Hold{{From: midnight(0), Reason: "case 17"}}})
	require.NoError(t, err)
	require.Equal(t, `{"raw_days":30,"raw_bytes":null,"message_days":null,"min_keep_days":0,`+
		`"holds":[{"from":"2026-06-15T00:00:00Z","reason":"case 17"}],"allow_empty":false}`, string(text))
}

func TestPolicyJSONRefuses(t *testing.T) {
	for name, text := range map[string]string{
		"an unknown field":           `{"raw_day": 30}`,
		"an unknown field of a hold": `{"holds": [{"form": "2026-06-15T00:00:00Z"}]}`,
		"a number with a fraction":   `{"raw_days": 1.5}`,
		"a number beyond int64":      `{"raw_bytes": 9223372036854775808}`,
		"a text for a number":        `{"raw_days": "30"}`,
		"a day without time":         `{"holds": [{"from": "2026-06-15"}]}`,
	} {
		t.Run(name, func(t *testing.T) { require.Error(t, decode(text, new(retention.Policy))) })
	}
}

func TestPlanJSONRoundTrips(t *testing.T) {
	policy := retention.Policy{RawDays: new(2), MessageDays: new(1), Holds: []retention.Hold{hold(5, 4)}}
	inv := days(7)
	inv.Ignored = []retention.Ignored{{Name: "raw-x", Reason: "not a day"}}
	inv.Drift = []retention.Drift{{Table: "raw-2026-01-01", Kind: retention.DriftOrphan, Bytes: 5}}
	for _, value := range []any{&inv, new(retention.Plan)} {
		if plan, ok := value.(*retention.Plan); ok {
			var err error
			*plan, err = policy.Plan(inv)
			require.NoError(t, err)
		}
		text, err := json.Marshal(value)
		require.NoError(t, err)
		got := reflect.New(reflect.TypeOf(value).Elem()).Interface()
		require.NoError(t, decode(string(text), got))
		require.Equal(t, value, got)
	}
}

func TestEmptyListsAreWritten(t *testing.T) {
	for _, value := range []any{
		retention.Policy{},
		retention.Inventory{},
		retention.Plan{MessageCut: &retention.Cut{}},
		retention.Keep{},
		retention.Cut{},
		retention.Report{},
		retention.TableReport{},
		retention.Event{},
	} {
		text, err := json.Marshal(value)
		require.NoError(t, err)
		nulls := regexp.MustCompile(`"(\w+)":null`).FindAllStringSubmatch(string(text), -1)
		for _, n := range nulls {
			require.Contains(t, []string{"raw_days", "raw_bytes", "message_days", "message_cut"}, n[1], "%T: %s", value, text)
		}
	}
}

func TestReportJSON(t *testing.T) {
	report := retention.Report{
		Name: "mx", Outcome: retention.OutcomePartial, Started: now, Took: 1500 * time.Millisecond,
		Tables: []retention.TableReport{{
			Table: table(9), Reason: retention.ReasonAge, Verdict: retention.VerdictFailed, Detached: true, Rows: 3,
			Took: 250 * time.Millisecond, Err: errors.New(`locked "now"`),
		}},
	}
	var fields map[string]any
	text, err := json.Marshal(report)
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(text, &fields))
	require.Equal(t, 1.5, fields["took"])
	one := fields["tables"].([]any)[0].(map[string]any)
	require.Equal(t, 0.25, one["took"])
	require.Equal(t, `locked "now"`, one["err"])

	var got retention.Report
	require.NoError(t, json.Unmarshal(text, &got), "what can be read back is")
	require.Equal(t, report.Tables[0].Rows, got.Tables[0].Rows)

	text, err = json.Marshal(retention.Event{Kind: retention.EventFailed, Took: time.Second, Err: &retention.TableError{Table: "raw-x", Err: errors.New("locked")}})
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(text, &fields))
	require.Equal(t, 1.0, fields["took"])
	require.Equal(t, "raw-x: locked", fields["err"])

	text, err = json.Marshal([]error{&retention.TableError{Table: "raw-x", Err: errors.New("locked")}})
	require.NoError(t, err)
	require.JSONEq(t, `["raw-x: locked"]`, string(text))
}

// TestJSONNames finds a field that was given no name, or one that is not in snake case.
func TestJSONNames(t *testing.T) {
	snake := regexp.MustCompile(`^[a-z]+(_[a-z]+)*$`)
	for _, value := range []any{
		retention.Policy{},
		retention.Hold{},
		retention.Inventory{},
		retention.Table{},
		retention.Ignored{},
		retention.Drift{},
		retention.Plan{},
		retention.Drop{},
		retention.Keep{},
		retention.Cut{},
		retention.Report{},
		retention.TableReport{},
		retention.Event{},
	} {
		text, err := json.Marshal(value)
		require.NoError(t, err)
		fields := map[string]json.RawMessage{}
		require.NoError(t, json.NewDecoder(bytes.NewReader(text)).Decode(&fields))
		optional := 0
		for f := range reflect.TypeOf(value).Fields() {
			if strings.HasSuffix(f.Tag.Get("json"), ",omitzero") {
				optional++
			}
		}
		require.Len(t, fields, reflect.TypeOf(value).NumField()-optional, "%T", value)
		for name := range fields {
			require.Regexp(t, snake, name)
		}
	}
}

func FuzzPolicyJSON(f *testing.F) {
	for _, c := range planCases() {
		text, err := json.Marshal(c.policy)
		require.NoError(f, err)
		f.Add(string(text))
	}
	f.Add(`{"raw_days": -1, "holds": [{"from": "2026-06-15T00:00:00+02:00"}]}`)
	f.Fuzz(func(t *testing.T, text string) {
		var p retention.Policy
		if decode(text, &p) != nil {
			return
		}
		again, err := json.Marshal(p)
		require.NoError(t, err)
		var back retention.Policy
		require.NoError(t, decode(string(again), &back))
		twice, err := json.Marshal(back)
		require.NoError(t, err)
		require.Equal(t, string(again), string(twice))
		require.NotEmpty(t, p.String())
		p.AllowEmpty = true
		_, err = p.Plan(days(5))
		require.Equal(t, p.Validate(), err)
	})
}
