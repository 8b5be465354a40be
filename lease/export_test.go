package lease

import (
	"context"
	"database/sql"
	"time"
)

// Values are the literals of a statement.
type Values struct {
	Name, Owner string
	Holder      [16]byte
	TTL, Rest   time.Duration
	Token, Seq  uint64
}

// Statements returns every statement on a table's rows, by a name of the tests' own.
func Statements(qualified string, v Values) map[string]string {
	t, m := table(qualified), term{name: v.Name, holder: v.Holder, token: v.Token}
	claiming := func(how staleness) claim {
		c := claim{name: v.Name, holder: v.Holder, terms: terms(v.Owner, v.TTL)}
		if how != "" {
			c.stale = stale{token: v.Token, seq: v.Seq, how: how}
		}
		return c
	}
	return map[string]string{
		"session": sessionQuery,
		"acquire": t.acquire(claiming("")),
		"seize":   t.seize(claiming("")),
		"steal":   t.seize(claiming(onceExpired)),
		"take":    t.seize(claiming(whatever)),
		"insert":  t.insert(claiming("")),
		"renew":   t.renew(m),
		"guard":   t.guard(m),
		"release": t.release(m, 0),
		"rest":    t.release(m, v.Rest),
		"abandon": t.abandon(v.Name, v.Holder),
		"revoke":  t.revoke(v.Name, v.Token),
		"read":    t.read(v.Name),
	}
}

// GuardOf guards by a lease without a context that has it.
func GuardOf(l *Lease) func(context.Context, *sql.Tx) error { return l.guard }
