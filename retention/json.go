package retention

import "encoding/json"

// What is written here and not in struct tags: empty lists as [], durations as seconds, errors as text. Nothing
// reads JSON by hand, so that a decoder can refuse unknown fields at every depth.

// MarshalJSON writes no holds as [].
func (p Policy) MarshalJSON() ([]byte, error) {
	type plain Policy
	p.Holds = list(p.Holds)
	return json.Marshal(plain(p))
}

// MarshalJSON writes empty lists as [].
func (i Inventory) MarshalJSON() ([]byte, error) {
	type plain Inventory
	i.Tables, i.Ignored, i.Drift = list(i.Tables), list(i.Ignored), list(i.Drift)
	return json.Marshal(plain(i))
}

// MarshalJSON writes empty lists as [].
func (p Plan) MarshalJSON() ([]byte, error) {
	type plain Plan
	p.Drops, p.Keeps, p.Ignored, p.Drift, p.Warnings = list(p.Drops), list(p.Keeps), list(p.Ignored), list(p.Drift), list(p.Warnings)
	return json.Marshal(plain(p))
}

// MarshalJSON writes no reasons as [].
func (k Keep) MarshalJSON() ([]byte, error) {
	type plain Keep
	k.Reasons = list(k.Reasons)
	return json.Marshal(plain(k))
}

// MarshalJSON writes no exceptions as [].
func (c Cut) MarshalJSON() ([]byte, error) {
	type plain Cut
	c.Except = list(c.Except)
	return json.Marshal(plain(c))
}

// MarshalJSON writes the duration as seconds and no tables as [].
func (r Report) MarshalJSON() ([]byte, error) {
	type plain Report
	r.Tables = list(r.Tables)
	return json.Marshal(struct {
		plain
		Took float64 `json:"took"`
	}{plain(r), r.Took.Seconds()})
}

// MarshalJSON writes the duration as seconds and the error as text.
func (t TableReport) MarshalJSON() ([]byte, error) {
	type plain TableReport
	return json.Marshal(struct {
		plain
		Took float64 `json:"took"`
		Err  string  `json:"err"`
	}{plain(t), t.Took.Seconds(), text(t.Err)})
}

// MarshalJSON writes the duration as seconds and the error as text.
func (e Event) MarshalJSON() ([]byte, error) {
	type plain Event
	return json.Marshal(struct {
		plain
		Took float64 `json:"took"`
		Err  string  `json:"err"`
	}{plain(e), e.Took.Seconds(), text(e.Err)})
}

// MarshalText writes the error as its text.
func (e *TableError) MarshalText() ([]byte, error) { return []byte(e.Error()), nil }

func text(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// list returns an empty list for nil, which JSON would write as null.
func list[T any](l []T) []T {
	if l == nil {
		return []T{}
	}
	return l
}
