package main

import (
	"io"
	"log/slog"
	"time"

	"github.com/emersion/go-smtp"
)

const (
	maxBytes      = 10 << 20        // of one mail
	maxRecipients = 100             // of one mail; RFC 5321, 4.5.3.1.8 asks for no less
	idleTimeout   = 5 * time.Minute // RFC 5321, 4.5.3.2.7
)

// newServer makes an SMTP server with the limits that MTA and sink share.
func newServer(name string, logs slog.Handler, session func(*smtp.Conn) smtp.Session) *smtp.Server {
	s := smtp.NewServer(smtp.BackendFunc(func(c *smtp.Conn) (smtp.Session, error) { return session(c), nil }))
	s.Domain = name
	s.MaxMessageBytes, s.MaxRecipients = maxBytes, maxRecipients
	s.ReadTimeout, s.WriteTimeout = idleTimeout, idleTimeout
	s.ErrorLog = slog.NewLogLogger(logs, slog.LevelWarn)
	return s
}

// newSink makes the server that all mail ends up at. Its replies are what take returns.
func newSink(logs slog.Handler, take func(letter) error) *smtp.Server {
	s := newServer("sink", logs, func(*smtp.Conn) smtp.Session { return &sinkSession{take: take} })
	s.MaxMessageBytes *= 2 // it must not refuse what was accepted once
	return s
}

type sinkSession struct {
	take   func(letter) error
	letter letter
}

func (s *sinkSession) Mail(from string, _ *smtp.MailOptions) error {
	s.letter.from = from
	return nil
}

func (s *sinkSession) Rcpt(to string, _ *smtp.RcptOptions) error {
	s.letter.to = to
	return nil
}

func (s *sinkSession) Data(r io.Reader) (err error) {
	if s.letter.raw, err = io.ReadAll(r); err != nil {
		return err
	}
	return s.take(s.letter)
}

func (s *sinkSession) Reset() { s.letter = letter{} }

func (s *sinkSession) Logout() error { return nil }
