package provisioner

import (
	"context"
	"database/sql"
	"time"

	"github.com/mailretention/mailretention/internal/mysqlerr"
)

// storageMaxAge is how long the list of tablespaces is good for.
const storageMaxAge = time.Minute

// StorageSizes reads the sizes of tables on disk and remembers the server's list of tablespaces for a minute.
// It may be shared by goroutines and by all Provisioners of one server; one of them reads at a time.
//
// The list needs the right PROCESS. Without it, and for what isn't in it, the server's statistics of the database have to do.
type StorageSizes struct {
	db    *sql.DB
	turn  chan struct{} // full while one reads; what follows is that one's
	read  time.Time
	files map[storedTable]int64
}

type storedTable struct{ database, table string }

// NewStorageSizes makes a StorageSizes that reads through db, which leads to the Provisioners' server.
func NewStorageSizes(db *sql.DB) *StorageSizes {
	return &StorageSizes{db: db, turn: make(chan struct{}, 1)}
}

// sizes returns the sizes of these tables. What isn't in it is unknown.
func (s *StorageSizes) sizes(ctx context.Context, database string, tables []string) (map[string]int64, error) {
	if len(tables) == 0 {
		return nil, nil
	}
	select {
	case s.turn <- struct{}{}:
		defer func() { <-s.turn }()
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	if err := s.refresh(ctx); err != nil {
		return nil, err
	}
	sizes := map[string]int64{}
	for _, table := range tables {
		if bytes, ok := s.files[storedTable{database, table}]; ok {
			sizes[table] = bytes
		}
	}
	if len(sizes) == len(tables) {
		return sizes, nil
	}
	return sizes, s.addLengths(ctx, database, tables, sizes)
}

// refresh reads the list of tablespaces if it is too old. A server that has none for us leaves it empty.
func (s *StorageSizes) refresh(ctx context.Context) error {
	if !s.read.IsZero() && time.Since(s.read) < storageMaxAge {
		return nil
	}
	files := map[storedTable]int64{}
	for _, query := range []string{selectMariaDBTablespaces, selectMySQLTablespaces} {
		var name storedTable
		var bytes int64
		err := each(ctx, s.db, query, nil, []any{&name.database, &name.table, &bytes}, func() { files[name] = bytes })
		if err == nil {
			break
		}
		if !mysqlerr.Is(err, mysqlerr.SpecialDenied, mysqlerr.UnknownInformation, mysqlerr.UnknownCharset) {
			return err
		}
	}
	s.files, s.read = files, time.Now()
	return nil
}

// addLengths adds, from the server's statistics, the tables that sizes lacks.
func (s *StorageSizes) addLengths(ctx context.Context, database string, tables []string, sizes map[string]int64) error {
	c, err := s.db.Conn(ctx)
	if err != nil {
		return err
	}
	defer c.Close()
	if _, err := c.ExecContext(ctx, freshTableLengths); err == nil {
		defer discard(c)
	} else if mysqlerr.Number(err) == 0 { // MariaDB doesn't know the variable, and doesn't need it
		return err
	}
	lengths := map[string]int64{}
	var table string
	var bytes int64
	if err := each(ctx, c, selectTableLengths, []any{database}, []any{&table, &bytes}, func() { lengths[table] = bytes }); err != nil {
		return err
	}
	for _, table := range tables {
		if _, known := sizes[table]; known {
			continue
		}
		if bytes, ok := lengths[table]; ok {
			sizes[table] = bytes
		}
	}
	return nil
}
