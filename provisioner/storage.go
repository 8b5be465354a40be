package provisioner

import "database/sql"

// StorageSizes reads the sizes of tables on disk and remembers them for a minute. It may be shared by goroutines and
// by all Provisioners of one server.
type StorageSizes struct {
	db *sql.DB
}

// NewStorageSizes makes a StorageSizes that reads through db, which leads to the Provisioners' server.
func NewStorageSizes(db *sql.DB) *StorageSizes {
	return &StorageSizes{db: db}
}
