package main

import (
	"database/sql"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
	"time"

	"github.com/go-sql-driver/mysql"
)

const (
	dialTimeout = 10 * time.Second // how long a database server may take to answer a new connection
	maxLifetime = 3 * time.Minute  // of a connection: shorter than what servers and proxies between usually allow
)

// endpoint is a database server and the account there.
type endpoint struct {
	host     string // or the path of a Unix socket
	port     uint16
	username string
	password func() string // a function, so that whatever prints or logs an endpoint doesn't show it
	encoding string
}

// newEndpoint takes the values of the settings that begin with prefix.
func newEndpoint(values map[string]string, prefix string) (endpoint, error) {
	e := endpoint{
		host:     values[prefix+"HOST"],
		username: values[prefix+"USERNAME"],
		password: func() string { return values[prefix+"PASSWORD"] },
		encoding: values[prefix+"ENCODING"],
	}
	var err, errHost, errEncoding error
	e.port, err = port(prefix+"PORT", values[prefix+"PORT"])
	if e.host == "" {
		errHost = fmt.Errorf("%sHOST: empty, name the database server", prefix)
	}
	if strings.ContainsFunc(e.encoding, func(r rune) bool { return !strings.ContainsRune("abcdefghijklmnopqrstuvwxyz0123456789_", r) }) {
		errEncoding = fmt.Errorf("%sENCODING: %q is not a character set, use utf8mb4", prefix, e.encoding)
	}
	return e, errors.Join(errHost, err, errEncoding)
}

func (e endpoint) isSocket() bool { return strings.HasPrefix(e.host, "/") }

// at is the same account on another server, host:port or the path of a Unix socket.
func (e endpoint) at(address string) (endpoint, error) {
	if strings.HasPrefix(address, "/") {
		e.host = address
		return e, nil
	}
	host, number, err := net.SplitHostPort(address)
	if err != nil {
		return e, fmt.Errorf("%q: give host:port", address)
	}
	e.host = host
	e.port, err = port(address, number)
	return e, err
}

// address is for people and for the driver.
func (e endpoint) address() string {
	if e.isSocket() {
		return e.host
	}
	return net.JoinHostPort(e.host, strconv.Itoa(int(e.port)))
}

// open returns a pool on a database of the server, "" for none, without connecting.
func (e endpoint) open(database string) (*sql.DB, error) {
	config := mysql.NewConfig()
	config.Net, config.Addr, config.DBName = "tcp", e.address(), database
	if e.isSocket() {
		config.Net = "unix"
	}
	config.User, config.Passwd = e.username, e.password()
	config.Timeout = dialTimeout
	// Filled in by the driver a placeholder costs no round trip. In other encodings an escape may be half a character.
	config.InterpolateParams = e.encoding == "" || strings.HasPrefix(e.encoding, "utf8")
	config.Logger = &mysql.NopLogger{} // what it would say comes back as an error too
	if e.encoding != "" {
		if err := config.Apply(mysql.Charset(e.encoding, "")); err != nil {
			return nil, err
		}
	}
	connector, err := mysql.NewConnector(config)
	if err != nil {
		return nil, err
	}
	db := sql.OpenDB(connector)
	db.SetConnMaxLifetime(maxLifetime)
	return db, nil
}
