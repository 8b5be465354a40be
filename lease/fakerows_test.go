package lease_test

import (
	"database/sql/driver"
	"encoding/hex"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/go-sql-driver/mysql"

	"github.com/mailretention/mailretention/lease"
)

const leaseTable = "`mail`.`leases`"

// statement is a statement that was recognised, with its literals.
type statement struct {
	kind string // a key of lease.Statements, or one of the tests' own
	lease.Values
}

// writes reports whether the statement locks the row of a lease.
func (s statement) writes() bool { return s.kind != "read" && s.kind != "session" && s.kind != "write" }

// marks are values that occur nowhere else in a statement.
var marks = lease.Values{
	Name: "\x01name", Owner: "\x01owner", Holder: [16]byte{0xAB, 0xCD, 0xEF}, TTL: 1111111111 * time.Microsecond, Rest: 2222222222 * time.Microsecond,
	Token: 3333333333, Seq: 4444444444,
}

type pattern struct {
	kind string
	re   *regexp.Regexp
}

// patterns recognise the statements that the package builds today: each with its marks replaced by a group.
var patterns = func() (all []pattern) {
	text := func(s string) string { return "x'" + hex.EncodeToString([]byte(s)) + "'" }
	groups := []struct{ literal, name, expression string }{
		{text(marks.Name), "name", "x'[0-9a-f]*'"},
		{text(marks.Owner), "owner", "x'[0-9a-f]*'"},
		{text(string(marks.Holder[:])), "holder", "x'[0-9a-f]{32}'"},
		{"1111111111", "ttl", "[0-9]+"},
		{"2222222222", "rest", "[0-9]+"},
		{"3333333333", "token", "[0-9]+"},
		{"4444444444", "seq", "[0-9]+"},
	}
	statements := lease.Statements(leaseTable, marks)
	statements["write"] = writeStatement(marks.Token)
	for kind, q := range naiveStatements(marks.Name, marks.Owner, marks.TTL) {
		statements[kind] = q
	}
	for kind, q := range statements {
		q = regexp.QuoteMeta(q)
		for _, g := range groups {
			q = strings.Replace(q, g.literal, "(?P<"+g.name+">"+g.expression+")", 1)
			q = strings.ReplaceAll(q, g.literal, g.expression)
		}
		all = append(all, pattern{kind, regexp.MustCompile("^" + q + "$")})
	}
	return all
}()

// writeStatement is the guarded work of the tests: a row that says under which token it was written.
func writeStatement(token uint64) string {
	return "INSERT INTO work(token) VALUES(" + strconv.FormatUint(token, 10) + ")"
}

func recognise(query string) (statement, error) {
	for _, p := range patterns {
		m := p.re.FindStringSubmatch(query)
		if m == nil {
			continue
		}
		get := func(group string) string {
			if i := p.re.SubexpIndex(group); i >= 0 {
				return m[i]
			}
			return ""
		}
		text := func(group string) string {
			b, _ := hex.DecodeString(strings.Trim(get(group), "x'"))
			return string(b)
		}
		number := func(group string) uint64 {
			n, _ := strconv.ParseUint(get(group), 10, 64)
			return n
		}
		st := statement{kind: p.kind, Values: lease.Values{
			Name: text("name"), Owner: text("owner"), TTL: time.Duration(number("ttl")) * time.Microsecond, Rest: time.Duration(number("rest")) * time.Microsecond,
			Token: number("token"), Seq: number("seq"),
		}}
		copy(st.Holder[:], text("holder"))
		return st, nil
	}
	return statement{}, fmt.Errorf("the fake server doesn't know this statement: %s", query)
}

// fakeRow is a row of the lease table. Holder "" is NULL, notBefore zero is NULL.
type fakeRow struct {
	token, seq                            uint64
	holder, owner                         string
	ttl                                   time.Duration
	acquired, renewed, expires, notBefore time.Time
	stolenFrom                            string
	steals                                int64
}

// run executes a statement. Called with mu and the row's lock.
func (s *fakeServer) run(tx *fakeTx, st statement) (answer, error) {
	now := s.now()
	r, exists := s.rows[st.Name]
	holder := string(st.Holder[:])
	mine := exists && r.holder == holder && (r.token == st.Token || st.kind == "abandon")
	changed := false
	var id int64
	switch st.kind {
	case "session":
		return answer{affected: 1, columns: []driver.Value{[]byte("mail"), int64(1)}}, nil
	case "read":
		return r.answer(st.Name, exists, now), nil
	case "write":
		return s.write(tx, st.Token), nil
	case "insert":
		if exists {
			return answer{}, &mysql.MySQLError{Number: 1062, Message: "Duplicate entry"}
		}
		r = fakeRow{token: uint64(now.UnixMicro())}
		changed, id = true, int64(r.token<<2|1)
	case "acquire":
		if changed = exists && r.holder == "" && r.notBefore.IsZero(); changed {
			id = r.next(now)
		}
	case "seize", "steal", "take":
		changed = exists && (r.free(now) || r.stale(st, now))
		if changed {
			id = r.next(now)
		}
	case "renew":
		if changed = mine; changed {
			r.renewed, r.expires = now, now.Add(r.ttl)
		}
	case "guard":
		changed = mine
	case "release", "rest", "abandon":
		if changed = mine; changed {
			r.holder = ""
		}
		if changed && st.kind == "rest" {
			r.notBefore = r.acquired.Add(st.Rest)
		}
	case "revoke":
		zeros := string(make([]byte, 16))
		if changed = exists && r.token == st.Token && r.holder != "" && r.holder != zeros; changed {
			r.token, r.holder = r.token+1, zeros
		}
	default:
		return s.runNaive(st, now)
	}
	if !changed {
		return answer{}, nil
	}
	if id != 0 {
		r.holder, r.owner, r.ttl = holder, st.Owner, st.TTL
		r.acquired, r.renewed, r.expires, r.notBefore = now, now, now.Add(st.TTL), time.Time{}
	}
	r.seq++
	s.rows[st.Name] = r
	return answer{affected: 1, id: id}, nil
}

func (r fakeRow) free(now time.Time) bool {
	return r.holder == "" && (!r.notBefore.After(now) || r.acquired.After(now))
}

func (r fakeRow) stale(st statement, now time.Time) bool {
	return r.holder != "" && r.token == st.Token && r.seq == st.Seq &&
		(st.kind == "take" || st.kind == "steal" && !r.expires.After(now))
}

// next begins the next term and returns the number of the OK packet.
func (r *fakeRow) next(now time.Time) int64 {
	r.token = max(r.token+1, uint64(now.UnixMicro()))
	if r.holder == "" {
		r.stolenFrom = ""
		return int64(r.token<<2 | 1)
	}
	r.stolenFrom = r.owner
	r.steals++
	return int64(r.token<<2 | 2)
}

func (r fakeRow) answer(name string, exists bool, now time.Time) answer {
	if !exists {
		return answer{}
	}
	var holder driver.Value
	if r.holder != "" {
		holder = []byte(r.holder)
	}
	notBefore := int64(0)
	if !r.notBefore.IsZero() {
		notBefore = r.notBefore.UnixMicro()
	}
	return answer{affected: 1, columns: []driver.Value{
		[]byte(name), int64(r.token), int64(r.seq), holder, []byte(r.owner), r.ttl.Microseconds(),
		r.acquired.UnixMicro(), r.renewed.UnixMicro(), r.expires.UnixMicro(), notBefore, []byte(r.stolenFrom), r.steals, now.UnixMicro(),
	}}
}

// write is the guarded work: it counts once its transaction commits.
func (s *fakeServer) write(tx *fakeTx, token uint64) answer {
	if tx == nil {
		s.written = append(s.written, token)
	} else {
		tx.pending = append(tx.pending, token)
	}
	return answer{affected: 1}
}
