package sqlname

import (
	"fmt"
	"strings"
	"time"
)

// Days names the tables of which there is one per UTC day. Layout is a Go time layout with a day's precision.
type Days struct {
	Prefix, Layout string
}

// Check says what is wrong with the scheme; nil if every day has one name, which no other day has.
func (d Days) Check() error {
	if d.Prefix == "" || d.Layout == "" {
		return fmt.Errorf("prefix %q and layout %q must both be set, as in %q and %q", d.Prefix, d.Layout, "raw-", "2006-01-02")
	}
	first := time.Date(2024, time.January, 1, 0, 0, 0, 0, time.UTC)
	probes := []time.Time{first.AddDate(100, 0, 0)} // tells a year of two digits
	for day := first; day.Year() <= 2025; day = day.AddDate(0, 0, 1) {
		probes = append(probes, day)
	}
	for _, day := range probes {
		name := d.Name(day)
		if err := Check(name); err != nil {
			return err
		}
		lastMoment := day.AddDate(0, 0, 1).Add(-time.Nanosecond)
		if parsed, ok := d.Parse(name); !ok || !parsed.Equal(day) || d.Name(lastMoment) != name {
			return fmt.Errorf("layout %q doesn't give each day one name of its own: use one with the year in four digits, month and day, such as %q", d.Layout, "2006-01-02")
		}
	}
	return nil
}

// Name returns the name of the table of t's UTC day.
func (d Days) Name(t time.Time) string {
	return d.Prefix + t.UTC().Format(d.Layout)
}

// Parse returns midnight UTC of the day that name stands for. It is strict: only a name that [Days.Name] gives
// back byte for byte is a day's, so neither raw-2024-1-5 nor raw-2024-02-30 is.
func (d Days) Parse(name string) (day time.Time, ok bool) {
	rest, found := strings.CutPrefix(name, d.Prefix)
	if !found {
		return time.Time{}, false
	}
	t, err := time.ParseInLocation(d.Layout, rest, time.UTC)
	var buffer [4 * MaxLen]byte // keeps what is formatted off the heap
	if err != nil || string(t.UTC().AppendFormat(buffer[:0], d.Layout)) != rest {
		return time.Time{}, false
	}
	y, m, dd := t.UTC().Date()
	return time.Date(y, m, dd, 0, 0, 0, 0, time.UTC), true
}

// Resembles reports whether name could be taken for a day's table by a person, an index or a collation:
// it begins with the prefix, whatever the case of its letters.
func (d Days) Resembles(name string) bool {
	return len(name) >= len(d.Prefix) && strings.EqualFold(name[:len(d.Prefix)], d.Prefix)
}

// Precedes reports whether a comes before b in every collation: they are of one length, and where they first differ there are digits.
func Precedes(a, b string) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range len(a) {
		if a[i] != b[i] {
			return '0' <= a[i] && a[i] < b[i] && b[i] <= '9'
		}
	}
	return false
}
