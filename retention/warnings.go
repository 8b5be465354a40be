package retention

import (
	"fmt"
	"math"
)

// warn says what a person should know though nothing is refused.
func (w *walk) warn() {
	p := w.plan.Policy
	say := func(format string, args ...any) {
		w.plan.Warnings = append(w.plan.Warnings, fmt.Sprintf(format, args...))
	}
	if f := w.future; f.tables > 0 {
		say("%s of days to come, the first %s: never touched; look at the clock", count(f.tables, "table"), f.first)
	}
	if u := w.unknown; p.RawBytes != nil && u.tables > 0 {
		say("the size of %s is unknown, the first %s: no table goes for size", count(u.tables, "table"), u.first)
	}
	if p.RawBytes != nil && w.plan.BytesAfter == math.MaxInt64 {
		say("the sizes add up to more than any disk holds: no table goes for size")
	}
	if protected := add(w.activeBytes, w.otherBytes); p.RawBytes != nil && protected > *p.RawBytes {
		say("protected tables alone hold %s, the limit is %s", size(protected), size(*p.RawBytes))
	}
	if p.RawDays != nil && p.MessageDays != nil && *p.MessageDays < *p.RawDays {
		say("messages go after %s, their raw mail only after %s", count(*p.MessageDays, "day"), count(*p.RawDays, "day"))
	}
}
