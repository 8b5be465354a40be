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
	ctx, cancel := context.WithTimeout(ctx, attempts*l.attempt)
	defer cancel()
	return l.retry(ctx, func() error {
		return l.with(ctx, func(q querier, t table) error {
			_, denied := q.ExecContext(ctx, t.create())
			if denied != nil && mysqlerr.Classify(denied) != mysqlerr.Final {
				return denied
			}
			err := checkShape(ctx, q, t)
			if denied != nil && err != nil && !errors.Is(err, ErrSchemaMismatch) {
				return denied
			}
			return err
		})
	})
}

// checkShape compares the table's columns and engine with those that create makes.
func checkShape(ctx context.Context, q querier, t table) error {
	types, err := describe(ctx, q, t)
	if err != nil {
		return err
	}
	var differences []string
	for _, definition := range strings.Split(strings.Trim(columns[:strings.LastIndexByte(columns, ')')], "("), ",") {
		name, want, _ := strings.Cut(definition, " ")
		if have := types[name]; have != want {
			differences = append(differences, fmt.Sprintf("column %s is %q instead of %q", name, have, want))
		}
	}
	var name, create string
	if err := queryRow(ctx, q, t.showCreate(), &name, &create); err != nil {
		return err
	}
	if !strings.Contains(create, "ENGINE=InnoDB") {
		differences = append(differences, "its engine is not InnoDB, so no transaction could be fenced")
	}
	if len(differences) > 0 {
		return fmt.Errorf("%w: %s: %s: rename it, or choose another Table", ErrSchemaMismatch, t, strings.Join(differences, "; "))
	}
	return nil
}

// describe returns the definition of each column, as create writes it.
func describe(ctx context.Context, q querier, t table) (map[string]string, error) {
	rows, err := q.QueryContext(ctx, t.describe())
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	width := regexp.MustCompile(`int\(\d+\)`) // MariaDB shows a display width, MySQL 9 doesn't
	types := map[string]string{}
	for rows.Next() {
		var field, kind, null, key, extra string
		var value sql.NullString
		if err := rows.Scan(&field, &kind, &null, &key, &value, &extra); err != nil {
			return nil, err
		}
		kind = width.ReplaceAllString(kind, "int") + map[string]string{"NO": " NOT NULL", "YES": " NULL"}[null]
		if key == "PRI" {
			kind += " PRIMARY KEY"
		}
		types[strings.ToLower(field)] = kind
	}
	return types, rows.Err()
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
