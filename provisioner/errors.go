package provisioner

import "errors"

var (
	// ErrSchemaMismatch says that a table is there, but a column that is used here is missing or of another type family.
	// The usual cause: another program's table under this name. Nothing was changed.
	ErrSchemaMismatch = errors.New("provisioner: schema mismatch")

	// ErrNotProvisioned says that the database, or a table that the schema names, doesn't exist.
	// The remedy: check [Config].Database, or call [Provisioner.Provision].
	ErrNotProvisioned = errors.New("provisioner: not provisioned")
)
