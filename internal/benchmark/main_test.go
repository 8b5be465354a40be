// Package benchmark measures the packages on a real server, beside a client that goes on working, and against the
// single statements that do the same without care. The README beside it has the figures and how to get them.
package benchmark

import (
	"flag"
	"os"
	"testing"

	"github.com/mailretention/mailretention/internal/mysqltest"
)

// What the command line can change. The sizes of the published figures stand in the README.
var (
	settings    = flag.String("settings", "durable", "how the servers run, separated by commas: durable (an operator's settings, on disk) or fast (in memory, nothing is flushed)")
	messages    = flag.Int("messages", 100_000, "messages of six days, three of which go: the raw tables, messages and both cases")
	hugeMB      = flag.Int("huge-mb", 256, "megabytes of the huge day, at 2 KB a message")
	manyRows    = flag.Int("many", 1_000_000, "messages of the large database with nothing to do")
	databases   = flag.Int("databases", 50, "databases of the fleet")
	samplesFile = flag.String("samples", "", "write the client's waits in the both case to this file, for the plot")
)

func TestMain(m *testing.M) {
	if task := os.Getenv(workerVariable); task != "" {
		os.Exit(workerMain(task))
	}
	mysqltest.Main(m)
}
