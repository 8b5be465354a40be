package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"sync"
	"time"

	"github.com/mailretention/mailretention/retention"
)

const (
	lagMaxAge   = time.Second // a reading counts this long, so that it isn't taken for each batch
	lagTimeout  = 10 * time.Second
	lagLogEvery = 30 * time.Second // while waiting
)

// throttle holds up deletions while a replica is too far behind. All runs share it.
type throttle struct {
	most     time.Duration
	replicas []replica
	logger   *slog.Logger

	mu   sync.Mutex
	last reading
}

type replica struct {
	address string
	db      *sql.DB
}

// reading is the replica that was furthest behind.
type reading struct {
	at      time.Time
	address string
	lag     time.Duration
	err     error
}

var errNotReplicating = errors.New("it doesn't replicate: start its replication, or run without --throttle-lag")

// wait returns once no replica is further behind than it may be. A replica that can't say how far ends the run.
func (t *throttle) wait(ctx context.Context) error {
	var logged time.Time
	for {
		behind := t.read(ctx)
		if behind.err != nil {
			return fmt.Errorf("%w: replica %s: %w", retention.ErrStop, behind.address, behind.err)
		}
		if behind.lag <= t.most {
			return nil
		}
		if time.Since(logged) >= lagLogEvery {
			t.logger.Warn("waiting for a replica", "replica", behind.address, "behind", behind.lag, "at_most", t.most)
			logged = time.Now()
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(lagMaxAge):
		}
	}
}

func (t *throttle) read(ctx context.Context) reading {
	t.mu.Lock()
	defer t.mu.Unlock()
	if time.Since(t.last.at) < lagMaxAge {
		return t.last
	}
	ctx, cancel := context.WithTimeout(ctx, lagTimeout)
	defer cancel()
	var furthest reading
	for _, r := range t.replicas {
		lag, err := replicaLag(ctx, r.db)
		if err != nil {
			return reading{address: r.address, err: err} // read again the next time
		}
		if lag >= furthest.lag {
			furthest = reading{address: r.address, lag: lag}
		}
	}
	furthest.at = time.Now()
	t.last = furthest
	return furthest
}

// replicaLag reads how far a replica is behind.
func replicaLag(ctx context.Context, db *sql.DB) (time.Duration, error) {
	rows, err := db.QueryContext(ctx, showReplica)
	if err != nil {
		return 0, err
	}
	defer rows.Close()
	columns, err := rows.Columns()
	if err != nil {
		return 0, err
	}
	if !rows.Next() {
		return 0, errors.Join(rows.Err(), errNotReplicating)
	}
	values := make([]sql.NullString, len(columns))
	targets := make([]any, len(columns))
	for i := range values {
		targets[i] = &values[i]
	}
	if err := rows.Scan(targets...); err != nil {
		return 0, err
	}
	for i, name := range columns {
		if name == "Seconds_Behind_Source" || name == "Seconds_Behind_Master" { // MySQL's and MariaDB's
			seconds, err := strconv.Atoi(values[i].String)
			if err != nil {
				return 0, errNotReplicating // NULL
			}
			return time.Duration(seconds) * time.Second, nil
		}
	}
	return 0, errNotReplicating
}
