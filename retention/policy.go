package retention

import "time"

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

// Hold is a legal hold over whole UTC days. From and To are midnights UTC and both of their days are held;
// a zero one leaves that end open, so the zero Hold covers every day.
type Hold struct {
	From   time.Time `json:"from,omitzero"`
	To     time.Time `json:"to,omitzero"`
	Reason string    `json:"reason"` // for people
}
