// Command smtp is a small mail transfer agent that keeps its mail with the packages of this repository: it receives on
// loopback, queues, delivers everything to one place, and keeps its database inside a retention policy. Two instances
// work on one database.
//
//	go -C examples/smtp run .
package main

import (
	"context"
	"database/sql"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"os/signal"
	"strconv"
	"sync"
	"syscall"
	"time"

	"github.com/go-sql-driver/mysql"

	"github.com/mailretention/mailretention/internal/mariadb"
	"github.com/mailretention/mailretention/retention"
)

const (
	instances = 2
	host      = "127.0.0.1" // it takes mail for everybody, so nobody else may reach it
)

type options struct {
	dsn         string
	database    string
	port        int
	sink        string
	every       time.Duration
	rawDays     int
	rawMiB      int64
	messageDays int
}

func main() {
	var o options
	flag.StringVar(&o.dsn, "dsn", "", "use this server, such as 'user:password@tcp(127.0.0.1:3306)/', instead of a private one")
	flag.StringVar(&o.database, "database", "mailretention-smtp", "the message database; it is made if it is missing, and stays")
	flag.IntVar(&o.port, "port", 2525, "of the first instance on "+host+"; the second has the next; 0: free ones")
	flag.StringVar(&o.sink, "sink", "", "deliver to this SMTP server, host:port, instead of one that prints a line for each mail")
	flag.DurationVar(&o.every, "every", time.Minute, "between two runs of retention")
	flag.IntVar(&o.rawDays, "raw-days", 30, "whole days of raw mail to keep, beside today")
	flag.Int64Var(&o.rawMiB, "raw-mib", 1024, "MiB of raw mail to keep")
	flag.IntVar(&o.messageDays, "message-days", 60, "whole days of message rows to keep, beside today")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Stdout, o)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "smtp:", err)
		os.Exit(1)
	}
}

// run is the program: it returns once ctx has ended and everything has stopped.
func run(ctx context.Context, out io.Writer, o options) (err error) {
	if o.dsn == "" {
		fmt.Fprintln(out, "starting a private MariaDB (on the very first run it may be downloaded)")
		server, startErr := mariadb.Start(ctx, mariadb.Options{})
		if startErr != nil {
			return startErr
		}
		defer func() { err = errors.Join(err, server.Close()) }()
		o.dsn = server.DSN("")
	}
	if o.sink == "" {
		l, err := net.Listen("tcp", net.JoinHostPort(host, "0"))
		if err != nil {
			return err
		}
		sink := newSink(slog.DiscardHandler, func(m letter) error {
			fmt.Fprintf(out, "delivered: %d bytes from %s to %s\n", len(m.raw), m.from, m.to)
			return nil
		})
		go sink.Serve(l)
		defer sink.Close()
		o.sink = l.Addr().String()
	}
	pool, err := open(o.dsn, "")
	if err != nil {
		return err
	}
	defer pool.Close()
	if err := Provision(ctx, pool, o.database); err != nil {
		return err
	}
	return serveAll(ctx, out, o)
}

// serveAll runs the instances. If one can't go on, the others stop too.
func serveAll(ctx context.Context, out io.Writer, o options) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	failed := make([]error, instances)
	var running sync.WaitGroup
	for i := range instances {
		port := 0
		if o.port != 0 {
			port = o.port + i
		}
		running.Go(func() {
			failed[i] = serveOne(ctx, out, fmt.Sprintf("mta-%d", i+1), port, o)
			cancel()
		})
	}
	running.Wait()
	return errors.Join(failed...)
}

func serveOne(ctx context.Context, out io.Writer, name string, port int, o options) error {
	work, errWork := open(o.dsn, o.database)
	leases, errLeases := open(o.dsn, o.database)
	if err := errors.Join(errWork, errLeases); err != nil {
		return err
	}
	defer work.Close()
	defer leases.Close()
	mta, err := New(ctx, Config{
		Name: name, Database: o.database, Work: work, Leases: leases, Sink: o.sink, Every: o.every,
		Policy: retention.Policy{RawDays: new(o.rawDays), RawBytes: new(o.rawMiB << 20), MessageDays: new(o.messageDays)},
		Logger: slog.New(slog.NewTextHandler(os.Stderr, nil)).With("instance", name),
	})
	if err != nil {
		return err
	}
	l, err := net.Listen("tcp", net.JoinHostPort(host, strconv.Itoa(port)))
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "%s receives on %s; Ctrl-C stops\n", name, l.Addr())
	return mta.Serve(ctx, l)
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
