package integration

import (
	"context"
	"database/sql"
	"fmt"
	"log"
	"os"
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
	readme, err := os.ReadFile("../../README.md")
	require.NoError(t, err)
	source, err := os.ReadFile("readme_test.go")
	require.NoError(t, err)
	_, body, _ := strings.Cut(string(source), "pending func(context.Context) ([]int64, error)) error {\n")
	body, _, _ = strings.Cut(body, "\n}\n")
	_, shown, found := strings.Cut(string(readme), "```go\n")
	require.True(t, found)
	shown, _, _ = strings.Cut(shown, "```")
	require.Equal(t, strings.ReplaceAll("\n"+body+"\n", "\n\t", "\n"), "\n"+shown)
}
