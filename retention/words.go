package retention

import (
	"fmt"
	"strconv"
	"time"
)

// count returns "1 table", "2 tables".
func count[N int | int64](n N, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return strconv.FormatInt(int64(n), 10) + " " + noun + "s"
}

// size returns bytes in binary units, at most 10 characters.
func size(bytes int64) string {
	const unit = 1024
	if bytes < unit {
		return strconv.FormatInt(bytes, 10) + " B"
	}
	value, prefix := float64(bytes)/unit, 0
	for ; value >= unit-0.05; prefix++ { // what would print as 1024.0
		value /= unit
	}
	return fmt.Sprintf("%.1f %ciB", value, "KMGTPE"[prefix])
}

func date(t time.Time) string { return t.UTC().Format(time.DateOnly) }
