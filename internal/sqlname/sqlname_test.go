package sqlname_test

import (
	"bytes"
	"database/sql"
	"encoding/hex"
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mailretention/mailretention/internal/mysqltest"
	"github.com/mailretention/mailretention/internal/sqlname"
)

func TestMain(m *testing.M) { mysqltest.Main(m) }

var identifiers = map[string]string{ // quoted; "" if it is refused
	"a":                              "`a`",
	"postal-server-17":               "`postal-server-17`",
	"a.b":                            "`a.b`",
	"a`b":                            "`a``b`",
	"`":                              "````",
	"größe":                          "`größe`",
	"日本語":                            "`日本語`",
	"a\"b'c\\d":                      "`a\"b'c\\d`",
	"a b":                            "`a b`",
	" a":                             "` a`",
	"1":                              "`1`",
	"..":                             "`..`",
	"a/b":                            "`a/b`",
	"-- a":                           "`-- a`",
	"a\tb\nc":                        "`a\tb\nc`",
	"\uffff":                         "`\uffff`",
	strings.Repeat("x", 64):          "`" + strings.Repeat("x", 64) + "`",
	strings.Repeat("`", 64):          "`" + strings.Repeat("``", 64) + "`",
	strings.Repeat("ü", 64):          "`" + strings.Repeat("ü", 64) + "`",
	"":                               "",
	"a ":                             "",
	" ":                              "",
	"a\x00b":                         "",
	"a\xff":                          "",
	"\U00010000":                     "",
	"😀":                              "",
	strings.Repeat("x", 65):          "",
	strings.Repeat("ü", 65):          "",
	"\xed\xa0\x80":                   "",
	strings.Repeat("x", 63) + "\xc3": "",
}

func TestQuote(t *testing.T) {
	for name, want := range identifiers {
		t.Run(name, func(t *testing.T) {
			quoted, err := sqlname.Quote(name)
			require.Equal(t, want, quoted)
			require.Equal(t, want == "", err != nil)
		})
	}
}

func TestQualify(t *testing.T) {
	qualified, err := sqlname.Qualify("a`b", "raw-2024-01-05")
	require.NoError(t, err)
	require.Equal(t, "`a``b`.`raw-2024-01-05`", qualified)
	_, err = sqlname.Qualify("", "b ")
	require.ErrorContains(t, err, "is empty")
	require.ErrorContains(t, err, "ends with a space")
}

// What is quoted is one identifier, and the one that was meant.
func FuzzQuote(f *testing.F) {
	for name := range identifiers {
		f.Add(name)
	}
	f.Fuzz(func(t *testing.T, name string) {
		quoted, err := sqlname.Quote(name)
		require.Equal(t, sqlname.Check(name) == nil, err == nil)
		if err != nil {
			require.Empty(t, quoted)
			return
		}
		inside, found := strings.CutPrefix(quoted, "`")
		require.True(t, found)
		inside, found = strings.CutSuffix(inside, "`")
		require.True(t, found)
		require.NotContains(t, strings.ReplaceAll(inside, "``", ""), "`")
		require.Equal(t, name, strings.ReplaceAll(inside, "``", "`"))
	})
}

func FuzzHex(f *testing.F) {
	f.Add([]byte(nil))
	f.Add([]byte{0, '\'', '\\', 0xff})
	f.Fuzz(func(t *testing.T, b []byte) {
		digits, found := strings.CutPrefix(sqlname.Hex(b), "x'")
		require.True(t, found)
		digits, found = strings.CutSuffix(digits, "'")
		require.True(t, found)
		back, err := hex.DecodeString(digits)
		require.NoError(t, err)
		require.True(t, bytes.Equal(b, back))
	})
}

// modes are sessions in which quotes and backslashes mean different things.
var modes = map[string][]string{
	"default":              nil,
	"ANSI":                 {"sql_mode='ANSI'"},
	"NO_BACKSLASH_ESCAPES": {"sql_mode='NO_BACKSLASH_ESCAPES'"},
	"TRADITIONAL":          {"sql_mode='TRADITIONAL'"},
	"none":                 {"sql_mode=''"},
	"latin1":               {"charset=latin1"},
}

func TestTheServerReadsLiteralsAsTheyAreMeant(t *testing.T) {
	var all []byte
	for b := range 256 {
		all = append(all, byte(b))
	}
	for name, params := range modes {
		t.Run(name, func(t *testing.T) {
			db := mysqltest.Open(t, "", params...)
			for _, want := range [][]byte{{}, {0}, []byte(`a'b"c\d`), all} {
				var got []byte
				require.NoError(t, db.QueryRowContext(t.Context(), "SELECT "+sqlname.Hex(want)).Scan(&got))
				require.Equal(t, want, got)
			}
			var low, high int64
			var most uint64
			query := "SELECT " + sqlname.Int(math.MinInt64) + "," + sqlname.Int(math.MaxInt64) + "," + sqlname.Uint(math.MaxUint64)
			require.NoError(t, db.QueryRowContext(t.Context(), query).Scan(&low, &high, &most))
			require.Equal(t, int64(math.MinInt64), low)
			require.Equal(t, int64(math.MaxInt64), high)
			require.Equal(t, uint64(math.MaxUint64), most)
		})
	}
}

func TestTheServerReadsIdentifiersAsTheyAreMeant(t *testing.T) {
	for name, params := range modes {
		if name == "latin1" { // the statement's own character set, which names outside ASCII depend on
			continue
		}
		t.Run(name, func(t *testing.T) {
			db := mysqltest.Open(t, "", params...)
			for _, middle := range []string{"-", ".", "`", "ü", "日", " ", "\"", "'", "\\", "/", "a"} {
				database := mysqltest.Unique(t) + "-" + middle
				database += strings.Repeat("x", sqlname.MaxLen-len([]rune(database)))
				roundTrip(t, db, database)
			}
		})
	}
}

// roundTrip makes a database and a table of that name, looks what the server calls them, and drops them.
func roundTrip(t *testing.T, db *sql.DB, name string) {
	t.Helper()
	quoted, err := sqlname.Quote(name)
	require.NoError(t, err)
	table, err := sqlname.Qualify(name, name)
	require.NoError(t, err)
	defer func() {
		_, err := db.ExecContext(t.Context(), "DROP DATABASE "+quoted)
		require.NoError(t, err)
	}()
	for _, statement := range []string{"CREATE DATABASE " + quoted, "CREATE TABLE " + table + " (" + quoted + " INT)"} {
		_, err := db.ExecContext(t.Context(), statement)
		require.NoError(t, err, statement)
	}
	var column string
	require.NoError(t, db.QueryRowContext(t.Context(),
		"SELECT column_name FROM information_schema.columns WHERE table_schema=? AND table_name=?", name, name).Scan(&column))
	require.Equal(t, name, column)
}
