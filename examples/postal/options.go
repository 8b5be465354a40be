package main

import (
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/spf13/pflag"
)

// options are the flags beside those of the settings.
type options struct {
	servers       []string
	leaseDatabase string
	limits        limits
	json          bool
	html          string
	metricsFile   string
	yes           bool
	verbose       bool
	maxDrops      int
	parallel      int
	batchTime     time.Duration
	pause         float64
	throttleLag   time.Duration
	replicas      []string
}

func defaultOptions() options {
	return options{limits: limits{minKeepDays: 2}, parallel: 1, batchTime: 50 * time.Millisecond}
}

// addCommon adds what every command takes.
func (o *options) addCommon(flags *pflag.FlagSet) {
	flags.StringVar(&o.leaseDatabase, "lease-database", "", "database on the message databases' server for the leases (default prefix-retention)")
	flags.BoolVar(&o.json, "json", false, "write JSON to the standard output")
	flags.BoolVarP(&o.verbose, "verbose", "v", false, "log each step")
}

// addPlan adds what decides what goes.
func (o *options) addPlan(flags *pflag.FlagSet) {
	flags.StringSliceVar(&o.servers, "server", nil, "only this server: ID, permalink or organization/permalink; may be repeated")
	flags.IntVar(&o.limits.minKeepDays, "min-keep-days", o.limits.minKeepDays, "newest days, today included, that no limit touches")
	flags.BoolVar(&o.limits.allowEmpty, "allow-empty", false, "carry out a plan that leaves next to nothing; needs --server")
	flags.BoolVar(&o.limits.postalCut, "postal-cut", false, "delete messages of one day more, as Postal's own task does")
	flags.IntVar(&o.parallel, "parallel", o.parallel, "servers at a time")
	flags.StringVar(&o.html, "html", "", "write the plan as a page to this file")
}

// addRun adds what decides how it goes.
func (o *options) addRun(flags *pflag.FlagSet) {
	flags.BoolVarP(&o.yes, "yes", "y", false, "don't ask at a terminal")
	flags.IntVar(&o.maxDrops, "max-drops", 0, "most raw tables to drop of each server, oldest first; 0: no bound")
	flags.DurationVar(&o.batchTime, "batch-time", o.batchTime, "what one batch of deletions should take")
	flags.Float64Var(&o.pause, "pause", 0, "sleep after each batch, as a share of its time: 1 means as long as it took")
	flags.StringVar(&o.metricsFile, "metrics-file", "", "write Prometheus metrics to this file, for node_exporter's textfile collector")
	o.addThrottle(flags)
}

// addThrottle adds what waits for replicas.
func (o *options) addThrottle(flags *pflag.FlagSet) {
	flags.DurationVar(&o.throttleLag, "throttle-lag", 0, "wait while a replica is further behind than this; needs --replica")
	flags.StringSliceVar(&o.replicas, "replica", nil, "host:port of a replica of the message databases' server; may be repeated")
}

// check returns all faults.
func (o *options) check() error {
	var faults []error
	fault := func(format string, args ...any) { faults = append(faults, fmt.Errorf(format, args...)) }
	if o.limits.minKeepDays < 1 {
		fault("--min-keep-days is %d: at least 1, since today's table is being written", o.limits.minKeepDays)
	}
	if o.maxDrops < 0 {
		fault("--max-drops is %d: it must not be negative; 0 means no bound", o.maxDrops)
	}
	if o.parallel < 1 {
		fault("--parallel is %d: at least 1", o.parallel)
	}
	if o.limits.allowEmpty && len(o.servers) == 0 {
		fault("--allow-empty needs --server: it is for servers whose plan was read")
	}
	if !(o.pause >= 0) || math.IsInf(o.pause, 0) {
		fault("--pause is %v: it must be a share of time, such as 0.5; 0 means no pause", o.pause)
	}
	if o.batchTime <= 0 {
		fault("--batch-time is %v: it must be positive", o.batchTime)
	}
	if o.throttleLag < 0 {
		fault("--throttle-lag is %v: it must not be negative", o.throttleLag)
	}
	if (o.throttleLag > 0) != (len(o.replicas) > 0) {
		fault("--throttle-lag and --replica go together: how far behind, and which replica")
	}
	return errors.Join(faults...)
}
