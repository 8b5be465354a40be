package provisioner

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/mailretention/mailretention/internal/sqlname"
)

// SizeSource says where the sizes of raw tables come from.
type SizeSource string

// The sources of sizes.
const (
	SizeFromBookkeeping SizeSource = ""        // bytes of mail, as booked by the writers
	SizeFromStorage     SizeSource = "storage" // bytes on disk
)

// What a zero field of [Config] means.
const (
	defaultLockWait  = 5 * time.Second
	defaultBatchTime = 50 * time.Millisecond
)

// Config says which message database a [Provisioner] works on, and how. Only Database is required.
type Config struct {
	// Database is the name of the message database. Required.
	Database string
	// Schema says where things are in it. The zero Schema is [PostalSchema].
	Schema Schema
	// Pending returns the ids of the messages that are still to be sent. Their raw tables and rows stay.
	// Its error protects everything: nothing is dropped or pruned, and the call ends with [retention.ErrRefused].
	// Nil: no message is waiting.
	Pending func(ctx context.Context) ([]int64, error)
	// Guard is called as the last statement of each transaction that deletes, and before each drop: give it Leases.Guard
	// of package lease. Its error rolls the transaction back and is wrapped in [retention.ErrStop]. Nil: no fence.
	Guard func(ctx context.Context, tx *sql.Tx) error
	// SizeFrom says where sizes come from. Zero: [SizeFromBookkeeping].
	SizeFrom SizeSource
	// Storage reads the sizes on disk. Give the same one to all Provisioners of a server, so that the server's list of
	// tablespaces is read once a minute, and not once a database. Nil: one of its own.
	Storage *StorageSizes
	// LockWait is how long whatever defines or drops something waits for others to leave the table.
	// Keep it below the lease's Margin. The servers count whole seconds: it is rounded up. 0 means 5 s.
	LockWait time.Duration
	// BatchTime is what one batch of deletions should take; the number of rows adapts to it, from 100 to 20,000. 0 means 50 ms.
	BatchTime time.Duration
	// Pause is how long to sleep after a batch, as a share of the time that the batch took: 1 means as long as it took. 0: no sleep.
	Pause float64
	// Throttle is waited for before each batch, for example until a replica has caught up. Its error ends the call. Nil: no wait.
	Throttle func(ctx context.Context) error
	// Logger gets what is worth a line but is no error. Nil: nothing is logged.
	Logger *slog.Logger
}

// systemDatabases are the server's own; a message database never has such a name.
func systemDatabases() []string {
	return []string{"information_schema", "mysql", "performance_schema", "sys"}
}

// withDefaults returns c with its zero fields filled in.
func (c Config) withDefaults(db *sql.DB) Config {
	if c.Schema.isZero() {
		c.Schema = PostalSchema()
	}
	if c.Storage == nil && db != nil { // New says that there is none
		c.Storage = NewStorageSizes(db)
	}
	if c.LockWait == 0 {
		c.LockWait = defaultLockWait
	}
	if c.BatchTime == 0 {
		c.BatchTime = defaultBatchTime
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	return c
}

// check returns all faults of c, which has its defaults.
func (c Config) check() error {
	var faults []error
	if err := sqlname.Check(c.Database); err != nil {
		faults = append(faults, fmt.Errorf("provisioner: Config.Database: %w", err))
	}
	if slices.Contains(systemDatabases(), strings.ToLower(c.Database)) {
		faults = append(faults, fmt.Errorf("provisioner: Config.Database: %q is the server's own, name a message database", c.Database))
	}
	if c.SizeFrom != SizeFromBookkeeping && c.SizeFrom != SizeFromStorage {
		faults = append(faults, fmt.Errorf("provisioner: Config.SizeFrom: %q is unknown, use %q or %q", c.SizeFrom, SizeFromBookkeeping, SizeFromStorage))
	}
	if c.LockWait < 0 {
		faults = append(faults, fmt.Errorf("provisioner: Config.LockWait: %v is negative, use 0 for %v", c.LockWait, defaultLockWait))
	}
	if c.BatchTime < 0 {
		faults = append(faults, fmt.Errorf("provisioner: Config.BatchTime: %v is negative, use 0 for %v", c.BatchTime, defaultBatchTime))
	}
	if c.Pause < 0 || math.IsNaN(c.Pause) || math.IsInf(c.Pause, 0) {
		faults = append(faults, fmt.Errorf("provisioner: Config.Pause: %v is not a share of time, use 0 for no pause", c.Pause))
	}
	if c.Storage != nil && c.Storage.db == nil {
		faults = append(faults, errors.New("provisioner: Config.Storage: it has no database handle, make it with NewStorageSizes"))
	}
	if c.Pending != nil && c.Schema.Messages.Name == "" {
		faults = append(faults, errors.New("provisioner: Config.Pending: the schema has no message table for its ids, name Schema.Messages or leave Pending nil"))
	}
	return errors.Join(append(faults, c.Schema.check())...)
}
