package sqlname_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mailretention/mailretention/internal/sqlname"
)

var postal = sqlname.Days{Prefix: "raw-", Layout: "2006-01-02"}

var schemes = map[string]struct {
	days sqlname.Days
	bad  string // part of the error
}{
	"Postal's":               {postal, ""},
	"upper case, no dashes":  {sqlname.Days{Prefix: "RAW_", Layout: "20060102"}, ""},
	"day of the year":        {sqlname.Days{Prefix: "mail", Layout: "2006.002"}, ""},
	"month by name":          {sqlname.Days{Prefix: "m ", Layout: "Monday, 02-January-2006"}, ""},
	"zero":                   {sqlname.Days{}, "must both be set"},
	"no prefix":              {sqlname.Days{Layout: "2006-01-02"}, "must both be set"},
	"no layout":              {sqlname.Days{Prefix: "raw-"}, "must both be set"},
	"no day":                 {sqlname.Days{Prefix: "raw-", Layout: "2006-01"}, "one name of its own"},
	"no month":               {sqlname.Days{Prefix: "raw-", Layout: "2006-02"}, "one name of its own"},
	"no year":                {sqlname.Days{Prefix: "raw-", Layout: "01-02"}, "one name of its own"},
	"two digits of the year": {sqlname.Days{Prefix: "raw-", Layout: "060102"}, "one name of its own"},
	"1 11 or 11 1":           {sqlname.Days{Prefix: "raw-", Layout: "200612"}, "one name of its own"},
	"hours":                  {sqlname.Days{Prefix: "raw-", Layout: "2006-01-02-15"}, "one name of its own"},
	"fractions of a second":  {sqlname.Days{Prefix: "raw-", Layout: "2006-01-02.000"}, "one name of its own"},
	"nothing of a date":      {sqlname.Days{Prefix: "raw-", Layout: "day"}, "one name of its own"},
	"too long in September":  {sqlname.Days{Prefix: "a-prefix-of-48-characters-abcdefghijklmnopqrstuv-", Layout: "2006-January-02"}, "at most 64"},
	"ends with a space":      {sqlname.Days{Prefix: "raw-", Layout: "2006-01-02 "}, "ends with a space"},
	"U+0000":                 {sqlname.Days{Prefix: "raw\x00", Layout: "2006-01-02"}, "U+0000"},
	"not UTF-8":              {sqlname.Days{Prefix: "raw\xff", Layout: "2006-01-02"}, "UTF-8"},
}

func TestCheckOfSchemes(t *testing.T) {
	for name, c := range schemes {
		t.Run(name, func(t *testing.T) {
			if c.bad == "" {
				require.NoError(t, c.days.Check())
			} else {
				require.ErrorContains(t, c.days.Check(), c.bad)
			}
		})
	}
}

func TestName(t *testing.T) {
	east := time.FixedZone("", 14*60*60)
	require.Equal(t, "raw-2026-06-02", postal.Name(time.Date(2026, 6, 3, 13, 59, 59, 0, east)), "the UTC day")
	require.Equal(t, "raw-2026-06-03", postal.Name(time.Date(2026, 6, 3, 14, 0, 0, 0, east)))
}

var names = map[string]string{ // the day, "" if the name is no day's
	"raw-2024-01-05":      "2024-01-05",
	"raw-2024-02-29":      "2024-02-29",
	"raw-1969-12-31":      "1969-12-31",
	"raw-9999-12-31":      "9999-12-31",
	"raw-2023-02-29":      "",
	"raw-2024-02-30":      "",
	"raw-2024-13-45":      "",
	"raw-2024-00-01":      "",
	"raw-2024-1-5":        "",
	"raw-24-01-05":        "",
	"raw-02024-01-05":     "",
	"raw-2024-01-05-old":  "",
	"raw-2024-01-05 ":     "",
	"raw- 2024-01-05":     "",
	"raw-2024-01-05.000":  "",
	"raw--2024-01-05":     "",
	"raw-backup":          "",
	"raw-":                "",
	"":                    "",
	"RAW-2024-01-01":      "",
	"raw-2024-01-05`":     "",
	"raw-２０２４-01-05":      "",
	"raw-2024-01-05\x00":  "",
	"xraw-2024-01-05":     "",
	"raw_2024-01-05":      "",
	"raw-2024-01-05\n":    "",
	"raw-2024-01-05T00":   "",
	"raw-2024-01-05\xff":  "",
	"raw-+2024-01-05":     "",
	"raw-2024\u201001-05": "",
}

func TestParse(t *testing.T) {
	for name, want := range names {
		t.Run(name, func(t *testing.T) {
			day, ok := postal.Parse(name)
			require.Equal(t, want != "", ok)
			if ok {
				require.Equal(t, want+"T00:00:00Z", day.Format(time.RFC3339Nano))
				require.Equal(t, time.UTC, day.Location())
			}
		})
	}
}

func TestResembles(t *testing.T) {
	for name, want := range map[string]bool{
		"raw-2024-01-05": true, "RAW-2024-01-01": true, "Raw-backup": true, "raw-": true,
		"raw": false, "": false, "raw_message_sizes": false, "xraw-2024-01-05": false, "ra\xff": false, "ｒaw-": false,
	} {
		require.Equal(t, want, postal.Resembles(name), "%q", name)
	}
}

// A name is a day's only if it is the one that the day has.
func FuzzParse(f *testing.F) {
	for name := range names {
		f.Add(name)
	}
	f.Fuzz(func(t *testing.T, name string) {
		day, ok := postal.Parse(name)
		if !ok {
			require.Zero(t, day)
			return
		}
		require.Equal(t, name, postal.Name(day))
		require.Zero(t, day.Sub(day.Truncate(24*time.Hour)))
		require.True(t, postal.Resembles(name))
		require.NoError(t, sqlname.Check(name))
	})
}

// In a scheme that passes the check, every moment's table is found to be that of the moment's day, and no other.
func FuzzDays(f *testing.F) {
	for _, c := range schemes {
		f.Add(c.days.Prefix, c.days.Layout, int64(1_700_000_000), int64(59_000_000_000))
	}
	f.Fuzz(func(t *testing.T, prefix, layout string, seconds, other int64) {
		d := sqlname.Days{Prefix: prefix, Layout: layout}
		if d.Check() != nil {
			return
		}
		const year9999 = 253_402_300_799
		at, before := time.Unix(seconds%(year9999+1), 0).UTC(), time.Unix(other%(year9999+1), 0).UTC()
		if at.Year() < 1 || before.Year() < 1 || at.Unix() < 0 || before.Unix() < 0 {
			return
		}
		midnight := at.Truncate(24 * time.Hour)
		day, ok := d.Parse(d.Name(at))
		require.True(t, ok)
		require.Equal(t, midnight, day)
		require.Equal(t, before.Truncate(24*time.Hour).Equal(midnight), d.Name(before) == d.Name(at))
	})
}

func TestPrecedes(t *testing.T) {
	for _, pair := range [][2]string{{"raw-2026-06-03", "raw-2026-06-04"}, {"raw-2025-12-31", "raw-2026-01-01"}, {"0", "9"}, {"ü1x", "ü2a"}} {
		require.True(t, sqlname.Precedes(pair[0], pair[1]), "%q", pair)
		require.False(t, sqlname.Precedes(pair[1], pair[0]), "%q", pair)
	}
	for _, pair := range [][2]string{{"", ""}, {"a1", "a1"}, {"a9", "a10"}, {"", "1"}, {"a", "b"}, {"1", "a"}, {"-1", "01"}, {"1é", "2éé"}, {"/", "1"}, {"1", ":"}} {
		require.False(t, sqlname.Precedes(pair[0], pair[1]), "%q", pair)
		require.False(t, sqlname.Precedes(pair[1], pair[0]), "%q", pair)
	}
}
