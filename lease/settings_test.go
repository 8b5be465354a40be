package lease_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mailretention/mailretention/internal/mysqltest"
	"github.com/mailretention/mailretention/lease"
)

// settings are the connection settings under which everything must have the same outcome.
func settings(t testing.TB) map[string][]string {
	all := map[string][]string{
		"default":                      nil,
		"clientFoundRows":              {"clientFoundRows=true"},
		"text protocol":                {"interpolateParams=true"},
		"parseTime":                    {"parseTime=true"},
		"parseTime in a zone":          {"parseTime=true", "loc=America/New_York"},
		"time_zone west":               {"time_zone='-11:00'"},
		"time_zone east":               {"time_zone='+13:00'"},
		"TRADITIONAL":                  {"sql_mode='TRADITIONAL'"},
		"ANSI_QUOTES":                  {"sql_mode='ANSI_QUOTES'"},
		"ANSI":                         {"sql_mode='ANSI'"},
		"NO_BACKSLASH_ESCAPES":         {"sql_mode='NO_BACKSLASH_ESCAPES'"},
		"no mode at all":               {"sql_mode=''"},
		"autocommit off":               {"autocommit=0"},
		"safe updates":                 {"sql_safe_updates=1"},
		"latin1":                       {"charset=latin1"},
		"SERIALIZABLE":                 {"transaction_isolation='SERIALIZABLE'"},
		"SERIALIZABLE, autocommit off": {"transaction_isolation='SERIALIZABLE'", "autocommit=0"},
		"READ COMMITTED":               {"transaction_isolation='READ-COMMITTED'"},
	}
	if mysqltest.IsMariaDB(t) {
		all["SIMULTANEOUS_ASSIGNMENT"] = []string{"sql_mode='SIMULTANEOUS_ASSIGNMENT'"}
		all["SERIALIZABLE"] = []string{"tx_isolation='SERIALIZABLE'"} // until 11.1 it has no other name
		all["SERIALIZABLE, autocommit off"] = []string{"tx_isolation='SERIALIZABLE'", "autocommit=0"}
		all["READ COMMITTED"] = []string{"tx_isolation='READ-COMMITTED'"}
	}
	return all
}

func TestEveryConnectionSettingHasTheSameOutcomes(t *testing.T) {
	mysqltest.NoLeaks(t)
	const renewals, plain = 1000, 10_000
	script := map[string]*script{}
	for name, params := range settings(t) { // all begin, so that one wait lets all their leases expire
		db, _ := mysqltest.DB(t, params...)
		provisioned(t, db, lease.Config{})
		script[name] = begin(t, db)
	}
	for name, s := range script {
		t.Run(name, func(t *testing.T) {
			count := renewals
			if name == "default" {
				count = plain
			}
			renewMany(t, newLeases(t, s.db, lease.Config{}), count)
			s.finish(t)
			require.Equal(t, []string{
				"dead acquires: new, taken from nobody",
				"heir: held by dead ü",
				"dead renews: true",
				"heir acquires: taken from dead ü, 1 steals",
				"dead renews: lease: lost",
				"heir guards: true",
				"revoked guards: lease: lost",
				"heir releases: true",
				"heir rests",
			}, s.said)
		})
	}
}

func renewMany(t testing.TB, leases *lease.Leases, count int) {
	t.Helper()
	l, err := leases.Acquire(t.Context(), "many")
	require.NoError(t, err)
	token := l.Token()
	for i := range count {
		require.NoError(t, l.Renew(t.Context()), "renewal %d", i)
	}
	info, err := leases.Inspect(t.Context(), "many")
	require.NoError(t, err)
	require.Equal(t, token, info.Token)
	require.WithinDuration(t, info.Renewed.Add(time.Minute), info.Expires, 0)
	require.WithinDuration(t, time.Now(), info.Renewed, time.Minute, "UTC, whatever the session's zone")
}

// script is what two workers do, and in words what each step leads to.
type script struct {
	db          *sql.DB
	dying, heir *lease.Leases
	dead        *lease.Lease
	said        []string
}

const scriptName = "x'\\\"`ü"

func (s *script) say(format string, args ...any) {
	s.said = append(s.said, fmt.Sprintf(format, args...))
}

func (s *script) result(t testing.TB, err error) any {
	t.Helper()
	if errors.Is(err, lease.ErrLost) {
		return lease.ErrLost
	}
	require.NoError(t, err)
	return true
}

// begin runs the script until one worker has died.
func begin(t testing.TB, db *sql.DB) *script {
	t.Helper()
	s := &script{
		db: db, dying: newLeases(t, db, lease.Config{Owner: "dead ü", TTL: time.Second}),
		heir: newLeases(t, db, lease.Config{Owner: "heir", TTL: time.Second, MinHold: time.Hour}),
	}
	dead, err := s.dying.Acquire(t.Context(), scriptName)
	require.NoError(t, err)
	s.dead = dead
	s.say("dead acquires: new, taken from nobody%s", dead.StolenFrom())
	err = s.heir.Do(t.Context(), scriptName, nothing)
	var held *lease.HeldError
	require.ErrorAs(t, err, &held)
	s.say("heir: held by %s", held.Owner)
	s.say("dead renews: %v", s.result(t, dead.Renew(t.Context())))
	_, err = s.heir.Acquire(t.Context(), scriptName) // the observation begins
	require.ErrorIs(t, err, lease.ErrHeld)
	return s
}

func (s *script) finish(t testing.TB) {
	t.Helper()
	ctx := t.Context()
	heir, err := s.heir.Wait(ctx, scriptName)
	require.NoError(t, err)
	info, err := s.heir.Inspect(ctx, scriptName)
	require.NoError(t, err)
	require.Equal(t, heir.Token(), info.Token)
	require.Equal(t, heir.StolenFrom(), info.StolenFrom)
	s.say("heir acquires: taken from %s, %d steals", info.StolenFrom, info.Steals)
	s.say("dead renews: %v", s.result(t, s.dead.Renew(ctx)))

	s.say("heir guards: %v", s.result(t, inTransaction(ctx, s.db, lease.GuardOf(heir))))
	revoked, err := s.dying.Acquire(ctx, "another")
	require.NoError(t, err)
	require.NoError(t, s.heir.ForceRelease(ctx, "another", revoked.Token()))
	s.say("revoked guards: %v", s.result(t, inTransaction(ctx, s.db, lease.GuardOf(revoked))))
	s.say("heir releases: %v", s.result(t, heir.Release(ctx)))

	require.NoError(t, s.heir.Do(ctx, scriptName, nothing))
	var held *lease.HeldError
	require.ErrorAs(t, s.heir.Do(ctx, scriptName, nothing), &held)
	if !held.Active && held.NotBefore.Sub(held.Since) == time.Hour {
		s.say("heir rests")
	}
}

// inTransaction runs the guard in a transaction of its own.
func inTransaction(ctx context.Context, db *sql.DB, guard func(context.Context, *sql.Tx) error) error {
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	if err := guard(ctx, tx); err != nil {
		_ = tx.Rollback() // the guard's error is the point
		return err
	}
	return tx.Commit()
}
