package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const secret = "s3cr3tPassw0rd"

// Whatever is wrong with the configuration or the server, no output shows a password.
func TestPasswordsAreNeverPrinted(t *testing.T) {
	for name, file := range map[string]string{
		"a server that is not there": "version: 2\nmain_db:\n  host: 127.0.0.1\n  port: 1\n  password: " + secret + "\nmessage_db:\n  password: " + secret,
		"a wrong port":               "version: 2\nmain_db:\n  port: 0\n  password: " + secret,
		"an alias that is none":      "main_db:\n  password: *" + secret,
		"an anchor":                  "version: 2\nmain_db:\n  port: 1\n  password: &" + secret,
		"a quote without an end":     "main_db:\n  password: '" + secret,
		"an unknown escape":          "main_db:\n  password: \"" + secret + "\\q\"",
		"a forbidden start":          "main_db:\n  password: @" + secret,
		"a group that is none":       "version: 2\nmain_db: " + secret + "\nmessage_db:\n  port: x",
		"a bad tag":                  "main_db:\n  password: !!int " + secret,
		"a password twice":           "version: 2\nmain_db:\n  port: 0\n  password: a\n  password: " + secret,
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "postal.yml")
			require.NoError(t, os.WriteFile(path, []byte(file), 0o600))
			for _, command := range [][]string{{"plan"}, {"run", "--json"}, {"check", "-v"}, {"leases"}} {
				o := callWith(t.Context(), surroundings{in: strings.NewReader("")}, nil, append(command, "--config", path)...)
				require.Equal(t, exitFailed, o.status, o)
				require.NotContains(t, o.String(), secret)
				require.NotEmpty(t, o.err)
			}
		})
	}
}

func TestAPasswordOnTheCommandLineIsNotRepeated(t *testing.T) {
	for _, arg := range []string{"-p" + secret, "--password=" + secret, "--main-db-password=" + secret} {
		o := callWith(t.Context(), surroundings{in: strings.NewReader("")}, nil, "plan", arg)
		require.Equal(t, exitFailed, o.status)
		require.NotContains(t, o.String(), secret)
	}
}

func TestAnEndpointHidesItsPassword(t *testing.T) {
	e, err := newEndpoint(map[string]string{"X_HOST": "h", "X_PORT": "1", "X_PASSWORD": secret}, "X_")
	require.NoError(t, err)
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x"} {
		require.NotContains(t, fmt.Sprintf(verb, e), secret)
		require.NotContains(t, fmt.Sprintf(verb, &fleet{installation: installation{main: e}}), secret)
	}
}
