package lease

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/mailretention/mailretention/internal/mysqlerr"
)

// Provision creates the lease table where it is missing, and looks at its columns. Any number of workers may call it, at once too. A table
// of another shape is [ErrSchemaMismatch] with the differences; more columns are fine if they have defaults. An account
// without the right to create tables is enough where the table exists.
func (l *Leases) Provision(ctx context.Context) error {
	return l.persist(ctx, func(ctx context.Context) error {
		ctx, cancel := context.WithTimeout(ctx, l.attempt)
		defer cancel()
		return l.with(ctx, func(q querier, s *session) error {
			_, denied := q.ExecContext(ctx, s.table.create())
			if denied != nil && mysqlerr.Classify(denied) != mysqlerr.Final {
				return denied
			}
			err := checkShape(ctx, q, s)
			if denied != nil && err != nil && !errors.Is(err, ErrSchemaMismatch) {
				return denied
			}
			return err
		})
	})
}

// checkShape compares the table's columns and engine with those that create makes.
func checkShape(ctx context.Context, q querier, s *session) error {
	types, err := describe(ctx, q, s.table)
	if err != nil {
		return err
	}
	var differences []string
	for _, definition := range strings.Split(strings.Trim(columns[:strings.LastIndexByte(columns, ')')], "("), ",") {
		name, want, _ := strings.Cut(definition, " ")
		if have := types[name]; have.definition != want {
			differences = append(differences, fmt.Sprintf("column %s is %q instead of %q", name, have.definition, want))
		}
		delete(types, name)
	}
	for name, more := range types {
		if more.required || strings.HasSuffix(more.definition, primary) {
			differences = append(differences, fmt.Sprintf("column %s is %q: leases have no value for it", name, more.definition))
		}
	}
	var kind string
	if err := queryRow(ctx, q, engine(s.database, s.name), &kind); err != nil {
		return err
	}
	if !strings.EqualFold(kind, "InnoDB") {
		differences = append(differences, "its engine is "+kind+" instead of InnoDB, so no transaction could be fenced")
	}
	if len(differences) > 0 {
		return fmt.Errorf("%w: %s: %s: rename it, or choose another Table", ErrSchemaMismatch, s.table, strings.Join(differences, "; "))
	}
	return nil
}

// column is a column as create would define it. Required: it has no default.
type column struct {
	definition string
	required   bool
}

const primary = " PRIMARY KEY"

func describe(ctx context.Context, q querier, t table) (map[string]column, error) {
	rows, err := q.QueryContext(ctx, t.describe())
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	width := regexp.MustCompile(`int\(\d+\)`) // MariaDB shows a display width, MySQL 9 doesn't
	found := map[string]column{}
	for rows.Next() {
		var field, kind, null, key, extra string
		var value sql.NullString
		if err := rows.Scan(&field, &kind, &null, &key, &value, &extra); err != nil {
			return nil, err
		}
		c := column{definition: width.ReplaceAllString(kind, "int") + " NULL"}
		if null == "NO" {
			c = column{definition: strings.TrimSuffix(c.definition, "NULL") + "NOT NULL", required: !value.Valid && extra == ""}
		}
		if key == "PRI" {
			c.definition += primary
		}
		found[strings.ToLower(field)] = c
	}
	return found, rows.Err()
}

func queryRow(ctx context.Context, q querier, query string, into ...any) error {
	rows, err := q.QueryContext(ctx, query)
	if err != nil {
		return err
	}
	defer rows.Close()
	if !rows.Next() {
		return errors.Join(rows.Err(), sql.ErrNoRows)
	}
	return rows.Scan(into...)
}
