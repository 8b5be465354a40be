package main

import (
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// count returns "1 table", "2 tables".
func count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return strconv.Itoa(n) + " " + noun + "s"
}

// size returns bytes in binary units.
func size(bytes int64) string {
	const unit = 1024
	if bytes < unit {
		return strconv.FormatInt(bytes, 10) + " B"
	}
	value, prefix := float64(bytes)/unit, 0
	for ; value >= unit; prefix++ {
		value /= unit
	}
	return fmt.Sprintf("%.1f %ciB", value, "KMGTPE"[prefix])
}

func date(t time.Time) string { return t.UTC().Format(time.DateOnly) }

// printable replaces what a terminal would obey.
func printable(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) || r == '\n' {
			return r
		}
		return utf8.RuneError
	}, text)
}
