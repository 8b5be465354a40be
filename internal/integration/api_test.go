package integration

import (
	"bytes"
	"flag"
	"go/ast"
	"go/parser"
	"go/printer"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

var update = flag.Bool("update", false, "write the golden files of the exported API anew")

// Embedders compile against these names: a change must be seen, and meant.
func TestExportedAPIIsAsAgreed(t *testing.T) {
	for _, dir := range []string{"retention", "retention/retentiontest", "provisioner", "lease"} {
		t.Run(dir, func(t *testing.T) {
			golden := filepath.Join("testdata", "api-"+filepath.Base(dir)+".txt")
			api := exportedAPI(t, filepath.Join("..", "..", dir))
			if *update {
				require.NoError(t, os.WriteFile(golden, []byte(api), 0o644))
			}
			want, err := os.ReadFile(golden)
			require.NoError(t, err)
			require.Equal(t, string(want), api, "run go test ./internal/integration -run API -update if the change is meant")
		})
	}
}

// exportedAPI returns the exported declarations of a package, sorted, without comments and bodies.
func exportedAPI(t *testing.T, dir string) string {
	t.Helper()
	sources, err := filepath.Glob(filepath.Join(dir, "*.go"))
	require.NoError(t, err)
	files := token.NewFileSet()
	var all []string
	for _, source := range sources {
		if strings.HasSuffix(source, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(files, source, nil, parser.SkipObjectResolution)
		require.NoError(t, err)
		ast.FileExports(file)
		for _, declaration := range file.Decls {
			if function, ok := declaration.(*ast.FuncDecl); ok {
				function.Body = nil
			}
			if general, ok := declaration.(*ast.GenDecl); ok && general.Tok == token.IMPORT {
				continue
			}
			var text bytes.Buffer
			require.NoError(t, printer.Fprint(&text, token.NewFileSet(), declaration))
			all = append(all, text.String())
		}
	}
	slices.Sort(all)
	return strings.Join(all, "\n\n") + "\n"
}
