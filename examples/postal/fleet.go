package main

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"sync"

	"github.com/mailretention/mailretention/internal/sqlname"
	"github.com/mailretention/mailretention/lease"
	"github.com/mailretention/mailretention/provisioner"
	"github.com/mailretention/mailretention/retention"
)

const leaseTable = "leases"

// fleet is all that the commands work with: the pools, Postal's servers and the leases.
type fleet struct {
	installation
	options options
	mainDB  *sql.DB
	work    *sql.DB // the server of the message databases
	leaseDB *sql.DB // the same server, a pool of its own: work that uses up the other one can't starve the heartbeat
	leases  *lease.Leases
	storage *provisioner.StorageSizes
	lag     *throttle
	all     []server // Postal's
	servers []server // those that were asked for
	logger  *slog.Logger
}

// openFleet connects, and reads which servers there are.
func openFleet(ctx context.Context, in installation, o options, logger *slog.Logger) (*fleet, error) {
	f := &fleet{installation: in, options: o, logger: logger, lag: &throttle{most: o.throttleLag, logger: logger}}
	if err := f.open(ctx); err != nil {
		return nil, errors.Join(err, f.close())
	}
	return f, nil
}

func (f *fleet) open(ctx context.Context) error {
	if err := f.openPools(); err != nil {
		return err
	}
	var err error
	f.leases, err = lease.New(f.leaseDB, lease.Config{Table: f.leaseDatabase() + "." + leaseTable, Logger: f.logger})
	if err != nil {
		return err
	}
	if f.all, err = readServers(ctx, f.mainDB, f.prefix); err != nil {
		return fmt.Errorf("main database %q on %s: %w; is it there? --config, MAIN_DB_HOST or --main-db-host say where", f.database, f.main.address(), err)
	}
	f.servers, err = choose(f.all, f.options.servers)
	return err
}

func (f *fleet) openPools() error {
	var errMain, errWork, errLease error
	f.mainDB, errMain = f.main.open(f.database)
	f.work, errWork = f.message.open("")
	f.leaseDB, errLease = f.message.open("")
	if err := errors.Join(errMain, errWork, errLease); err != nil {
		return err
	}
	f.work.SetMaxIdleConns(connectionsPerRun * f.options.parallel)
	f.storage = provisioner.NewStorageSizes(f.work)
	return f.openReplicas()
}

func (f *fleet) openReplicas() error {
	for _, address := range f.options.replicas {
		e, err := f.message.at(address)
		if err != nil {
			return fmt.Errorf("--replica: %w", err)
		}
		db, err := e.open("")
		if err != nil {
			return fmt.Errorf("--replica %s: %w", address, err)
		}
		f.lag.replicas = append(f.lag.replicas, replica{e.address(), db})
	}
	return nil
}

// connectionsPerRun is how many connections of one run are kept while it doesn't use them, so that batches find them open.
const connectionsPerRun = 3

func (f *fleet) close() error {
	var errs []error
	for _, db := range []*sql.DB{f.mainDB, f.work, f.leaseDB} {
		if db != nil {
			errs = append(errs, db.Close())
		}
	}
	for _, r := range f.lag.replicas {
		errs = append(errs, r.db.Close())
	}
	return errors.Join(errs...)
}

// deleted counts the servers that are skipped, since Postal is about to destroy them.
func (f *fleet) deleted() int {
	n := 0
	for _, s := range f.all {
		if s.deleted {
			n++
		}
	}
	return n
}

// leaseDatabase is next to the message databases, where their transactions reach it and where the account that Postal
// uses may usually create one.
func (f *fleet) leaseDatabase() string {
	return cmp.Or(f.options.leaseDatabase, f.prefix+"-retention")
}

// provisionLeases makes the database and the table of the leases where they are missing.
func (f *fleet) provisionLeases(ctx context.Context) error {
	_, err := f.leases.List(ctx)
	if !errors.Is(err, lease.ErrNotProvisioned) {
		return err
	}
	name, err := sqlname.Quote(f.leaseDatabase())
	if err != nil {
		return fmt.Errorf("--lease-database: %w", err)
	}
	if _, err := f.leaseDB.ExecContext(ctx, createDatabase(name)); err != nil {
		return fmt.Errorf("create the database of the leases: %w", err)
	}
	return f.leases.Provision(ctx)
}

// runner makes the server's runner. A fault of its limits shows here.
func (f *fleet) runner(s server, onEvent func(retention.Event)) (*retention.Runner, error) {
	o := f.options
	logger := f.logger.With("server", s.path())
	store, err := provisioner.New(f.work, provisioner.Config{
		Database:  s.Database,
		Pending:   func(ctx context.Context) ([]int64, error) { return pending(ctx, f.mainDB, s.ID) },
		Guard:     f.leases.Guard,
		Storage:   f.storage,
		BatchTime: o.batchTime,
		Pause:     o.pause,
		Throttle:  f.lag.wait,
		Logger:    logger,
	})
	if err != nil {
		return nil, err
	}
	return retention.New(store, retention.Config{
		Name:     s.Database,
		Policy:   o.limits.policy(s),
		Locker:   f.leases,
		MaxDrops: o.maxDrops,
		OnEvent:  onEvent,
		Logger:   logger,
	})
}

// plan plans each server, so many at once, in the servers' order. It changes nothing.
func (f *fleet) plan(ctx context.Context) []result {
	results := make([]result, len(f.servers))
	slots := make(chan struct{}, f.options.parallel)
	var all sync.WaitGroup
	for i, s := range f.servers {
		slots <- struct{}{}
		all.Go(func() {
			defer func() { <-slots }()
			results[i] = f.planOne(ctx, s)
		})
	}
	all.Wait()
	return results
}

func (f *fleet) planOne(ctx context.Context, s server) result {
	runner, err := f.runner(s, nil)
	if err != nil {
		return result{Server: s, err: err}
	}
	plan, err := runner.Plan(ctx)
	return result{Server: s, Plan: plan, err: err}
}
