package leasemodel_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const anyClock = "-DANYCLOCK"

// How the checker is compiled: to look through everything, or, since a twin fails soon, without much ado.
const (
	exhaustive     = "-O1"
	counterexample = "-O0"
)

// In the model a TTL is 4 ticks long and the margin 1, so a lease is trusted for 3.
func TestRulesHold(t *testing.T) {
	for name, flags := range map[string]string{
		// with clock rates that differ by up to the margin, and forced releases
		"no two holders, whatever the server's clock says":                    anyClock + " -DDRIFT=1 -DFORCE",
		"no two holders, if a lease is observed for as long as it is trusted": anyClock + " -DOBSERVE=3",
		"guarded writes are in token order":                                   anyClock + " -DWRITES -DFORCE -DMAXTOK=3 -DNOGHOST",
		"a dead lease is had after TTL and a poll":                            "-DCALM -DBOUND=5",
		"a dead lease is had after two TTLs and a poll, if the clock stands":  "-DCALM -DSTILLCALM -DBOUND=9",
		// and rests, and is revoked
		"a dead lease is had after two TTLs and a poll, if the clock jumps": "-DN=1 -DCALM -DMINHOLD=2 -DNOGHOST -DJB=2 -DJUMPS=2 -DFORCE -DMAXFORCE=1 -DBOUND=9",
	} {
		t.Run(name, func(t *testing.T) { require.Equal(t, "errors: 0", check(t, flags, exhaustive)) })
	}
}

func TestTwinsFail(t *testing.T) {
	for name, flags := range map[string]string{
		"observed for less time than trusted":             anyClock + " -DOBSERVE=2",
		"clock rates that differ by more than the margin": anyClock + " -DDRIFT=2",
		"no margin":                                     "-DMARGIN=0 -DDRIFT=1",
		"stolen without observation":                    "-DTWIN_NO_OBSERVATION -DJUMPS=1",
		"trusted from the answer on":                    "-DTWIN_TRUST_FROM_ANSWER",
		"observed from the request on":                  anyClock + " -DOBSERVE=3 -DTWIN_OBSERVE_FROM_REQUEST",
		"renewed whoever has it":                        anyClock + " -DTWIN_RENEW_ANY",
		"a holder value used again after its release":   anyClock + " -DG=2 -DTWIN_REUSE_HOLDER",
		"a forced release that frees":                   "-DFORCE -DTWIN_FORCE_FREES -DJUMPS=1",
		"writes without a guard":                        anyClock + " -DWRITES -DTWIN_NO_GUARD",
		"a rest that outlives the next term":            "-DN=1 -DCALM -DMINHOLD=2 -DNOGHOST -DJB=2 -DJUMPS=2 -DBOUND=9 -DTWIN_KEEP_NOT_BEFORE",
		"a rest that a wrong clock wrote":               "-DN=1 -DCALM -DMINHOLD=2 -DNOGHOST -DJB=2 -DJUMPS=1 -DBOUND=9 -DTWIN_TRUST_NOT_BEFORE",
		"the bound is tight":                            "-DCALM -DBOUND=4",
		"the bound is tight, if the clock stands":       "-DCALM -DSTILLCALM -DBOUND=8",
		"what no lease can promise: an unguarded write": anyClock + " -DWRITES -DLIMIT_UNGUARDED",
	} {
		t.Run(name, func(t *testing.T) { require.Equal(t, "errors: 1", check(t, flags, counterexample)) })
	}
}

// check runs the checker over the whole model and returns its verdict.
func check(t *testing.T, flags string, optimisation string) string {
	t.Helper()
	t.Parallel()
	requireTools(t)
	source, err := filepath.Abs("lease.pml")
	require.NoError(t, err)
	dir := t.TempDir()
	run(t, dir, "spin", append(strings.Fields(flags), "-a", source)...)
	how := []string{optimisation}
	if strings.Contains(flags, "CALM") {
		how = append(how, "-DNOREDUCE") // partial order reduction and timeouts don't go together
	} else if optimisation == counterexample {
		how = append(how, "-DBFS") // breadth first finds the shortest counterexample
	}
	run(t, dir, "cc", append(how, strings.Fields("-w -DSAFETY -DCOLLAPSE -DVECTORSZ=512 -DMEMLIM=4000 -o pan pan.c")...)...)
	out := run(t, dir, "./pan", "-m1000000", "-w22")
	require.NotContains(t, out, "max search depth too small")
	verdict := regexp.MustCompile(`errors: \d+`).FindString(out)
	if verdict == "errors: 0" {
		require.NotContains(t, out, "Search not completed")
	}
	return verdict
}

func run(t *testing.T, dir, name string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), name, args...)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", out)
	return string(out)
}

// requireTools skips the test on a machine without the checker, but not in CI, which installs it.
func requireTools(t *testing.T) {
	t.Helper()
	for _, tool := range []string{"spin", "cc"} {
		if _, err := exec.LookPath(tool); err == nil {
			continue
		}
		message := "there is no " + tool + ": install the Debian packages spin and gcc to check the model"
		if os.Getenv("CI") != "" {
			t.Fatal(message)
		}
		t.Skip(message)
	}
}
