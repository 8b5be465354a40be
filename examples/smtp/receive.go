package main

import (
	"bytes"
	"context"
	"database/sql"
	"fmt"
	"io"
	"mime"
	"net/mail"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/emersion/go-smtp"
)

const (
	maxAddress    = 254         // RFC 5321, 4.5.3.1.3: a path has at most 256 octets, two of which are its brackets
	maxText       = 255         // characters in a column of messages
	acceptTimeout = time.Minute // to store one mail: far below the days that no rule touches, so that its raw table can't go meanwhile
)

// session is one client's connection.
type session struct {
	mta             *MTA
	client, address string // what the client calls itself, and where it is
	from            string
	to              []string
}

// Mail begins a mail.
func (s *session) Mail(from string, _ *smtp.MailOptions) error {
	if s.mta.stopping.Load() {
		return &smtp.SMTPError{Code: 421, EnhancedCode: smtp.EnhancedCode{4, 3, 2}, Message: "Shutting down, try again"}
	}
	s.from = from
	return check(from)
}

// Rcpt takes every recipient: the program listens on loopback only.
func (s *session) Rcpt(to string, _ *smtp.RcptOptions) error {
	if err := check(to); err != nil {
		return err
	}
	s.to = append(s.to, to)
	return nil
}

// Data takes the mail itself. The client reads its result, and may forget the mail once that is nil.
func (s *session) Data(r io.Reader) error {
	raw, err := io.ReadAll(r)
	if err != nil {
		return err // too large, or cut off: not accepted
	}
	// Not a context of the server's: at a stop the mail in hand is finished.
	ctx, cancel := context.WithTimeout(context.Background(), acceptTimeout)
	defer cancel()
	at := s.mta.Now().UTC()
	trace := fmt.Sprintf("Received: from %s (%s) by %s with ESMTP; %s\r\n", s.client, s.address, s.mta.Name, at.Format(time.RFC1123Z))
	if err := s.mta.accept(ctx, at, s.from, s.to, append([]byte(trace), raw...)); err != nil {
		s.mta.Logger.Error("mail was not accepted", "from", s.from, "err", err)
		return &smtp.SMTPError{Code: 451, EnhancedCode: smtp.EnhancedCode{4, 3, 0}, Message: "Can't store it now, try again"}
	}
	return nil
}

// Reset forgets the mail that was begun.
func (s *session) Reset() { s.from, s.to = "", nil }

// Logout ends the session.
func (s *session) Logout() error { return nil }

// check refuses an address that the columns of messages can't hold.
func check(a string) error {
	if len(a) > maxAddress || !utf8.ValidString(a) {
		return &smtp.SMTPError{Code: 553, EnhancedCode: smtp.EnhancedCode{5, 1, 3}, Message: "No valid address"}
	}
	return nil
}

// stored are the raw rows of one recipient's mail.
type stored struct{ headers, body int64 }

// accept stores mail and queues it for each recipient: all of it when it returns nil, else nothing that counts.
//
// The raw rows come first. A crash after them leaves bytes that nothing points at and that go with their day; the client
// has no answer then, still has the mail and sends it again. The rows in messages and queue are one transaction, so
// there is no message that isn't queued, and retention never sees the one without the other. A crash between its
// commit and the answer makes the client send twice, and nobody lose.
func (m *MTA) accept(ctx context.Context, at time.Time, from string, to []string, raw []byte) error {
	var table string
	var rows []stored
	err := m.store.InsertInto(ctx, at, func(ctx context.Context, day string) (int64, error) {
		table, rows = day, nil // it is called again where the day's table is missing
		return int64(len(raw) * len(to)), m.inTx(ctx, func(tx *sql.Tx) error {
			for range to {
				row, err := m.insertRaw(ctx, tx, day, raw)
				if err != nil {
					return err
				}
				rows = append(rows, row)
			}
			return nil
		})
	})
	if err != nil {
		return err
	}
	err = m.inTx(ctx, func(tx *sql.Tx) error {
		subject, id := titles(raw)
		for i, row := range rows {
			message, err := insert(ctx, tx, sqlInsertMessage, to[i], from, subject, id, unixSeconds(at), table, row.headers, row.body, len(raw))
			if err != nil {
				return err
			}
			if _, err := insert(ctx, tx, sqlEnqueue, message); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	select {
	case m.queued <- struct{}{}:
	default: // it has been told already
	}
	return nil
}

// insertRaw stores the mail as two rows, split at its first empty line.
func (m *MTA) insertRaw(ctx context.Context, tx *sql.Tx, table string, raw []byte) (row stored, err error) {
	headers, body := split(raw)
	statement := fmt.Sprintf(sqlInsertRaw, m.store.Ident(table))
	if row.headers, err = insert(ctx, tx, statement, headers); err != nil {
		return row, err
	}
	row.body, err = insert(ctx, tx, statement, body)
	return row, err
}

// emptyLine ends the headers. It belongs to neither row.
const emptyLine = "\r\n\r\n"

// split returns the headers and the body of a mail, nil if it has no empty line: then it has no body.
func split(raw []byte) (headers, body []byte) {
	headers, body, found := bytes.Cut(raw, []byte(emptyLine))
	if !found {
		return raw, nil
	}
	return headers, body
}

// join undoes split.
func join(headers, body []byte) []byte {
	if body == nil {
		return headers
	}
	return bytes.Join([][]byte{headers, body}, []byte(emptyLine))
}

// titles returns the subject and the id as their columns can hold them, whatever the mail looks like.
func titles(raw []byte) (subject, id string) {
	message, err := mail.ReadMessage(bytes.NewReader(raw))
	if err != nil {
		return "", ""
	}
	subject, err = new(mime.WordDecoder).DecodeHeader(message.Header.Get("Subject"))
	if err != nil {
		subject = message.Header.Get("Subject")
	}
	return fit(subject), fit(message.Header.Get("Message-Id"))
}

func fit(text string) string {
	runes := []rune(strings.ToValidUTF8(text, "\uFFFD"))
	return string(runes[:min(len(runes), maxText)])
}

func unixSeconds(t time.Time) string {
	return fmt.Sprintf("%d.%06d", t.Unix(), t.Nanosecond()/int(time.Microsecond))
}

func insert(ctx context.Context, tx *sql.Tx, statement string, args ...any) (id int64, err error) {
	result, err := tx.ExecContext(ctx, statement, args...)
	if err != nil {
		return 0, err
	}
	return result.LastInsertId()
}
