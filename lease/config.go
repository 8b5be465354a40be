package lease

import (
	"cmp"
	"crypto/rand"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"time"

	"github.com/mailretention/mailretention/internal/sqlname"
)

// Config says how leases are kept. The zero Config is a good one; see "Clocks" in the package comment before changing times.
type Config struct {
	Table    string        // where leases are kept: "table" in the DSN's database, or "database.table"; "" means "leases"
	Owner    string        // names this worker for people, at most 255 bytes; "" means host, process id and a random part
	TTL      time.Duration // a lease expires this long after its last renewal, at least 1 s; 0 means 60 s
	Interval time.Duration // between two renewals, give or take a tenth; 0 means TTL/4
	Margin   time.Duration // work stops this long before its lease can be stolen; 0 means TTL/4
	Observe  time.Duration // a lease is stolen only after its row stood still this long; less than the row's own TTL counts as that
	MinHold  time.Duration // after work of Do that succeeded nobody acquires the lease until this long after it was acquired; 0: at once
	MaxHold  time.Duration // ends work that takes longer; 0: never
	Logger   *slog.Logger  // nil: discard
	OnEvent  func(Event)   // nil: none; must not block, since renewals wait for it
}

const (
	defaultTTL = 60 * time.Second
	minTTL     = time.Second
	maxTTL     = 365 * 24 * time.Hour // and the longest of the other times: all sums of them fit
	maxBytes   = 255                  // of a name and of an owner

	shareOfTTL      = 4  // the TTL over this is the default of Interval and Margin
	attemptOfTTL    = 6  // the TTL over this bounds one attempt at a statement
	pollOfTTL       = 60 // the TTL over this is the longest pause between two looks at a lease that is waited for
	attemptsInTrust = 2  // a renewal must have time for so many before trust ends
	jitterShare     = 10 // intervals vary by their part over this, so that many workers don't renew in step
)

func (c *Config) setDefaults() {
	c.Table = cmp.Or(c.Table, "leases")
	c.TTL = cmp.Or(c.TTL, defaultTTL).Truncate(time.Microsecond) // the row's precision
	c.Interval = cmp.Or(c.Interval, c.TTL/shareOfTTL)
	c.Margin = cmp.Or(c.Margin, c.TTL/shareOfTTL)
	c.Logger = cmp.Or(c.Logger, slog.New(slog.DiscardHandler))
	if c.Owner == "" {
		host, _ := os.Hostname() // the process id and the random part do without
		c.Owner = fmt.Sprintf("%.200s-%d-%.6s", host, os.Getpid(), strings.ToLower(rand.Text()))
	}
}

// check returns all faults joined.
func (c *Config) check() error {
	var faults []error
	fault := func(format string, args ...any) { faults = append(faults, fmt.Errorf("lease: "+format, args...)) }
	if c.TTL < minTTL || c.TTL > maxTTL {
		fault("TTL is %s: use one from %s to %s", c.TTL, minTTL, maxTTL)
	}
	for _, d := range []struct {
		field string
		value time.Duration
	}{{"Interval", c.Interval}, {"Margin", c.Margin}, {"Observe", c.Observe}, {"MinHold", c.MinHold}, {"MaxHold", c.MaxHold}} {
		if d.value < 0 || d.value > maxTTL {
			fault("%s is %s: use one from 0 to %s", d.field, d.value, maxTTL)
		}
	}
	if need := c.Interval + c.Interval/jitterShare + attemptsInTrust*c.TTL/attemptOfTTL; need > c.TTL-c.Margin {
		fault("Interval %s (and a tenth) with two attempts of %s takes %s, but a lease is trusted for TTL %s - Margin %s only: "+
			"shorten Interval or Margin, or lengthen TTL", c.Interval, c.TTL/attemptOfTTL, need, c.TTL, c.Margin)
	}
	if len(c.Owner) > maxBytes {
		fault("Owner has %d bytes: use at most %d", len(c.Owner), maxBytes)
	}
	database, name := split(c.Table)
	if _, err := sqlname.Qualify(cmp.Or(database, name), name); err != nil { // a DSN's database is checked at first use
		fault("Table %q: %w", c.Table, err)
	}
	return errors.Join(faults...)
}

// split parts a table's name at the last dot: before it is the database, "" if there is none.
func split(name string) (database, table string) {
	dot := strings.LastIndexByte(name, '.')
	return name[:max(dot, 0)], name[dot+1:]
}

// New returns the leases of the table that cfg names. It does no I/O and starts nothing, so a second one with other times
// costs nothing. db should be a pool of its own, see "Connection pools and proxies" in the package comment; it stays the caller's
// to close. The error joins all faults of cfg.
func New(db *sql.DB, cfg Config) (*Leases, error) {
	cfg.setDefaults()
	err := cfg.check()
	if db == nil {
		err = errors.Join(errors.New("lease: db is nil: pass a *sql.DB"), err)
	}
	if err != nil {
		return nil, err
	}
	return &Leases{
		db: db, cfg: cfg, attempt: cfg.TTL / attemptOfTTL, poll: cfg.TTL / pollOfTTL, terms: terms(cfg.Owner, cfg.TTL),
		memory: memory{seen: map[string]sight{}},
	}, nil
}

func checkName(name string) error {
	if name == "" {
		return errors.New("lease: the name is empty: name what must not run twice")
	}
	if len(name) > maxBytes {
		return fmt.Errorf("lease: the name %.20q… has %d bytes: use at most %d", name, len(name), maxBytes)
	}
	return nil
}
