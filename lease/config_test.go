package lease_test

import (
	"database/sql"
	"strings"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"
	"github.com/stretchr/testify/require"

	"github.com/mailretention/mailretention/lease"
)

// unopened is a pool that connects nowhere: constructors do no I/O.
func unopened(t testing.TB) *sql.DB {
	t.Helper()
	connector, err := mysql.NewConnector(mysql.NewConfig())
	require.NoError(t, err)
	db := sql.OpenDB(connector)
	t.Cleanup(func() { require.NoError(t, db.Close()) })
	return db
}

func TestConfigFaultsAreJoinedAndNameTheValue(t *testing.T) {
	_, err := lease.New(nil, lease.Config{
		Table: "a`b .", Owner: strings.Repeat("o", 256), TTL: time.Millisecond, Margin: -time.Second, Observe: -2 * time.Second, MinHold: -3 * time.Second, MaxHold: -4 * time.Second,
	})
	for _, says := range []string{"db is nil", `Table "a`, "256 bytes", "TTL is 1ms", "Margin is -1s", "Observe is -2s", "MinHold is -3s", "MaxHold is -4s"} {
		require.ErrorContains(t, err, says)
	}
}

func TestTimesMustFitEachOther(t *testing.T) {
	for _, c := range []struct {
		name string
		cfg  lease.Config
		says string
	}{
		{"defaults", lease.Config{}, ""},
		{"the shortest TTL", lease.Config{TTL: time.Second}, ""},
		{"a long one", lease.Config{TTL: 24 * time.Hour}, ""},
		{"a TTL under a second", lease.Config{TTL: 999 * time.Millisecond}, "TTL is 999ms"},
		{"an interval that leaves no time for two attempts", lease.Config{TTL: time.Minute, Interval: 30 * time.Second}, "Interval 30s"},
		{"a margin that leaves none", lease.Config{TTL: time.Minute, Margin: 30 * time.Second}, "Margin 30s"},
		{"just enough", lease.Config{TTL: time.Minute, Interval: 20 * time.Second, Margin: 18 * time.Second}, ""},
		{"a table of another database", lease.Config{Table: "other.db.leases"}, ""},
		{"a table without a name", lease.Config{Table: "db."}, "Table"},
		{"a table name that is too long", lease.Config{Table: strings.Repeat("t", 65)}, "Table"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := lease.New(unopened(t), c.cfg)
			if c.says == "" {
				require.NoError(t, err)
				return
			}
			require.ErrorContains(t, err, c.says)
		})
	}
}
