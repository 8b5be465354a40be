package retention

import "time"

// day counts whole UTC days since 1970-01-01, so that no rule depends on a zone, a DST change or a monotonic clock.
type day int64

const (
	secondsPerDay = 24 * 60 * 60

	firstDay day = -719_162  // 0001-01-01, which the zero Time stands for
	epoch    day = 0         // 1970-01-01: no mail server's clock is before it
	lastDay  day = 2_932_896 // 9999-12-31, the last that JSON and the servers can write
)

func dayOf(t time.Time) day {
	d, rest := t.Unix()/secondsPerDay, t.Unix()%secondsPerDay
	if rest < 0 {
		d--
	}
	return day(d)
}

// known reports whether JSON and the servers can write the day, and it is not the zero Time's.
func (d day) known() bool { return d > firstDay && d <= lastDay }

// start is the day's midnight UTC.
func (d day) start() time.Time {
	return time.Unix(int64(d)*secondsPerDay, 0).UTC()
}

// covers reports whether the hold is over the day.
func (h Hold) covers(d day) bool {
	return (h.From.IsZero() || dayOf(h.From) <= d) && (h.To.IsZero() || d <= dayOf(h.To))
}

// sameDays reports whether two holds are over the same days.
func (h Hold) sameDays(other Hold) bool {
	return h.From.Equal(other.From) && h.To.Equal(other.To)
}
