package main

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/emersion/go-smtp"
)

const (
	maxAttempts    = 18               // then a message is held
	sendTimeout    = 30 * time.Second // to hand one message to the sink
	deliverTimeout = time.Minute      // for that, and for noting what came of it
)

// letter is what is delivered, and to whom.
type letter struct {
	from, to string
	raw      []byte
}

// entry is a row of the queue.
type entry struct {
	id, message int64
	attempts    int
}

// deliverDue tries each entry that is due, once.
func (m *MTA) deliverDue(ctx context.Context) error {
	for ctx.Err() == nil {
		found, err := m.deliverNext(ctx)
		if err != nil || !found {
			return err
		}
	}
	return ctx.Err()
}

// deliverNext tries one entry that is due and that no other instance is trying, and notes what came of it. All of it is
// one transaction: an instance that crashes gives its entry back at once, without a clock that would have to say so.
// A crash after the sink's answer delivers twice; nothing is ever taken out of the queue that the sink has not.
func (m *MTA) deliverNext(ctx context.Context) (found bool, err error) {
	// At a stop the attempt in hand is finished, else its outcome would be forgotten.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), deliverTimeout)
	defer cancel()
	err = m.inTx(ctx, func(tx *sql.Tx) error {
		var e entry
		err := tx.QueryRowContext(ctx, sqlClaim).Scan(&e.id, &e.message, &e.attempts)
		if errors.Is(err, sql.ErrNoRows) {
			return nil
		}
		if err != nil {
			return err
		}
		found = true
		l, err := m.load(ctx, tx, e.message)
		if err == nil {
			err = m.send(ctx, l)
		}
		return m.note(ctx, tx, e, err)
	})
	return found, err
}

// load puts a message together again.
func (m *MTA) load(ctx context.Context, tx *sql.Tx, message int64) (letter, error) {
	var l letter
	var table string
	var row stored
	if err := tx.QueryRowContext(ctx, sqlMessage, message).Scan(&l.from, &l.to, &table, &row.headers, &row.body); err != nil {
		return letter{}, fmt.Errorf("read message %d: %w", message, err)
	}
	var headers, body []byte
	statement := fmt.Sprintf(sqlRaw, m.store.Ident(table))
	if err := tx.QueryRowContext(ctx, statement, row.headers).Scan(&headers); err != nil {
		return letter{}, fmt.Errorf("read the headers of message %d: %w", message, err)
	}
	if err := tx.QueryRowContext(ctx, statement, row.body).Scan(&body); err != nil {
		return letter{}, fmt.Errorf("read the body of message %d: %w", message, err)
	}
	l.raw = join(headers, body)
	return l, nil
}

// send hands the letter to the sink.
func (m *MTA) send(ctx context.Context, l letter) error {
	ctx, cancel := context.WithTimeout(ctx, sendTimeout)
	defer cancel()
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", m.Sink)
	if err != nil {
		return err
	}
	context.AfterFunc(ctx, func() { conn.Close() }) // whether it is done or takes too long
	client := smtp.NewClient(conn)
	if err := client.Hello(m.Name); err != nil {
		return err
	}
	if err := client.SendMail(l.from, []string{l.to}, bytes.NewReader(l.raw)); err != nil {
		return err
	}
	_ = client.Quit() // the sink has the mail already
	return nil
}

// note writes down how an attempt ended: delivered, to be tried again, or given up. A message that is given up is held,
// and retention leaves it alone until somebody has looked: it is never lost without a trace.
func (m *MTA) note(ctx context.Context, tx *sql.Tx, e entry, failure error) error {
	switch {
	case failure == nil:
		return execAll(ctx, tx, []statement{
			{sqlDelivery, []any{e.message, "Sent", ""}},
			{sqlStatus, []any{"Sent", false, e.message}},
			{sqlDequeue, []any{e.id}},
		})
	case permanent(failure) || e.attempts+1 >= maxAttempts:
		m.Logger.Warn("given up, the message is held", "message", e.message, "err", failure)
		return execAll(ctx, tx, []statement{
			{sqlDelivery, []any{e.message, "Held", fit(failure.Error())}},
			{sqlStatus, []any{"Held", true, e.message}},
			{sqlDequeue, []any{e.id}},
		})
	}
	wait := m.Retry * time.Duration(e.attempts+1)
	m.Logger.Info("not delivered yet", "message", e.message, "again_in", wait, "err", failure)
	return execAll(ctx, tx, []statement{
		{sqlDelivery, []any{e.message, "SoftFail", fit(failure.Error())}},
		{sqlPostpone, []any{wait.Microseconds(), e.id}},
	})
}

func permanent(err error) bool {
	var reply *smtp.SMTPError
	return errors.As(err, &reply) && !reply.Temporary()
}

type statement struct {
	text string
	args []any
}

func execAll(ctx context.Context, tx *sql.Tx, statements []statement) error {
	for _, s := range statements {
		if _, err := tx.ExecContext(ctx, s.text, s.args...); err != nil {
			return err
		}
	}
	return nil
}
