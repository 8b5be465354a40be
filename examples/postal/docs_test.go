package main

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"github.com/stretchr/testify/require"
)

func readText(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	return string(text)
}

// The statements of the page switch Postal's own task off and on, whether Postal has scheduled it yet or not.
func TestTheStatementsThatSwitchPostalsTask(t *testing.T) {
	statements := regexp.MustCompile("(?s)```sql\n(.*?);\n```").FindAllStringSubmatch(readText(t, "BESIDE-POSTAL.md"), -1)
	require.Len(t, statements, 2)
	off, on := statements[0][1], statements[1][1]
	p := newPostal(t)
	for range 2 {
		p.exec(off)
		require.Contains(t, p.call("check").out, "ok     Postal's own task: is switched off until 2999-01-01")
	}
	p.exec(on)
	require.Equal(t, 1, p.count("scheduled_tasks WHERE next_run_after < UTC_TIMESTAMP()"))
	require.Contains(t, p.call("check").out, "note   Postal's own task: runs next at 2000-01-01")
}

// Each flag that a page, a unit or a message names exists.
func TestFlagsThatAreNamedExist(t *testing.T) {
	known := map[string]bool{}
	var collect func(*cobra.Command)
	collect = func(c *cobra.Command) {
		for _, set := range []*pflag.FlagSet{c.Flags(), c.PersistentFlags()} {
			set.VisitAll(func(f *pflag.Flag) { known[f.Name] = true })
		}
		for _, sub := range c.Commands() {
			collect(sub)
		}
	}
	collect(newCommand(surroundings{}))
	flag := regexp.MustCompile(`--([a-z][a-z-]*[a-z])`)
	for _, path := range []string{"README.md", "BESIDE-POSTAL.md", "result.go", "fleet.go", "throttle.go", "check.go", "systemd/postal-retention.service"} {
		for _, name := range flag.FindAllStringSubmatch(readText(t, path), -1) {
			require.True(t, known[name[1]], "%s names --%s", path, name[1])
		}
	}
}

// Each metric that the README names is written.
func TestMetricsThatAreNamedExist(t *testing.T) {
	for _, name := range regexp.MustCompile(`postal_retention_\w+`).FindAllString(readText(t, "README.md"), -1) {
		require.True(t, strings.Contains(readText(t, "metrics.go"), `"`+name+`"`), name)
	}
}
