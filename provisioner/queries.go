package provisioner

import (
	"fmt"
	"time"
)

const (
	selectClock      = "SELECT CAST(UTC_TIMESTAMP(6) AS CHAR)"
	selectAutocommit = "SELECT @@SESSION.autocommit"
	autocommitOn     = "SET SESSION autocommit=1"
	autocommitOff    = "SET SESSION autocommit=0"
)

// dateTimeText is how the servers write a DATETIME(6).
const dateTimeText = "2006-01-02 15:04:05.000000"

// parseClock reads what selectClock returns.
func parseClock(text string) (time.Time, error) {
	t, err := time.ParseInLocation(dateTimeText, text, time.UTC)
	if err != nil {
		return time.Time{}, fmt.Errorf("provisioner: read the server's clock: %w", err)
	}
	return t, nil
}
