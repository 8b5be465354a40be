package lease

import (
	"context"
	"database/sql"
	"encoding/binary"
	"math/rand/v2"
	"time"

	"github.com/mailretention/mailretention/internal/sqlname"
)

// holder is the value that tells one acquisition from all others. All zero, the lease has been revoked.
type holder [16]byte

// newHolder draws from a generator that the runtime seeds at random in each process: the value must be unique, not secret.
func newHolder() (h holder) {
	binary.LittleEndian.PutUint64(h[:], rand.Uint64())
	binary.LittleEndian.PutUint64(h[8:], rand.Uint64())
	return h
}

func (h holder) literal() string {
	return sqlname.Hex(h[:])
}

// row is a lease as the table has it.
type row struct {
	Info
	seq    uint64
	holder holder // if Active
	ttl    time.Duration
	now    time.Time // the server's, when it was read
}

func (r *row) scan(scan func(...any) error) error {
	var holder []byte
	var ttl uint64
	var acquired, renewed, expires, notBefore, now int64
	err := scan(&r.Name, &r.Token, &r.seq, &holder, &r.Owner, &ttl, &acquired, &renewed, &expires, &notBefore, &r.StolenFrom, &r.Steals, &now)
	if err != nil {
		return err
	}
	r.Active = holder != nil
	copy(r.holder[:], holder)
	r.ttl = time.Duration(min(ttl, uint64(maxTTL.Microseconds()))) * time.Microsecond
	r.Since, r.Renewed, r.Expires, r.now = utc(acquired), utc(renewed), utc(expires), utc(now)
	if notBefore != 0 {
		r.NotBefore = utc(notBefore)
	}
	return nil
}

func utc(micros int64) time.Time {
	return time.UnixMicro(micros).UTC()
}

// revoked reports whether ForceRelease took the lease from its holder.
func (r *row) revoked() bool {
	return r.Active && r.holder == holder{}
}

// wrongClock reports whether the row can't have been written under the server's present clock.
func (r *row) wrongClock() bool {
	return r.Renewed.After(r.now) || r.Expires.Sub(r.now) > r.ttl
}

// resting is how long the lease stays free for nobody. A time of acquisition in the future makes its end worthless.
func (r *row) resting() time.Duration {
	if r.Active || r.Since.After(r.now) {
		return 0
	}
	return max(0, r.NotBefore.Sub(r.now))
}

// taken says what became of the term with this token.
func (r *row) taken(token uint64) *LostError {
	e := &LostError{Name: r.Name, Reason: LostStolen}
	switch {
	case r.revoked() && (r.Token == token || r.Token == token+1):
		e.Reason = LostForced
	case r.Token != token:
		e.By = r.Owner
	case !r.Active:
		e.Reason = LostReleased
	default:
		e.Reason = LostUnrenewed
	}
	return e
}

// read returns the row of a lease, or an error that matches sql.ErrNoRows.
func (l *Leases) read(ctx context.Context, name string) (row, error) {
	rows, err := l.query(ctx, func(t table) string { return t.read(name) })
	if err != nil {
		return row{}, err
	}
	if len(rows) == 0 {
		return row{}, sql.ErrNoRows
	}
	return rows[0], nil
}

func (l *Leases) query(ctx context.Context, build func(table) string) (all []row, err error) {
	ctx, cancel := context.WithTimeout(ctx, l.attempt)
	defer cancel()
	err = l.with(ctx, func(q querier, s *session) error {
		all = nil
		rows, err := q.QueryContext(ctx, build(s.table))
		if err != nil {
			return err
		}
		defer rows.Close()
		for rows.Next() {
			var r row
			if err := r.scan(rows.Scan); err != nil {
				return err
			}
			all = append(all, r)
		}
		return rows.Err()
	})
	return all, err
}
