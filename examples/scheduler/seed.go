package main

import (
	"context"
	"database/sql"
	"fmt"
	"strings"
	"time"

	"github.com/mailretention/mailretention/provisioner"
)

const (
	firstDay    = 36 // days back: some of the days are older than the policy keeps
	lastDay     = 25
	mailsPerDay = 20
	mailBytes   = 8 << 10

	sqlCreateDay     = "CREATE TABLE IF NOT EXISTS %s (%s)"
	sqlInsertRaw     = "INSERT INTO %s (data) VALUES (?)"
	sqlInsertMessage = "INSERT INTO %s (scope, status, subject, timestamp, size, raw_table, raw_headers_id) VALUES ('incoming', 'Sent', 'old mail', ?, ?, ?, ?)"
)

// seed makes the message database and some old mail in it, so that retention has something to do.
func seed(ctx context.Context, db *sql.DB, database string) error {
	store, err := provisioner.New(db, provisioner.Config{Database: database})
	if err != nil {
		return err
	}
	if err := store.Provision(ctx); err != nil {
		return err
	}
	for back := firstDay; back >= lastDay; back-- {
		day := time.Now().UTC().AddDate(0, 0, -back)
		table := store.Ident("raw-" + day.Format(time.DateOnly))
		if _, err := db.ExecContext(ctx, fmt.Sprintf(sqlCreateDay, table, provisioner.PostalSchema().RawColumns)); err != nil {
			return err
		}
		if err := store.InsertInto(ctx, day, func(ctx context.Context, name string) (int64, error) {
			return mailsPerDay * mailBytes, insertMails(ctx, db, store, name, day)
		}); err != nil {
			return err
		}
	}
	return nil
}

func insertMails(ctx context.Context, db *sql.DB, store *provisioner.Provisioner, table string, at time.Time) error {
	for range mailsPerDay {
		result, err := db.ExecContext(ctx, fmt.Sprintf(sqlInsertRaw, store.Ident(table)), strings.Repeat("x", mailBytes))
		if err != nil {
			return err
		}
		row, err := result.LastInsertId()
		if err != nil {
			return err
		}
		if _, err := db.ExecContext(ctx, fmt.Sprintf(sqlInsertMessage, store.Ident("messages")), at.Unix(), mailBytes, table, row); err != nil {
			return err
		}
	}
	return nil
}
