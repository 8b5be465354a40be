package integration

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// The table of what breaks names tests that exist, and every test of this folder that is about it.
func TestTableNamesTestsThatExist(t *testing.T) {
	readme, err := os.ReadFile("README.md")
	require.NoError(t, err)
	var named []string
	for _, match := range regexp.MustCompile("`([a-z]+\\.(?:Test|Fuzz)\\w+)`").FindAllStringSubmatch(string(readme), -1) {
		named = append(named, match[1])
	}
	var exist []string
	for name, folder := range map[string]string{
		"integration": ".", "retention": "../../retention", "provisioner": "../../provisioner", "lease": "../../lease",
	} {
		exist = append(exist, testsIn(t, name, folder)...)
	}
	require.Empty(t, without(named, exist), "named, but not there")
	other := []string{"TestMain", "TestTableNamesTestsThatExist", "TestExportedAPIIsAsAgreed", "TestErrorsAreAllInTheTable"} // about the project itself
	for _, test := range without(testsIn(t, "integration", "."), named) {
		_, test, _ = strings.Cut(test, ".")
		require.True(t, slices.Contains(other, test) || strings.HasPrefix(test, "TestReadme"), "%s is not in the table", test)
	}
}

// testsIn lists the tests and fuzz targets of a folder's package.
func testsIn(t *testing.T, name, folder string) (tests []string) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(folder, "*_test.go"))
	require.NoError(t, err)
	for _, file := range files {
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
		require.NoError(t, err)
		for _, declared := range parsed.Decls {
			if f, ok := declared.(*ast.FuncDecl); ok && f.Recv == nil && (strings.HasPrefix(f.Name.Name, "Test") || strings.HasPrefix(f.Name.Name, "Fuzz")) {
				tests = append(tests, name+"."+f.Name.Name)
			}
		}
	}
	return tests
}
