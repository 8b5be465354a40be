package main

import (
	"fmt"
	"math"
	"regexp"
	"slices"
	"strings"
)

// grant is what an account may do in the databases that a pattern matches.
type grant struct {
	rights   []string // "ALL PRIVILEGES" is one
	database string   // a pattern with % and _, or * for all
}

// grantLine is a line of SHOW GRANTS about whole databases. Under ANSI_QUOTES names stand in double quotes.
func grantLine() *regexp.Regexp {
	return regexp.MustCompile("^GRANT (.+?) ON (\\*|`(?:[^`]|``)+`|\"(?:[^\"]|\"\")+\")\\.\\* TO ")
}

func parseGrants(lines []string) []grant {
	form := grantLine()
	var grants []grant
	for _, line := range lines {
		m := form.FindStringSubmatch(line)
		if m == nil {
			continue // of one table, of a role, of a proxy
		}
		quote := m[2][:1]
		name := strings.ReplaceAll(strings.Trim(m[2], quote), quote+quote, quote)
		if m[2] == "*" {
			name = "*"
		}
		grants = append(grants, grant{rights: strings.Split(m[1], ", "), database: name})
	}
	return grants
}

// missing returns those of the rights that the grants don't give in the database. Of several patterns that match, the
// servers take the most specific alone, and the global rights.
func missing(grants []grant, database string, rights []string) []string {
	var have []string
	best := -1
	for _, g := range grants {
		if g.database != "*" && specificity(g.database) > best && like(g.database, database) {
			best, have = specificity(g.database), g.rights
		}
	}
	for _, g := range grants {
		if g.database == "*" {
			have = append(slices.Clone(have), g.rights...)
		}
	}
	if slices.Contains(have, "ALL PRIVILEGES") {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(rights), func(r string) bool { return slices.Contains(have, r) })
}

// specificity is where a pattern's first wildcard stands.
func specificity(pattern string) int {
	for i := 0; i < len(pattern); i++ {
		switch pattern[i] {
		case '\\':
			i++
		case '%', '_':
			return i
		}
	}
	return math.MaxInt
}

// like matches a name with a pattern in which % and _ are wildcards and a backslash takes that from them.
func like(pattern, name string) bool {
	for i := 0; i < len(pattern); i++ {
		if pattern[i] == '%' {
			for j := range len(name) + 1 {
				if like(pattern[i+1:], name[j:]) {
					return true
				}
			}
			return false
		}
		wild := pattern[i] == '_'
		if pattern[i] == '\\' && i+1 < len(pattern) {
			i++
		}
		if name == "" || !wild && pattern[i] != name[0] {
			return false
		}
		name = name[1:]
	}
	return name == ""
}

// grantStatement gives rights on the databases of a pattern to an account in the form user@host.
func grantStatement(rights []string, pattern, account string) string {
	user, host := account, "%"
	if at := strings.LastIndexByte(account, '@'); at >= 0 {
		user, host = account[:at], account[at+1:]
	}
	return fmt.Sprintf("GRANT %s ON `%s`.* TO '%s'@'%s';", strings.Join(rights, ", "), strings.ReplaceAll(pattern, "`", "``"), quoted(user), quoted(host))
}

// asPattern escapes what would be a wildcard in a grant.
func asPattern(name string) string {
	return strings.NewReplacer(`\`, `\\`, "_", `\_`, "%", `\%`).Replace(name)
}

func quoted(text string) string { return strings.NewReplacer(`\`, `\\`, "'", "''").Replace(text) }
