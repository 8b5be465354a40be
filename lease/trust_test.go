package lease

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A machine that sleeps stops its monotonic clock, and one whose wall clock is set back would trust for too long by that.
func TestTrustIsByTheStricterClock(t *testing.T) {
	now := time.Now()
	for _, c := range []struct {
		name            string
		monotonic, wall time.Duration
		want            time.Duration
	}{
		{"both agree", time.Minute, time.Minute, time.Minute},
		{"the machine slept for half a minute", time.Minute, 30 * time.Second, 30 * time.Second},
		{"the machine slept for an hour", time.Minute, -time.Hour, -time.Hour},
		{"the wall clock was set back", time.Minute, time.Hour, time.Minute},
	} {
		t.Run(c.name, func(t *testing.T) {
			until := trust{monotonic: now.Add(c.monotonic), wall: now.Round(0).Add(c.wall)}
			require.Equal(t, c.want, until.left(now))
		})
	}
	require.Negative(t, trust{}.left(now), "what was never proved is not trusted")
}
