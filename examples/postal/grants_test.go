package main

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestMissingRights(t *testing.T) {
	rights := []string{"SELECT", "DROP"}
	for name, c := range map[string]struct {
		lines []string
		want  []string
	}{
		"none":                     {[]string{"GRANT USAGE ON *.* TO `p`@`%` IDENTIFIED BY PASSWORD '*ABC'"}, rights},
		"all":                      {[]string{"GRANT ALL PRIVILEGES ON *.* TO `root`@`localhost` WITH GRANT OPTION"}, []string{}},
		"by a pattern":             {[]string{"GRANT SELECT, DROP ON `postal-%`.* TO `p`@`%`"}, []string{}},
		"in double quotes":         {[]string{`GRANT ALL PRIVILEGES ON "postal-%".* TO "p"@"%"`}, []string{}},
		"an escaped wildcard":      {[]string{"GRANT ALL PRIVILEGES ON `postal-server\\_17`.* TO `p`@`%`"}, rights},
		"global ones add up":       {[]string{"GRANT SELECT ON *.* TO `p`@`%`", "GRANT DROP ON `postal-server-17`.* TO `p`@`%`"}, []string{}},
		"the most specific counts": {[]string{"GRANT ALL PRIVILEGES ON `postal-%`.* TO `p`@`%`", "GRANT SELECT ON `postal-server-17`.* TO `p`@`%`"}, []string{"DROP"}},
		"of a table only":          {[]string{"GRANT SELECT, DROP ON `postal-server-17`.`messages` TO `p`@`%`"}, rights},
		"of another database":      {[]string{"GRANT SELECT, DROP ON `postal-server-1`.* TO `p`@`%`"}, rights},
		"a role":                   {[]string{"GRANT `operators` TO `p`@`%`"}, rights},
	} {
		t.Run(name, func(t *testing.T) {
			require.ElementsMatch(t, c.want, missing(parseGrants(c.lines), "postal-server-17", rights))
		})
	}
}

func TestGrantStatementQuotes(t *testing.T) {
	require.Equal(t, "GRANT DROP ON `my\\_mail``s-server-%`.* TO 'o''x'@'10.%';", grantStatement([]string{"DROP"}, asPattern("my_mail`s-server-")+"%", "o'x@10.%"))
}

// FuzzLike compares with a pattern that has no wildcard: it matches itself alone.
func FuzzLike(f *testing.F) {
	f.Add("postal-server-17", "postal-server-1")
	f.Add("a_%\\", "a")
	f.Fuzz(func(t *testing.T, a, b string) {
		require.True(t, like(asPattern(a), a))
		require.Equal(t, a == b, like(asPattern(a), b))
	})
}
