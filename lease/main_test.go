package lease_test

import (
	"flag"
	"os"
	"testing"
	"time"

	"github.com/mailretention/mailretention/internal/mysqltest"
)

var long = flag.Bool("long", false, "let the storms rage for a minute each")

// storm is how long a storm rages.
func storm(short time.Duration) time.Duration {
	if *long {
		return time.Minute
	}
	return short
}

func TestMain(m *testing.M) {
	if role := os.Getenv(roleVariable); role != "" {
		os.Exit(playRole(role))
	}
	mysqltest.Main(m)
}
