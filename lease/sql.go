package lease

import (
	"time"

	"github.com/mailretention/mailretention/internal/sqlname"
)

// Every statement of the package. They carry integers and hex literals instead of placeholders: a placeholder makes the
// driver prepare the statement first, which is a second round trip, unless the DSN says otherwise; and no sql_mode changes
// what these literals mean. All times are the server's, taken inside the statement and independent of the session's zone.
//
// In SET, an expression reads only columns that are assigned after it. So it sees the old values both where assignments
// take effect one by one and under MariaDB's SIMULTANEOUS_ASSIGNMENT.

const (
	serverTime   = "UTC_TIMESTAMP(6)"
	serverMicros = "CAST(" + microsOf + serverTime + ") AS UNSIGNED)"
	microsOf     = "TIMESTAMPDIFF(MICROSECOND,19700101,"

	maxToken = 1<<61 - 1 // with the two bits of a code below it, a token still fits a signed 64-bit integer

	sessionQuery = "SELECT DATABASE(),@@autocommit"

	columns = "(name varbinary(255) NOT NULL PRIMARY KEY," +
		"token bigint unsigned NOT NULL," +
		"seq bigint unsigned NOT NULL," +
		"holder binary(16) NULL," +
		"owner varbinary(255) NOT NULL," +
		"ttl_us bigint unsigned NOT NULL," +
		"acquired_at datetime(6) NOT NULL," +
		"renewed_at datetime(6) NOT NULL," +
		"expires_at datetime(6) NOT NULL," +
		"not_before datetime(6) NULL," +
		"stolen_from varbinary(255) NOT NULL," +
		"steals bigint unsigned NOT NULL) ENGINE=InnoDB " +
		"ROW_FORMAT=REDUNDANT" // it reserves the place of a NULL holder, so that the row is updated in place
)

// The token grows to the server's microseconds since 1970, so that it also grows where a table was restored. It comes back
// in the OK packet with a code below it, which says how the lease was acquired.
const (
	nextToken  = "LAST_INSERT_ID(GREATEST(token+1," + serverMicros + ")<<2|"
	firstToken = "LAST_INSERT_ID(" + serverMicros + "<<2|"

	codeBits     = 2
	stolen       = 2
	codeAcquired = "1)>>2"
	codeEither   = "IF(holder IS NULL,1,2))>>2"
)

// table is the qualified and quoted name of the lease table.
type table string

// term is one stay of a holder: what renewals, guards and the release are scoped to.
type term struct {
	name   string
	holder holder
	token  uint64
}

// claim is what an acquire writes.
type claim struct {
	name   string
	holder holder
	terms  string
	stale  stale
}

// terms are the assignments that are the same for all claims of a worker.
func terms(owner string, ttl time.Duration) string {
	t := micros(ttl)
	return "owner=" + text(owner) + ",ttl_us=" + t + ",acquired_at=" + serverTime + ",renewed_at=" + serverTime +
		",expires_at=" + serverTime + "+INTERVAL " + t + " MICROSECOND"
}

// stale is the state of a row that stood still long enough to be stolen. The zero stale steals nothing.
type stale struct {
	token, seq uint64
	how        staleness
}

type staleness string

const (
	onceExpired staleness = "once expired" // the server's clock must agree
	whatever    staleness = "whatever the server's clock says"
)

// acquire takes a lease that is free and was given no rest. If it did, one row is affected and LAST_INSERT_ID is
// token<<2|code. It leaves all else to seize: a server spends more time on parsing such statements than on executing them.
func (t table) acquire(c claim) string {
	return "UPDATE " + string(t) + " SET token=" + nextToken + codeAcquired +
		",seq=seq+1,stolen_from=x'',holder=" + c.holder.literal() + "," + c.terms +
		" WHERE name=" + text(c.name) + " AND holder IS NULL AND not_before IS NULL"
}

// seize takes a lease that is free and whose rest, if any, is over or was written by a wrong clock, or steals it in the
// state that was observed.
func (t table) seize(c claim) string {
	return "UPDATE " + string(t) + " SET token=" + nextToken + codeEither +
		",seq=seq+1,steals=steals+(holder IS NOT NULL),stolen_from=IF(holder IS NULL,x'',owner)" +
		",holder=" + c.holder.literal() + ",not_before=NULL," + c.terms +
		" WHERE name=" + text(c.name) + " AND (holder IS NULL AND " +
		"(not_before IS NULL OR not_before<=" + serverTime + " OR acquired_at>" + serverTime + ")" + c.stale.condition() + ")"
}

func (s stale) condition() string {
	if s.how == "" {
		return ""
	}
	c := " OR holder IS NOT NULL AND token=" + sqlname.Uint(s.token) + " AND seq=" + sqlname.Uint(s.seq)
	if s.how == onceExpired {
		c += " AND expires_at<=" + serverTime
	}
	return c
}

// insert takes a lease that has no row yet, with the same answer as acquire. It is no INSERT IGNORE, which would cut
// long names to one key.
func (t table) insert(c claim) string {
	return "INSERT INTO " + string(t) + " SET name=" + text(c.name) + ",token=" + firstToken + codeAcquired + ",seq=1" +
		",steals=0,stolen_from=x'',holder=" + c.holder.literal() + "," + c.terms
}

// renew doesn't ask whether the lease has expired: the unchanged token proves that nobody came between. It sets the
// expiry from the present time, earlier too, which ends what a wrong clock wrote.
func (t table) renew(m term) string {
	return "UPDATE " + string(t) + " SET seq=seq+1,renewed_at=" + serverTime +
		",expires_at=" + serverTime + "+INTERVAL ttl_us MICROSECOND" + m.condition()
}

// guard locks the row until the transaction that it is part of ends, so that nobody can steal the lease before.
func (t table) guard(m term) string {
	return "UPDATE " + string(t) + " SET seq=seq+1" + m.condition()
}

// release frees the lease; with a rest, nobody acquires it until so long after it was acquired.
func (t table) release(m term, rest time.Duration) string {
	notBefore := ""
	if rest > 0 {
		notBefore = ",not_before=acquired_at+INTERVAL " + micros(rest) + " MICROSECOND"
	}
	return "UPDATE " + string(t) + " SET seq=seq+1,holder=NULL" + notBefore + m.condition()
}

// abandon frees whatever a holder value acquired, known or not.
func (t table) abandon(name string, h holder) string {
	return "UPDATE " + string(t) + " SET seq=seq+1,holder=NULL WHERE name=" + text(name) + " AND holder=" + h.literal()
}

// revoke takes the lease from its holder and frees it for nobody: the expiry stays, and only the rule for stealing leads on.
func (t table) revoke(name string, token uint64) string {
	return "UPDATE " + string(t) + " SET token=token+1,seq=seq+1,holder=" + holder{}.literal() +
		" WHERE name=" + text(name) + " AND token=" + sqlname.Uint(token) + " AND holder<>" + holder{}.literal()
}

func (m term) condition() string {
	return " WHERE name=" + text(m.name) + " AND holder=" + m.holder.literal() + " AND token=" + sqlname.Uint(m.token)
}

// rowColumns are what row.scan reads. Times come as microseconds since 1970, which parseTime and loc of a DSN don't change.
const rowColumns = "name,token,seq,holder,owner,ttl_us," +
	microsOf + "acquired_at)," + microsOf + "renewed_at)," + microsOf + "expires_at)," +
	"COALESCE(" + microsOf + "not_before),0),stolen_from,steals," + microsOf + serverTime + ")"

func (t table) read(name string) string {
	return "SELECT " + rowColumns + " FROM " + string(t) + " WHERE name=" + text(name)
}

func (t table) list() string {
	return "SELECT " + rowColumns + " FROM " + string(t) + " ORDER BY name"
}

func (t table) create() string {
	return "CREATE TABLE IF NOT EXISTS " + string(t) + columns
}

func (t table) describe() string {
	return "SHOW COLUMNS FROM " + string(t)
}

func engine(database, name string) string {
	return "SELECT engine FROM information_schema.tables" +
		" WHERE table_schema=_utf8mb4 " + text(database) + " AND table_name=_utf8mb4 " + text(name)
}

func text(s string) string {
	return sqlname.Hex([]byte(s))
}

func micros(d time.Duration) string {
	return sqlname.Int(d.Microseconds())
}
