package main

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/emersion/go-smtp"

	"github.com/mailretention/mailretention/lease"
	"github.com/mailretention/mailretention/provisioner"
	"github.com/mailretention/mailretention/retention"
)

const (
	defaultRetry = 5 * time.Minute
	pollInterval = time.Second      // how soon an instance sees what others have queued
	stopTimeout  = 10 * time.Second // clients that are still connected get this long to finish
)

// Config says what one instance does. Any number of instances may share a database.
type Config struct {
	Name     string           // of the instance: in its greeting, and as the holder of the lease
	Database string           // the message database, made by Provision
	Work     *sql.DB          // a pool on that database
	Leases   *sql.DB          // another one, so that the work can't starve the lease's heartbeat
	Sink     string           // host:port that everything is delivered to
	Policy   retention.Policy // what to keep
	Every    time.Duration    // between two runs of retention; required
	Retry    time.Duration    // before the second delivery attempt, longer before each further one; 0 means 5 minutes
	Now      func() time.Time // the time of receipt; nil: time.Now
	Logger   *slog.Logger
}

// MTA is one instance.
type MTA struct {
	Config
	store     *provisioner.Provisioner
	retention *retention.Runner
	queued    chan struct{} // has an element when this instance has queued something
	stopping  atomic.Bool
}

// Provision makes the database and its tables, where they are missing. Pool needs no database selected.
func Provision(ctx context.Context, pool *sql.DB, database string) error {
	store, err := provisioner.New(pool, provisioner.Config{Database: database, Schema: schema()})
	if err != nil {
		return err
	}
	return store.Provision(ctx)
}

// schema is Postal's with the queue beside the messages: in one database, a transaction can write both.
func schema() provisioner.Schema {
	s := provisioner.PostalSchema()
	s.Base = append(s.Base, provisioner.BaseTable{Name: "queue", Columns: queueColumns})
	return s
}

// New makes an instance on a database that Provision has made. It starts nothing.
func New(ctx context.Context, cfg Config) (*MTA, error) {
	if cfg.Every <= 0 {
		return nil, fmt.Errorf("Config.Every: %v is no interval, say how often retention runs", cfg.Every)
	}
	cfg.Retry = cmp.Or(cfg.Retry, defaultRetry)
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	m := &MTA{Config: cfg, queued: make(chan struct{}, 1)}
	leases, err := lease.New(cfg.Leases, lease.Config{Owner: cfg.Name, Logger: cfg.Logger})
	if err != nil {
		return nil, err
	}
	if err := leases.Provision(ctx); err != nil {
		return nil, err
	}
	m.store, err = provisioner.New(cfg.Work, provisioner.Config{
		Database: cfg.Database, Schema: schema(), Pending: m.pending, Guard: leases.Guard, Logger: cfg.Logger,
	})
	if err != nil {
		return nil, err
	}
	m.retention, err = retention.New(m.store, retention.Config{Name: cfg.Database, Policy: cfg.Policy, Locker: leases, Logger: cfg.Logger})
	return m, err
}

// Serve receives mail on l, delivers what is queued and runs retention until ctx ends. Then it finishes the mail in
// hand, closes l and returns nil.
func (m *MTA) Serve(ctx context.Context, l net.Listener) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	server := m.server()
	var running sync.WaitGroup
	var failed error
	running.Go(func() { m.deliverAlways(ctx) })
	running.Go(func() { m.retainAlways(ctx) })
	running.Go(func() {
		failed = server.Serve(l)
		cancel()
	})
	<-ctx.Done()
	m.stopping.Store(true)
	bounded, release := context.WithTimeout(context.WithoutCancel(ctx), stopTimeout)
	defer release()
	if err := server.Shutdown(bounded); err != nil {
		m.Logger.Warn("stopped while clients were connected", "err", err)
	}
	l.Close() // Shutdown does it, unless it came before Serve
	running.Wait()
	return failed
}

// server is the part that receives mail.
func (m *MTA) server() *smtp.Server {
	return newServer(m.Name, m.Logger.Handler(), func(c *smtp.Conn) smtp.Session {
		return &session{mta: m, client: c.Hostname(), address: c.Conn().RemoteAddr().String()}
	})
}

// deliverAlways empties the queue whenever something was put into it, here or, as the ticks show, by another instance.
func (m *MTA) deliverAlways(ctx context.Context) {
	ticks := time.NewTicker(pollInterval)
	defer ticks.Stop()
	for {
		if err := m.deliverDue(ctx); err != nil && ctx.Err() == nil {
			m.Logger.Error("the queue can't be worked on", "err", err)
		}
		select {
		case <-ctx.Done():
			return
		case <-m.queued:
		case <-ticks.C:
		}
	}
}

// retainAlways runs retention at each tick.
func (m *MTA) retainAlways(ctx context.Context) {
	ticks := time.NewTicker(m.Every)
	defer ticks.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticks.C:
		}
		_, _ = m.retention.Run(ctx) // the Runner has logged how it ended, and the next tick begins anew
	}
}

// pending is what retention must not touch: the messages that are still in the queue.
func (m *MTA) pending(ctx context.Context) ([]int64, error) {
	rows, err := m.Work.QueryContext(ctx, sqlPending)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var ids []int64
	for rows.Next() {
		var id int64
		if err := rows.Scan(&id); err != nil {
			return nil, err
		}
		ids = append(ids, id)
	}
	return ids, rows.Err()
}

// inTx runs fn in a transaction. READ COMMITTED locks the rows that a statement finds and no gaps between them, so that
// instances don't wait for each other.
func (m *MTA) inTx(ctx context.Context, fn func(*sql.Tx) error) error {
	tx, err := m.Work.BeginTx(ctx, &sql.TxOptions{Isolation: sql.LevelReadCommitted})
	if err != nil {
		return err
	}
	if err := fn(tx); err != nil {
		return errors.Join(err, tx.Rollback())
	}
	return tx.Commit()
}
