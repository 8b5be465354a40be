package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/mailretention/mailretention/provisioner"
)

const (
	days        = 45
	queuedDay   = 42 // days back: a message of this day is still to be sent
	booklessDay = 10 // days back: this day's table has lost its bookkeeping row
	orphanDay   = 60 // days back: this day has a bookkeeping row and no table
	orphanSize  = 5_000_000_000
	badName     = "raw-2024-13-45"
)

// mailServer is one mail server of the installation: its message database, and the queue that protects mail in it.
type mailServer struct {
	db     *sql.DB
	store  *provisioner.Provisioner
	now    time.Time // of the database server
	queued int64     // id of the message that is still to be sent
}

// claim makes the database ours, or refuses one that somebody else has made.
func claim(ctx context.Context, db *sql.DB) error {
	var exists, marked int
	err := db.QueryRowContext(ctx, sqlClaimed, database, database).Scan(&exists, &marked)
	if err != nil {
		return err
	}
	if exists == 1 && marked == 0 {
		return fmt.Errorf("the database %s is there but was not made by this program: it stays untouched; rename it, or use another server", database)
	}
	if exists == 1 {
		if err := drop(ctx, db); err != nil {
			return err
		}
	}
	for _, statement := range []string{sqlCreateDatabase, sqlCreateMarker} {
		if _, err := db.ExecContext(ctx, statement); err != nil {
			return err
		}
	}
	return nil
}

func drop(ctx context.Context, db *sql.DB) error {
	store, err := provisioner.New(db, provisioner.Config{Database: database})
	if err != nil {
		return err
	}
	return store.DropDatabase(ctx, database)
}

// seed fills the database with mail and plants the faults.
func seed(ctx context.Context, db *sql.DB, show *screen) (*mailServer, error) {
	if _, err := db.ExecContext(ctx, sqlCreateQueue); err != nil {
		return nil, err
	}
	store, err := provisioner.New(db, provisioner.Config{Database: database, Pending: pending(db)})
	if err != nil {
		return nil, err
	}
	if err := store.Provision(ctx); err != nil {
		return nil, err
	}
	s := &mailServer{db: db, store: store}
	if s.now, err = serverTime(ctx, db); err != nil {
		return nil, err
	}
	mails, err := letters()
	if err != nil {
		return nil, err
	}
	for back := days - 1; back >= 0; back-- {
		show.livef("filling %d of %d days", days-back, days)
		if err := s.fillDay(ctx, back, volume(back), mails); err != nil {
			return nil, err
		}
	}
	return s, s.plant(ctx, show)
}

// volume is a week of ordinary mail with quiet weekends and one busy day.
func volume(back int) int {
	switch {
	case back == 17:
		return 160
	case back%7 == 2 || back%7 == 3:
		return 12
	}
	return 40 + back%5*8
}

// fillDay stores n mails spread over the day as the mail server did then. Days of the past need their table made by hand:
// the library makes tables of yesterday, today and tomorrow only.
func (s *mailServer) fillDay(ctx context.Context, back, n int, mails []letter) error {
	day := s.midnight(back)
	span := 24 * time.Hour
	if back == 0 {
		span = s.now.Sub(day)
	}
	create := fmt.Sprintf(sqlCreateDay, s.store.Ident(tableOf(day)), provisioner.PostalSchema().RawColumns)
	if _, err := s.db.ExecContext(ctx, create); err != nil {
		return err
	}
	return s.store.InsertInto(ctx, day, func(ctx context.Context, table string) (int64, error) {
		tx, err := s.db.BeginTx(ctx, nil)
		if err != nil {
			return 0, err
		}
		var booked int64
		for i := range n {
			l := mails[i%len(mails)]
			if err := s.storeLetter(ctx, tx, table, l, day.Add(span*time.Duration(i)/time.Duration(n))); err != nil {
				return 0, errors.Join(err, tx.Rollback())
			}
			booked += l.size
		}
		return booked, tx.Commit()
	})
}

// storeLetter inserts the raw rows first and the messages row after them, as mail servers do.
func (s *mailServer) storeLetter(ctx context.Context, tx *sql.Tx, table string, l letter, at time.Time) error {
	insertRaw := fmt.Sprintf(sqlInsertRaw, s.store.Ident(table))
	headers, err := insert(ctx, tx, insertRaw, l.headers)
	if err != nil {
		return err
	}
	body, err := insert(ctx, tx, insertRaw, l.body)
	if err != nil {
		return err
	}
	timestamp := fmt.Sprintf("%d.%06d", at.Unix(), at.Nanosecond()/1000)
	id, err := insert(ctx, tx, sqlInsertMessage, l.to, l.from, l.subject, l.id, timestamp, l.bounce, table, headers, body, l.size)
	if err != nil {
		return err
	}
	_, err = insert(ctx, tx, sqlInsertDelivery, id, timestamp)
	return err
}

func insert(ctx context.Context, tx *sql.Tx, statement string, args ...any) (int64, error) {
	result, err := tx.ExecContext(ctx, statement, args...)
	if err != nil {
		return 0, err
	}
	return result.LastInsertId()
}

// plant makes the faults of the story.
func (s *mailServer) plant(ctx context.Context, show *screen) error {
	orphan, bookless, waiting := tableOf(s.midnight(orphanDay)), tableOf(s.midnight(booklessDay)), tableOf(s.midnight(queuedDay))
	if err := s.db.QueryRowContext(ctx, sqlMessageOfDay, waiting).Scan(&s.queued); err != nil {
		return err
	}
	for _, fault := range []struct {
		statement string
		args      []any
		words     string
	}{
		{sqlPlantOrphan, []any{orphan, int64(orphanSize)}, "a bookkeeping row of 5 GB for " + orphan + ", a table that is long gone"},
		{sqlForgetBooking, []any{bookless}, "no bookkeeping row for " + bookless},
		{fmt.Sprintf(sqlCreateDay, s.store.Ident(badName), provisioner.PostalSchema().RawColumns), nil, "a table " + badName + ", which is no day's"},
		{sqlQueue, []any{s.queued}, fmt.Sprintf("message %d of %s is still in the queue", s.queued, waiting)},
	} {
		if _, err := s.db.ExecContext(ctx, fault.statement, fault.args...); err != nil {
			return err
		}
		show.linef("  planted: %s", fault.words)
	}
	return nil
}

// pending reads the ids that the queue still needs; where it can't be read, the library deletes nothing.
func pending(db *sql.DB) func(context.Context) ([]int64, error) {
	return func(ctx context.Context) ([]int64, error) {
		return column[int64](ctx, db, sqlPending)
	}
}

// column reads a result of one column.
func column[T any](ctx context.Context, db *sql.DB, query string, args ...any) ([]T, error) {
	rows, err := db.QueryContext(ctx, query, args...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var all []T
	for rows.Next() {
		var v T
		if err := rows.Scan(&v); err != nil {
			return nil, err
		}
		all = append(all, v)
	}
	return all, rows.Err()
}

func serverTime(ctx context.Context, db *sql.DB) (time.Time, error) {
	var seconds int64
	err := db.QueryRowContext(ctx, sqlServerTime).Scan(&seconds)
	return time.Unix(seconds, 0).UTC(), err
}

// midnight begins the UTC day that lies so many days back.
func (s *mailServer) midnight(back int) time.Time {
	return s.now.Truncate(24*time.Hour).AddDate(0, 0, -back)
}

func tableOf(day time.Time) string {
	return "raw-" + day.Format(time.DateOnly)
}
