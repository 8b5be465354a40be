package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/spf13/pflag"
	"github.com/stretchr/testify/require"
)

func read(t *testing.T, file string, env map[string]string, args ...string) (installation, error) {
	t.Helper()
	flags := pflag.NewFlagSet("test", pflag.ContinueOnError)
	addSettingFlags(flags)
	path := filepath.Join(t.TempDir(), "postal.yml")
	require.NoError(t, os.WriteFile(path, []byte(file), 0o600))
	require.NoError(t, flags.Parse(append([]string{"--config", path}, args...)))
	return readInstallation(flags, func(name string) (string, bool) { v, ok := env[name]; return v, ok })
}

func TestSettingsComeFromFlagsThenEnvironmentThenFileThenDefaults(t *testing.T) {
	file := "version: 2\nmain_db:\n  host: file-host\n  port: 3307\n  username: file-user\n  password: 0123\nmessage_db:\n  database_name_prefix: mail\n"
	in, err := read(t, file, map[string]string{"MAIN_DB_HOST": "env-host", "MAIN_DB_USERNAME": "env-user"}, "--main-db-host", "flag-host")
	require.NoError(t, err)
	require.Equal(t, "flag-host:3307", in.main.address())
	require.Equal(t, "env-user", in.main.username)
	require.Equal(t, "0123", in.main.password(), "as it is written, not as a number")
	require.Equal(t, "postal", in.database)
	require.Equal(t, "mail", in.prefix)
	require.Equal(t, "localhost:3306", in.message.address())
	require.Equal(t, "postal", in.message.username)
}

func TestSettingsOfALegacyFile(t *testing.T) {
	in, err := read(t, "main_db:\n  host: 10.0.0.1\nmessage_db:\n  prefix: old\n  encoding: latin1\n", nil)
	require.NoError(t, err)
	require.Equal(t, "old", in.prefix)
	require.Equal(t, "utf8mb4", in.message.encoding, "Postal doesn't read it there")
	require.Equal(t, "10.0.0.1:3306", in.main.address())

	in, err = read(t, "version: 2\nmessage_db:\n  prefix: old\n", nil)
	require.NoError(t, err)
	require.Equal(t, "postal", in.prefix, "version 2 has another name for it")
}

func TestAPasswordComesFromAFileNotFromTheCommandLine(t *testing.T) {
	path := filepath.Join(t.TempDir(), "password")
	require.NoError(t, os.WriteFile(path, []byte("from a file\n"), 0o600))
	in, err := read(t, "version: 2\n", map[string]string{"MAIN_DB_PASSWORD": "env"}, "--main-db-password-file", path)
	require.NoError(t, err)
	require.Equal(t, "from a file", in.main.password())
}

func TestASocketIsAHost(t *testing.T) {
	in, err := read(t, "version: 2\nmain_db:\n  host: /run/mysqld/mysqld.sock\n", nil)
	require.NoError(t, err)
	require.Equal(t, "/run/mysqld/mysqld.sock", in.main.address())
}

func TestFaultsOfSettingsAreAllNamed(t *testing.T) {
	_, err := read(t, "version: 2\nmain_db:\n  port: 99999\n  host: ''\nmessage_db:\n  port: x\n  encoding: utf8;DROP\n", nil)
	for _, name := range []string{"MAIN_DB_PORT", "MAIN_DB_HOST", "MESSAGE_DB_PORT", "MESSAGE_DB_ENCODING"} {
		require.ErrorContains(t, err, name)
	}
	_, err = read(t, "version: 3\n", nil)
	require.ErrorContains(t, err, `version "3" is unknown`)
}

func TestAFileThatIsNamedMustBeThere(t *testing.T) {
	flags := pflag.NewFlagSet("test", pflag.ContinueOnError)
	addSettingFlags(flags)
	_, err := readInstallation(flags, func(name string) (string, bool) { return "/no/such/postal.yml", name == configVariable })
	require.ErrorIs(t, err, os.ErrNotExist)
}

// FuzzParseConfig looks for a file that makes the reader panic.
func FuzzParseConfig(f *testing.F) {
	for _, seed := range []string{"", "version: 2", "main_db: 1", "main_db:\n  host: [1]", "a: &a [*a]", "version: 2\nmain_db: {host: x, host: y}", "- 1", "\x00"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		file, err := parseConfig([]byte(text))
		if err != nil {
			return
		}
		for _, s := range settings() {
			file.get(s)
		}
	})
}
