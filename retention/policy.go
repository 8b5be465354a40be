package retention

import (
	"errors"
	"fmt"
	"strings"
	"time"
)

// Policy says what one mail server keeps. A nil limit keeps for ever, so the zero Policy deletes nothing.
//
// In JSON the names are in snake case; a decoder that asks for it ([encoding/json.Decoder.DisallowUnknownFields])
// refuses unknown ones.
type Policy struct {
	// RawDays keeps the raw tables of the last N whole UTC days beside today: the table of a day before
	// today − N goes. 0 keeps today's alone, though never fewer than MinKeepDays.
	RawDays *int `json:"raw_days"`
	// RawBytes is the most bytes of raw mail that stay. Whole days go, oldest first, until the rest fits.
	RawBytes *int64 `json:"raw_bytes"`
	// MessageDays keeps the message rows of the last N whole UTC days beside today.
	MessageDays *int `json:"message_days"`
	// MinKeepDays are the newest days, today included, that no rule touches. 0 means 2, today and yesterday.
	// With 1, yesterday stays until an hour past midnight UTC, for what is still being written.
	MinKeepDays int `json:"min_keep_days"`
	// Holds are legal holds: nothing of their days goes, whatever the rules say.
	Holds []Hold `json:"holds"`
	// AllowEmpty lets a plan through that [ErrWouldEmpty] would stop.
	AllowEmpty bool `json:"allow_empty"`
}

// Hold is a legal hold over whole UTC days. From and To are midnights UTC, of years from 1 to 9999, and both of their
// days are held; a zero one leaves that end open, so the zero Hold covers every day.
type Hold struct {
	From   time.Time `json:"from,omitzero"`
	To     time.Time `json:"to,omitzero"`
	Reason string    `json:"reason"` // for people
}

// Validate says what is wrong with the policy: all faults joined, each with its field and value. The error
// matches [ErrBadPolicy].
func (p Policy) Validate() error {
	var faults []error
	negative := func(field string, value int64, remedy string) {
		if value < 0 {
			faults = append(faults, fmt.Errorf("%s is %d: it must not be negative; %s", field, value, remedy))
		}
	}
	if p.RawDays != nil {
		negative("RawDays", int64(*p.RawDays), "nil keeps for ever")
	}
	if p.RawBytes != nil {
		negative("RawBytes", *p.RawBytes, "nil keeps for ever")
	}
	if p.MessageDays != nil {
		negative("MessageDays", int64(*p.MessageDays), "nil keeps for ever")
	}
	negative("MinKeepDays", int64(p.MinKeepDays), "0 means 2")
	faults = append(faults, checkHolds(p.Holds))
	if err := errors.Join(faults...); err != nil {
		return fmt.Errorf("%w: %w", ErrBadPolicy, err)
	}
	return nil
}

// checkHolds refuses times that are not midnight UTC, since what days they mean is open: midnight somewhere else
// would leave a part of the last day without its hold. It refuses days too that a server can't compare with.
func checkHolds(holds []Hold) error {
	var faults []error
	for i, h := range holds {
		from, to := fmt.Sprintf("Holds[%d].From", i), fmt.Sprintf("Holds[%d].To", i)
		faults = append(faults, checkEnd(from, h.From), checkEnd(to, h.To))
		if !h.From.IsZero() && !h.To.IsZero() && h.From.After(h.To) {
			faults = append(faults, fmt.Errorf("%s is %s, after %s, which is %s: swap them", from, date(h.From), to, date(h.To)))
		}
	}
	return errors.Join(faults...)
}

func checkEnd(field string, t time.Time) error {
	remedy := "use midnight UTC of the day"
	switch d := dayOf(t); {
	case t.IsZero(), d.known() && t.Equal(d.start()):
		return nil
	case !d.known():
		remedy = "use a year from 1 to 9999, or the zero time for an open end"
	}
	return fmt.Errorf("%s is %s: %s", field, t.Format(time.RFC3339Nano), remedy)
}

// String returns the policy on one line, for people.
func (p Policy) String() string {
	parts := []string{"raw mail " + limits(p.RawDays, p.RawBytes), "messages " + limits(p.MessageDays, nil)}
	parts = append(parts, count(p.keepDays(), "newest day")+" protected")
	if len(p.Holds) > 0 {
		parts = append(parts, count(len(p.Holds), "legal hold"))
	}
	if p.AllowEmpty {
		parts = append(parts, "may be empty")
	}
	return strings.Join(parts, "; ")
}

func limits(days *int, bytes *int64) string {
	var l []string
	if days != nil {
		l = append(l, count(*days, "day"))
	}
	if bytes != nil {
		l = append(l, size(*bytes))
	}
	if l == nil {
		return "for ever"
	}
	return strings.Join(l, " and ")
}
