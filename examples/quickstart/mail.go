package main

import (
	"bytes"
	"embed"
	"fmt"
	"io/fs"
	"mime"
	"net/mail"
)

//go:embed testdata/*.eml
var samples embed.FS

// letter is one mail as a mail server stores it.
type letter struct {
	headers, body         []byte
	size                  int64 // of the whole raw mail, in bytes
	from, to, subject, id string
	bounce                bool
}

func letters() ([]letter, error) {
	names, err := fs.Glob(samples, "testdata/*.eml")
	if err != nil {
		return nil, err
	}
	var all []letter
	for _, name := range names {
		raw, err := samples.ReadFile(name)
		if err != nil {
			return nil, err
		}
		l, err := parse(raw)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		all = append(all, l)
	}
	return all, nil
}

// parse splits raw mail at its first empty line, as it is stored, and reads the columns of the messages table.
func parse(raw []byte) (letter, error) {
	message, err := mail.ReadMessage(bytes.NewReader(raw))
	if err != nil {
		return letter{}, err
	}
	from, err := message.Header.AddressList("From")
	if err != nil {
		return letter{}, err
	}
	to, err := message.Header.AddressList("To")
	if err != nil {
		return letter{}, err
	}
	subject, err := new(mime.WordDecoder).DecodeHeader(message.Header.Get("Subject"))
	if err != nil {
		return letter{}, err
	}
	headers, body, _ := bytes.Cut(raw, []byte("\r\n\r\n"))
	return letter{
		headers: headers, body: body, size: int64(len(raw)),
		from: from[0].Address, to: to[0].Address, subject: subject,
		id:     message.Header.Get("Message-ID"),
		bounce: message.Header.Get("Return-Path") == "<>",
	}, nil
}
