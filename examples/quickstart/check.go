package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/mail"
	"slices"
	"strconv"
)

// check asks the database itself, by plain SQL, and returns how many checks passed.
func (s *mailServer) check(ctx context.Context, show *screen) (int, error) {
	checks := []struct {
		words string
		holds func(context.Context) error
	}{
		{"today's table is there", s.todayIsThere},
		{"no message points at a missing table", s.noDanglingPointers},
		{"the queued message still has its mail", s.queuedMailIsThere},
		{"the books agree with the tables", s.booksAgree},
		{"the raw tables left are those of the policy", s.onlyPolicyTables},
		{"the message rows left are those of the policy", s.onlyPolicyMessages},
	}
	var failed error
	for _, c := range checks {
		err := c.holds(ctx)
		if err != nil {
			failed = errors.Join(failed, fmt.Errorf("%s: %w", c.words, err))
			show.linef("  %s %s: %v", show.paint(red, "no "), c.words, err)
			continue
		}
		show.linef("  %s %s", show.paint(green, "yes"), c.words)
	}
	return len(checks), failed
}

func (s *mailServer) tables(ctx context.Context) ([]string, error) {
	return column[string](ctx, s.db, sqlTables)
}

func (s *mailServer) todayIsThere(ctx context.Context) error {
	tables, err := s.tables(ctx)
	if err == nil && !slices.Contains(tables, tableOf(s.midnight(0))) {
		err = errors.New("it is gone")
	}
	return err
}

func (s *mailServer) noDanglingPointers(ctx context.Context) error {
	tables, err := s.tables(ctx)
	if err != nil {
		return err
	}
	referenced, err := column[string](ctx, s.db, sqlReferenced)
	for _, name := range referenced {
		if !slices.Contains(tables, name) {
			err = errors.Join(err, fmt.Errorf("messages point at %s", name))
		}
	}
	return err
}

// queuedMailIsThere puts the mail together again and reads it.
func (s *mailServer) queuedMailIsThere(ctx context.Context) error {
	var table string
	var headersID, bodyID int64
	if err := s.db.QueryRowContext(ctx, sqlQueuedMail, s.queued).Scan(&table, &headersID, &bodyID); err != nil {
		return err
	}
	var headers, body []byte
	query := fmt.Sprintf(sqlRawData, s.store.Ident(table))
	if err := s.db.QueryRowContext(ctx, query, headersID).Scan(&headers); err != nil {
		return err
	}
	if err := s.db.QueryRowContext(ctx, query, bodyID).Scan(&body); err != nil {
		return err
	}
	_, err := mail.ReadMessage(bytes.NewReader(slices.Concat(headers, []byte("\r\n\r\n"), body)))
	return err
}

// booksAgree wants one row for each table, and in it the bytes of its messages. Where a message rule has deleted rows
// of a table that stays, as beside the queued message, the messages no longer tell its size.
func (s *mailServer) booksAgree(ctx context.Context) error {
	tables, err := s.tables(ctx)
	if err != nil {
		return err
	}
	rows, err := s.db.QueryContext(ctx, sqlBooks)
	if err != nil {
		return err
	}
	defer rows.Close()
	booked := map[string]int64{}
	for rows.Next() {
		var table string
		var count, size int64
		if err := rows.Scan(&table, &count, &size); err != nil {
			return err
		}
		if count != 1 || !slices.Contains(tables, table) {
			return fmt.Errorf("%d rows for %s", count, table)
		}
		booked[table] = size
	}
	for _, table := range tables {
		if table != badName {
			err = errors.Join(err, s.sizeAgrees(ctx, table, booked))
		}
	}
	return errors.Join(err, rows.Err())
}

func (s *mailServer) sizeAgrees(ctx context.Context, table string, booked map[string]int64) error {
	size, ok := booked[table]
	if !ok {
		return fmt.Errorf("no row for %s", table)
	}
	if table < tableOf(s.midnight(messageDays)) {
		return nil
	}
	var sum string // size is text in this schema, so its sum is a floating-point number
	if err := s.db.QueryRowContext(ctx, sqlMessageBytes, table).Scan(&sum); err != nil {
		return err
	}
	bytes, err := strconv.ParseFloat(sum, 64)
	if err == nil && int64(bytes) != size {
		err = fmt.Errorf("%d bytes are booked for %s, its messages have %.0f", size, table, bytes)
	}
	return err
}

func (s *mailServer) onlyPolicyTables(ctx context.Context) error {
	want := []string{badName, tableOf(s.midnight(queuedDay))}
	for back := rawDays; back >= 0; back-- {
		want = append(want, tableOf(s.midnight(back)))
	}
	slices.Sort(want)
	tables, err := s.tables(ctx)
	if err == nil && !slices.Equal(tables, want) {
		err = fmt.Errorf("they are %v, expected %v", tables, want)
	}
	return err
}

func (s *mailServer) onlyPolicyMessages(ctx context.Context) error {
	var old, childless int
	if err := s.db.QueryRowContext(ctx, sqlTooOld, s.midnight(messageDays).Unix()).Scan(&old); err != nil {
		return err
	}
	if err := s.db.QueryRowContext(ctx, sqlLostChildren).Scan(&childless); err != nil {
		return err
	}
	if old != 1 || childless != 0 {
		return fmt.Errorf("%d rows are older than the limit (the queued one is), %d deliveries have no message", old, childless)
	}
	return nil
}
