package benchmark

import (
	"testing"
)

// BenchmarkRawTables removes the raw tables of the older half of the days.
func BenchmarkRawTables(b *testing.B) {
	eachSetting(b, func(b *testing.B, s *server) {
		contest(b, s, sixDays(*messages), our(rawTables), naiveRaw)
	})
}

// BenchmarkMessages removes the messages of the older half of the days.
func BenchmarkMessages(b *testing.B) {
	eachSetting(b, func(b *testing.B, s *server) {
		contest(b, s, sixDays(*messages), our(messageRows), naiveMessages)
	})
}

// BenchmarkBoth removes raw tables and messages in one run.
func BenchmarkBoth(b *testing.B) {
	eachSetting(b, func(b *testing.B, s *server) {
		ours, naive := contest(b, s, sixDays(*messages), our(both), naiveBoth)
		if *samplesFile != "" {
			writeSamples(b, ours, naive)
		}
	})
}

// BenchmarkHugeDay removes one large raw table.
func BenchmarkHugeDay(b *testing.B) {
	c := content{perDay: []int{pending, 0, 0, *hugeMB << 20 / hugeBytes}, keeps: 2, bytes: hugeBytes}
	eachSetting(b, func(b *testing.B, s *server) {
		contest(b, s, c, our(rawTables), naiveRaw)
	})
}
