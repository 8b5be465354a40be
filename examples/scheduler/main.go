// Command scheduler runs tasks at fixed times on two replicas, each task once, under a lease of its name; one of the
// tasks is retention. Each replica serves Prometheus metrics on loopback.
//
//	go -C examples/scheduler run .
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
	"net/http"
	"os"
	"os/signal"
	"strconv"
	"sync"
	"syscall"
	"time"

	"github.com/go-sql-driver/mysql"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/mailretention/mailretention/internal/mariadb"
)

const (
	replicas     = 2
	host         = "127.0.0.1"
	readTimeout  = 5 * time.Second // of a request for metrics
	firstPort    = 9180
	everyMinute  = "* * * * *"
	demoMinHold  = 30 * time.Second
	demoDatabase = "mailretention-scheduler"
)

type options struct {
	dsn      string
	database string
	at       string
	minHold  time.Duration
	port     int
}

func main() {
	var o options
	flag.StringVar(&o.dsn, "dsn", "", "use this server, such as 'user:password@tcp(127.0.0.1:3306)/', instead of a private one")
	flag.StringVar(&o.database, "database", demoDatabase, "is made, filled with some old mail, and stays")
	flag.StringVar(&o.at, "at", everyMinute, "when the tasks run, in UTC: minute, hour, day, month, weekday; each night at three: '0 3 * * *'")
	flag.DurationVar(&o.minHold, "min-hold", demoMinHold, "a task that succeeded doesn't run again so soon; longer than clocks differ, shorter than the schedule's interval")
	flag.IntVar(&o.port, "port", firstPort, "of the first replica's metrics on "+host+"; the second has the next; 0: free ones")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Stdout, o)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "scheduler:", err)
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
	pool, err := open(o.dsn, "")
	if err != nil {
		return err
	}
	defer pool.Close()
	if err := seed(ctx, pool, o.database); err != nil {
		return err
	}
	return serveAll(ctx, out, o)
}

// serveAll runs the replicas. If one can't go on, the others stop too.
func serveAll(ctx context.Context, out io.Writer, o options) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	failed := make([]error, replicas)
	var running sync.WaitGroup
	for i := range replicas {
		port := 0
		if o.port != 0 {
			port = o.port + i
		}
		running.Go(func() {
			failed[i] = serveOne(ctx, out, fmt.Sprintf("replica-%d", i+1), port, o)
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
	r, err := newReplica(ctx, Config{
		Name: name, Database: o.database, Work: work, Leases: leases, MinHold: o.minHold,
		Logger: slog.New(slog.NewTextHandler(out, nil)).With("replica", name),
	})
	if err != nil {
		return err
	}
	l, err := net.Listen("tcp", net.JoinHostPort(host, strconv.Itoa(port)))
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "%s: metrics on http://%s/metrics; Ctrl-C stops\n", name, l.Addr())
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(r.registry, promhttp.HandlerOpts{}))
	server := &http.Server{Handler: mux, ReadHeaderTimeout: readTimeout}
	served := make(chan error, 1)
	go func() { served <- server.Serve(l) }()
	err = r.serve(ctx, o.at)
	return errors.Join(err, server.Close(), ignoreClosed(<-served))
}

func ignoreClosed(err error) error {
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return err
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
