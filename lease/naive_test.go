package lease_test

import (
	"context"
	"database/sql"
	"encoding/hex"
	"errors"
	"strconv"
	"time"

	"github.com/go-sql-driver/mysql"
)

// naiveLease is the idea that failed in the field, as a twin of the lease: update my row, else steal a row whose acquired_at is too old,
// else insert; delete on release; renewed once per cycle, by acquiring again. The tests run it through the same suite, which it must fail.
type naiveLease struct {
	db    *sql.DB
	owner string
	ttl   time.Duration
}

type naiveRow struct {
	owner    string
	acquired time.Time
}

const naiveTable = "CREATE TABLE naive (name varbinary(255) NOT NULL PRIMARY KEY, owner varbinary(255) NOT NULL, acquired_at datetime(6) NOT NULL)"

// naiveStatements are those of the twin. Its idea, not its SQL, is at fault, so it gets literals and the server's clock as well.
func naiveStatements(name, owner string, ttl time.Duration) map[string]string {
	text := func(s string) string { return "x'" + hex.EncodeToString([]byte(s)) + "'" }
	return map[string]string{
		"naive update": "UPDATE naive SET acquired_at=UTC_TIMESTAMP(6) WHERE name=" + text(name) + " AND owner=" + text(owner),
		"naive steal": "UPDATE naive SET owner=" + text(owner) + ",acquired_at=UTC_TIMESTAMP(6) WHERE name=" + text(name) +
			" AND acquired_at<UTC_TIMESTAMP(6)-INTERVAL " + strconv.FormatInt(ttl.Microseconds(), 10) + " MICROSECOND",
		"naive insert": "INSERT INTO naive(name,owner,acquired_at) VALUES(" + text(name) + "," + text(owner) + ",UTC_TIMESTAMP(6))",
		"naive delete": "DELETE FROM naive WHERE name=" + text(name) + " AND owner=" + text(owner),
	}
}

var errNaiveHeld = errors.New("naive: held")

// acquire gets the lock, or keeps it at the start of the next cycle.
func (n *naiveLease) acquire(ctx context.Context, name string) error {
	statements := naiveStatements(name, n.owner, n.ttl)
	for _, kind := range []string{"naive update", "naive steal", "naive insert"} {
		result, err := n.db.ExecContext(ctx, statements[kind])
		if e, ok := errors.AsType[*mysql.MySQLError](err); ok && e.Number == 1062 {
			return errNaiveHeld
		}
		if err != nil {
			return err
		}
		if affected, err := result.RowsAffected(); err != nil || affected > 0 {
			return err
		}
	}
	return errors.New("naive: an insert affected no row")
}

func (n *naiveLease) release(ctx context.Context, name string) error {
	_, err := n.db.ExecContext(ctx, naiveStatements(name, n.owner, n.ttl)["naive delete"])
	return err
}

// runNaive executes the twin's statements on the fake server.
func (s *fakeServer) runNaive(st statement, now time.Time) (answer, error) {
	r, exists := s.naive[st.Name]
	ok := false
	switch st.kind {
	case "naive update":
		ok = exists && r.owner == st.Owner
	case "naive steal":
		ok = exists && r.acquired.Before(now.Add(-st.TTL))
	case "naive insert":
		if exists {
			return answer{}, &mysql.MySQLError{Number: 1062, Message: "Duplicate entry"}
		}
		ok = true
	case "naive delete":
		if exists && r.owner == st.Owner {
			delete(s.naive, st.Name)
			return answer{affected: 1}, nil
		}
	}
	if !ok {
		return answer{}, nil
	}
	s.naive[st.Name] = naiveRow{owner: st.Owner, acquired: now}
	return answer{affected: 1}, nil
}
