// Package sqlname builds the parts of a statement that placeholders can't carry: quoted identifiers,
// the names of per-day tables, and literals that mean the same in every sql_mode.
package sqlname

import (
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"
)

// MaxLen is the longest identifier of a database, table or column, in characters.
// Source: MySQL 9 and MariaDB 11 reference manuals, "Identifier Length Limits" and "Identifier Names".
const MaxLen = 64

// Check says what is wrong with name as the identifier of a database, table or column; nil if nothing is.
// The servers refuse or silently change what it refuses: an empty name, one of more than [MaxLen] characters,
// a space at the end, U+0000, characters beyond the Basic Multilingual Plane, and bytes that aren't UTF-8.
func Check(name string) error {
	switch {
	case name == "":
		return errors.New("the name is empty")
	case !utf8.ValidString(name):
		return fmt.Errorf("the name %q is not UTF-8", name)
	case utf8.RuneCountInString(name) > MaxLen:
		return fmt.Errorf("the name %q has %d characters, at most %d are allowed", name, utf8.RuneCountInString(name), MaxLen)
	case strings.HasSuffix(name, " "):
		return fmt.Errorf("the name %q ends with a space", name)
	case strings.ContainsFunc(name, func(r rune) bool { return r == 0 || r > 0xFFFF }):
		return fmt.Errorf("the name %q has U+0000 or a character above U+FFFF, which identifiers can't hold", name)
	}
	return nil
}

// Quote returns name between backticks, those inside it doubled. Backticks quote in every sql_mode, also under ANSI_QUOTES.
func Quote(name string) (string, error) {
	if err := Check(name); err != nil {
		return "", err
	}
	return "`" + strings.ReplaceAll(name, "`", "``") + "`", nil
}

// Qualify returns the quoted name of a table in a database, which no session's default database changes.
func Qualify(database, table string) (string, error) {
	d, errD := Quote(database)
	t, errT := Quote(table)
	if err := errors.Join(errD, errT); err != nil {
		return "", err
	}
	return d + "." + t, nil
}

// Hex returns b as a binary string literal, which reads the same in every sql_mode and character set.
func Hex(b []byte) string {
	return "x'" + hex.EncodeToString(b) + "'"
}

// Uint returns n as a literal.
func Uint(n uint64) string {
	return strconv.FormatUint(n, 10)
}

// Int returns n as a literal.
func Int(n int64) string {
	return strconv.FormatInt(n, 10)
}
