package lease_test

import (
	"database/sql"
	"math/rand/v2"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mailretention/mailretention/internal/mysqltest"
	"github.com/mailretention/mailretention/internal/sqlname"
	"github.com/mailretention/mailretention/lease"
)

// The virtual-time tests are worth as much as the fake server: the same statements, in any order, at any time of the
// server's clock, have the same outcome on it and on a real server.
func TestFakeServerAgreesWithTheRealOne(t *testing.T) {
	const rounds, seed = 4000, 17
	db, name := mysqltest.DB(t)
	db.SetMaxOpenConns(1) // the session's clock
	provisioned(t, db, lease.Config{})
	fake, random := newFakeServer(), rand.New(rand.NewPCG(seed, seed))
	start := time.Now().Truncate(time.Second)
	qualified, err := sqlname.Qualify(name, "leases")
	require.NoError(t, err)

	outcomes := map[string]int{}
	kinds := []string{"acquire", "seize", "steal", "take", "insert", "renew", "guard", "release", "rest", "abandon", "revoke"}
	for range rounds {
		fake.frozen = setClock(t, db, start.Add(time.Duration(random.IntN(100))*time.Second))
		v := lease.Values{Name: pick(random, "a", "A", "a ", "ä"), Owner: pick(random, "one", "two"), TTL: time.Duration(1+random.IntN(40)) * time.Second, Rest: 30 * time.Second}
		v.Holder[0] = byte(1 + random.IntN(2))
		row := fake.rows[v.Name]
		v.Token, v.Seq = row.token-uint64(random.IntN(10)/9), row.seq-uint64(random.IntN(10)/9) // sometimes those of before
		kind := pick(random, kinds...)
		affected := onBoth(t, db, fake, lease.Statements(qualified, v)[kind], lease.Statements(leaseTable, v)[kind])
		if affected == 1 {
			outcomes[kind]++
		}
		require.Equal(t, realRow(t, db, lease.Statements(qualified, v)["read"]), fakeAnswer(t, fake, lease.Statements(leaseTable, v)["read"]), "after %s of %+v", kind, v)
	}
	for _, kind := range kinds {
		require.Positive(t, outcomes[kind], "%s never did anything: the test asks too little", kind)
	}
	t.Log("statements that had an effect:", outcomes)
}

func pick(random *rand.Rand, from ...string) string { return from[random.IntN(len(from))] }

// setClock sets the session's clock and returns what it reads.
func setClock(t testing.TB, db *sql.DB, now time.Time) time.Time {
	t.Helper()
	_, err := db.Exec("SET timestamp=" + strconv.FormatInt(now.Unix(), 10))
	require.NoError(t, err)
	return now.UTC()
}

func onBoth(t testing.TB, db *sql.DB, fake *fakeServer, onReal, onFake string) (affected int64) {
	t.Helper()
	got, errFake := fake.do(t.Context(), nil, onFake)
	result, errReal := db.Exec(onReal)
	if errReal != nil {
		require.Error(t, errFake, "the real server says %v", errReal)
		return 0
	}
	require.NoError(t, errFake)
	affected, err := result.RowsAffected()
	require.NoError(t, err)
	id, err := result.LastInsertId()
	require.NoError(t, err)
	require.Equal(t, affected, got.affected, onReal)
	if got.id != 0 {
		require.Equal(t, id, got.id, onReal)
	}
	return affected
}

func realRow(t testing.TB, db *sql.DB, query string) []string {
	t.Helper()
	rows, err := db.Query(query)
	require.NoError(t, err)
	defer rows.Close()
	columns, err := rows.Columns()
	require.NoError(t, err)
	values := make([]sql.NullString, len(columns))
	pointers := make([]any, len(columns))
	for i := range values {
		pointers[i] = &values[i]
	}
	if !rows.Next() {
		return nil
	}
	require.NoError(t, rows.Scan(pointers...))
	var text []string
	for _, v := range values {
		text = append(text, v.String)
	}
	return text
}

func fakeAnswer(t testing.TB, fake *fakeServer, query string) []string {
	t.Helper()
	a, err := fake.do(t.Context(), nil, query)
	require.NoError(t, err)
	var text []string
	for _, v := range a.columns {
		switch v := v.(type) {
		case []byte:
			text = append(text, string(v))
		case int64:
			text = append(text, strconv.FormatInt(v, 10))
		default:
			text = append(text, "")
		}
	}
	return text
}
