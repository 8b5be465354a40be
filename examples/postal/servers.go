package main

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/mailretention/mailretention/retention"
)

// megabyte is Postal's unit of raw_message_retention_size.
const megabyte = 1 << 20

// server is a mail server of Postal's, a row of its table servers. A nil limit keeps for ever.
type server struct {
	ID           int64  `json:"id"`
	Organization string `json:"organization"` // permalink
	Permalink    string `json:"permalink"`    // unique within the organization
	Database     string `json:"database"`
	RawDays      *int   `json:"raw_message_retention_days"`
	RawMegabytes *int   `json:"raw_message_retention_size"`
	MessageDays  *int   `json:"message_retention_days"`
	deleted      bool   // its database is about to be destroyed
}

func (s server) String() string { return fmt.Sprintf("%s (ID %d)", s.path(), s.ID) }

// path is what Postal calls the full permalink.
func (s server) path() string { return s.Organization + "/" + s.Permalink }

// limits are the flags that change what Postal's limits mean.
type limits struct {
	minKeepDays int
	allowEmpty  bool
	postalCut   bool
}

// policy turns Postal's limits into a policy. 0 leaves only the protected days.
func (l limits) policy(s server) retention.Policy {
	p := retention.Policy{RawDays: s.RawDays, MessageDays: s.MessageDays, MinKeepDays: l.minKeepDays, AllowEmpty: l.allowEmpty}
	if s.RawMegabytes != nil {
		p.RawBytes = new(int64(*s.RawMegabytes) * megabyte)
	}
	if l.postalCut && s.MessageDays != nil && *s.MessageDays > 0 {
		p.MessageDays = new(*s.MessageDays - 1) // Postal's own task deletes the day N days ago too
	}
	return p
}

// readServers reads all of Postal's servers, in order of their ids.
func readServers(ctx context.Context, db *sql.DB, prefix string) ([]server, error) {
	servers, err := query(ctx, db, func(rows *sql.Rows) (s server, err error) {
		err = rows.Scan(&s.ID, &s.Organization, &s.Permalink, &s.RawDays, &s.RawMegabytes, &s.MessageDays, &s.deleted)
		s.Database = fmt.Sprintf("%s-server-%d", prefix, s.ID)
		return s, err
	}, selectServers)
	if err != nil {
		return nil, fmt.Errorf("read Postal's servers: %w", err)
	}
	return servers, nil
}

// pending returns the ids of the server's messages that are still to be sent.
func pending(ctx context.Context, db *sql.DB, serverID int64) ([]int64, error) {
	ids, err := query(ctx, db, func(rows *sql.Rows) (id int64, err error) {
		err = rows.Scan(&id)
		return id, err
	}, selectPending, serverID)
	if err != nil {
		return nil, fmt.Errorf("read Postal's queue: %w", err)
	}
	return ids, nil
}

// choose returns the servers that the names ask for, each an id, a permalink or organization/permalink; without names
// all that are not deleted.
func choose(servers []server, names []string) ([]server, error) {
	if len(names) == 0 {
		return slices.DeleteFunc(slices.Clone(servers), func(s server) bool { return s.deleted }), nil
	}
	var chosen []server
	for _, name := range names {
		s, err := find(servers, name)
		if err != nil {
			return nil, err
		}
		if !slices.ContainsFunc(chosen, func(c server) bool { return c.ID == s.ID }) {
			chosen = append(chosen, s)
		}
	}
	return chosen, nil
}

func find(servers []server, name string) (server, error) {
	var matches []server
	for _, s := range servers {
		if name == strconv.FormatInt(s.ID, 10) || name == s.Permalink || name == s.path() {
			matches = append(matches, s)
		}
	}
	switch {
	case len(matches) == 0:
		return server{}, fmt.Errorf("no server %q; there are %s", name, list(servers))
	case len(matches) > 1:
		return server{}, fmt.Errorf("%q could be %s: give one as organization/permalink", name, list(matches))
	case matches[0].deleted:
		return server{}, fmt.Errorf("server %s is deleted: Postal is about to destroy its database", matches[0])
	}
	return matches[0], nil
}

// list names servers for a message, not too many.
func list(servers []server) string {
	const most = 10
	var names []string
	for _, s := range servers[:min(len(servers), most)] {
		names = append(names, s.String())
	}
	if more := len(servers) - most; more > 0 {
		names = append(names, fmt.Sprintf("and %d more", more))
	}
	if len(names) == 0 {
		return "none"
	}
	return strings.Join(names, ", ")
}
