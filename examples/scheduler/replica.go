package main

import (
	"context"
	"database/sql"
	"errors"
	"log/slog"
	"time"

	"github.com/go-co-op/gocron/v2"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/mailretention/mailretention/lease"
	"github.com/mailretention/mailretention/provisioner"
	"github.com/mailretention/mailretention/retention"
)

const (
	rawDays     = 30
	messageDays = 60
	stopTimeout = 30 * time.Second // a task that is running at a stop gets this long to end

	statisticsLease = "task/statistics"
)

// Config says what one replica works on. Any number of replicas may share a database.
type Config struct {
	Name     string  // of the replica, the holder of its leases
	Database string  // the message database
	Work     *sql.DB // a pool on that database
	Leases   *sql.DB // another one, so that the work can't starve the leases' heartbeats
	MinHold  time.Duration
	Logger   *slog.Logger
}

// task is work that one replica does when the moment comes.
type task struct {
	name string
	run  func(context.Context) error // matches lease.ErrHeld where another does it
}

// replica is one of the processes that have the same schedule.
type replica struct {
	registry *prometheus.Registry
	tasks    []task
	logger   *slog.Logger
}

func newReplica(ctx context.Context, cfg Config) (*replica, error) {
	registry := prometheus.NewRegistry()
	m := newMetrics(registry)
	leases, err := lease.New(cfg.Leases, lease.Config{Owner: cfg.Name, MinHold: cfg.MinHold, OnEvent: m.lease, Logger: cfg.Logger})
	if err != nil {
		return nil, err
	}
	if err := leases.Provision(ctx); err != nil {
		return nil, err
	}
	// Nothing is queued in this database. Where something is, Pending is not optional: it protects what is still to be sent.
	store, err := provisioner.New(cfg.Work, provisioner.Config{Database: cfg.Database, Guard: leases.Guard, Logger: cfg.Logger})
	if err != nil {
		return nil, err
	}
	runner, err := retention.New(store, retention.Config{
		Name: cfg.Database, Policy: retention.Policy{RawDays: new(rawDays), MessageDays: new(messageDays)},
		Locker: leases, OnEvent: m.retention(cfg.Database), Logger: cfg.Logger,
	})
	if err != nil {
		return nil, err
	}
	r := &replica{registry: registry, logger: cfg.Logger}
	r.add(m, "retention", func(ctx context.Context) error {
		_, err := runner.Run(ctx) // takes its lease itself
		return err
	})
	m.expect(statisticsLease)
	r.add(m, "statistics", func(ctx context.Context) error {
		return leases.Do(ctx, statisticsLease, func(ctx context.Context) error {
			return countYesterday(ctx, cfg.Work, leases.Guard)
		})
	})
	return r, nil
}

// add makes a task whose outcome is counted and logged.
func (r *replica) add(m *metrics, name string, run func(context.Context) error) {
	count := m.task(name)
	r.tasks = append(r.tasks, task{name: name, run: func(ctx context.Context) error {
		err := run(ctx)
		count(err)
		switch {
		case err == nil:
			r.logger.Info("done", "task", name)
		case errors.Is(err, lease.ErrHeld):
			r.logger.Info("left to another replica", "task", name, "why", err)
		default:
			r.logger.Error("failed", "task", name, "err", err)
		}
		return err
	}})
}

// serve runs each task at its moments, a cron expression in UTC, until ctx ends. Then it ends the tasks' contexts,
// waits for them and returns nil.
func (r *replica) serve(ctx context.Context, at string, options ...gocron.SchedulerOption) error {
	s, err := gocron.NewScheduler(append(options,
		gocron.WithLocation(time.UTC), gocron.WithStopTimeout(stopTimeout), gocron.WithLogger(r.logger))...)
	if err != nil {
		return err
	}
	for _, t := range r.tasks {
		if _, err := s.NewJob(gocron.CronJob(at, false), gocron.NewTask(t.run), gocron.WithName(t.name)); err != nil {
			return errors.Join(err, s.Shutdown())
		}
	}
	s.Start()
	<-ctx.Done()
	return s.Shutdown()
}
