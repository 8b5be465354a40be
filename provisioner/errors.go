package provisioner

import (
	"errors"
	"fmt"

	"github.com/mailretention/mailretention/internal/mysqlerr"
)

var (
	// ErrSchemaMismatch says that a table is there, but a column that is used here is missing or of another type family.
	// The usual cause: another program's table under this name. Nothing was changed.
	ErrSchemaMismatch = errors.New("provisioner: schema mismatch")

	// ErrNotProvisioned says that the database, or a table that the schema names, doesn't exist.
	// The remedy: check [Config].Database, or call [Provisioner.Provision].
	ErrNotProvisioned = errors.New("provisioner: not provisioned")

	// ErrNotBooked says that InsertInto's fn succeeded, but that its bytes were booked is not known: the mail is stored, and must
	// not be stored again. The raw table's size may be too low by these bytes.
	ErrNotBooked = errors.New("provisioner: stored, but not booked")
)

// explain adds to a server's error what it means here.
func explain(err error) error {
	switch {
	case mysqlerr.Is(err, mysqlerr.BadDatabase, mysqlerr.NoSuchTable):
		return fmt.Errorf("%w: %w", ErrNotProvisioned, err)
	case mysqlerr.Is(err, mysqlerr.DatabaseDenied, mysqlerr.TableDenied, mysqlerr.ColumnDenied):
		return fmt.Errorf("%w (the account needs SELECT, INSERT, UPDATE, DELETE, CREATE and DROP on the database)", err)
	}
	return err
}
