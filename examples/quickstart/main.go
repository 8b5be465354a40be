// Command quickstart shows the main job of the library on a real server: it makes a mail server's message database
// with 45 days of mail and the faults that once cost somebody theirs, shows the plan, lets two workers run it at once,
// and checks by SQL that what had to stay stayed.
//
//	go run ./examples/quickstart
package main

import (
	"context"
	"database/sql"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/go-sql-driver/mysql"

	"github.com/mailretention/mailretention/internal/mariadb"
)

const database = "mailretention-quickstart"

func main() {
	dsn := flag.String("dsn", "", "use this server, such as 'user:password@tcp(127.0.0.1:3306)/', instead of a private one; only the database "+database+" is touched")
	keep := flag.Bool("keep", false, "leave the data for a look")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Stdout, *dsn, *keep)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "quickstart:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, out io.Writer, dsn string, keep bool) (err error) {
	show := newScreen(out)
	if dsn == "" {
		show.step("A private MariaDB (on the very first run it may be downloaded)")
		server, startErr := mariadb.Start(ctx, mariadb.Options{})
		if startErr != nil {
			return startErr
		}
		defer func() { err = errors.Join(err, server.Close()) }()
		if keep {
			defer waitForInterrupt(ctx, show, server.DSN(database))
		}
		dsn = server.DSN("")
	}
	db, err := open(dsn, "")
	if err != nil {
		return err
	}
	defer db.Close()
	if err := claim(ctx, db); err != nil {
		return err
	}
	if !keep {
		defer func() { err = errors.Join(err, drop(context.WithoutCancel(ctx), db)) }()
	}
	return demonstrate(ctx, show, dsn)
}

// demonstrate is the show itself, on a server where the database is ours.
func demonstrate(ctx context.Context, show *screen, dsn string) error {
	db, err := open(dsn, database)
	if err != nil {
		return err
	}
	defer db.Close()
	show.step("45 days of mail, and the faults of the story")
	mailServer, err := seed(ctx, db, show)
	if err != nil {
		return err
	}
	show.step("The plan, before anything is deleted")
	if err := mailServer.preview(ctx, show); err != nil {
		return err
	}
	show.step("Two workers run it at the same moment")
	report, err := mailServer.race(ctx, show, dsn)
	if err != nil {
		return err
	}
	show.step("The same again: nothing to do")
	if err := mailServer.again(ctx, show, dsn); err != nil {
		return err
	}
	show.step("What SQL says about it")
	checks, err := mailServer.check(ctx, show)
	if err != nil {
		return err
	}
	show.linef("\nDone: %d tables and %d message rows deleted by one of two workers; all %d checks passed.",
		dropped(report), report.RowsPruned, checks)
	return nil
}

// open returns a pool on a database of the server that dsn names.
func open(dsn, name string) (*sql.DB, error) {
	cfg, err := mysql.ParseDSN(dsn)
	if err != nil {
		return nil, fmt.Errorf("-dsn: %w", err)
	}
	cfg.DBName = name
	connector, err := mysql.NewConnector(cfg)
	if err != nil {
		return nil, fmt.Errorf("-dsn: %w", err)
	}
	return sql.OpenDB(connector), nil
}

// waitForInterrupt keeps the private server, which ends with this process, until the person has looked.
func waitForInterrupt(ctx context.Context, show *screen, dsn string) {
	show.linef("\nThe data stays until you press Ctrl-C: %s", dsn)
	<-ctx.Done()
}
