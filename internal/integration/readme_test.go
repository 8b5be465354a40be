package integration

import (
	"context"
	"database/sql"
	"fmt"
	"log"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mailretention/mailretention/internal/mariadb"
	"github.com/mailretention/mailretention/lease"
	"github.com/mailretention/mailretention/provisioner"
	"github.com/mailretention/mailretention/retention"
)

// night is what the README shows.
func night(ctx context.Context, db, leasePool *sql.DB, name string, pending func(context.Context) ([]int64, error)) error {
	leases, err := lease.New(leasePool, lease.Config{}) // a pool of its own: the work can't starve it
	if err != nil {
		return err
	}
	store, err := provisioner.New(db, provisioner.Config{Database: name, Pending: pending, Guard: leases.Guard})
	if err != nil {
		return err
	}
	policy := retention.Policy{RawDays: new(30), RawBytes: new(int64(2 << 30)), MessageDays: new(60)}
	report, err := retention.Run(ctx, store, retention.Config{Name: name, Policy: policy, Locker: leases})
	log.Println(report)
	return err
}

func Example() {
	ctx := context.Background()
	server, err := mariadb.Start(ctx, mariadb.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer server.Close()
	db, err := sql.Open("mysql", server.DSN(""))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer db.Close()

	// Once, when the mail server is set up:
	store, err := provisioner.New(db, provisioner.Config{Database: "postal-server-17"})
	if err != nil {
		fmt.Println(err)
		return
	}
	leasePool, err := sql.Open("mysql", server.DSN("postal-server-17"))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer leasePool.Close()
	leases, err := lease.New(leasePool, lease.Config{})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(store.Provision(ctx), leases.Provision(ctx))

	// Each night:
	queue := func(context.Context) ([]int64, error) { return nil, nil }
	fmt.Println(night(ctx, db, leasePool, "postal-server-17", queue))
	// Output:
	// <nil> <nil>
	// <nil>
}

func TestReadmeShowsTheExample(t *testing.T) {
	source := read(t, "readme_test.go")
	_, body, _ := strings.Cut(source, "pending func(context.Context) ([]int64, error)) error {\n")
	body, _, _ = strings.Cut(body, "\n}\n")
	blocks := readmeBlocks(t)
	require.Equal(t, strings.ReplaceAll("\n"+body+"\n", "\n\t", "\n"), "\n"+blocks[0])
}

func TestReadmeShowsMocksThatAreExamples(t *testing.T) {
	examples := read(t, "../../retention/example_mock_test.go") + read(t, "../../provisioner/example_test.go")
	for _, block := range readmeBlocks(t)[1:] {
		for line := range strings.Lines(block) {
			code, _, _ := strings.Cut(strings.TrimSpace(line), " //")
			require.Contains(t, examples, code)
		}
	}
}

// Whoever meets one of our errors finds it in the table.
func TestErrorsAreAllInTheTable(t *testing.T) {
	table := read(t, "README.md")
	for _, name := range []string{"retention", "provisioner", "lease"} {
		api := read(t, "testdata/api-"+name+".txt")
		for _, match := range regexp.MustCompile(`\b(Err[A-Z]\w+)\s+=|type (\w+Error) struct`).FindAllStringSubmatch(api, -1) {
			require.Contains(t, table, name+"."+match[1]+match[2]+"`")
		}
	}
}

// readmeBlocks returns the Go code of the README.
func readmeBlocks(t *testing.T) []string {
	t.Helper()
	blocks := strings.Split(read(t, "../../README.md"), "```go\n")[1:]
	require.NotEmpty(t, blocks)
	for i := range blocks {
		blocks[i], _, _ = strings.Cut(blocks[i], "```")
	}
	return blocks
}

func read(t *testing.T, file string) string {
	t.Helper()
	content, err := os.ReadFile(file)
	require.NoError(t, err)
	return string(content)
}
