package lease

import (
	"context"
	"database/sql"
	"errors"
	"time"
)

// Info is a lease as its row says, by the server's clock, in UTC.
type Info struct {
	Name       string    `json:"name"`
	Owner      string    `json:"owner"`  // of the last holder
	Active     bool      `json:"active"` // not released; once Expires has passed it may be stolen
	Token      uint64    `json:"token"`
	Since      time.Time `json:"since"` // when it was last acquired
	Renewed    time.Time `json:"renewed"`
	Expires    time.Time `json:"expires"`     // unless it is renewed before
	NotBefore  time.Time `json:"not_before"`  // it rests until then; zero: it doesn't
	StolenFrom string    `json:"stolen_from"` // whom the last holder stole it from; "": it was free
	Steals     int64     `json:"steals"`      // how often it was stolen
}

// Inspect says who has the lease. A name that was never acquired gives an Info with the name only.
func (l *Leases) Inspect(ctx context.Context, name string) (Info, error) {
	if err := checkName(name); err != nil {
		return Info{}, err
	}
	info := Info{Name: name}
	err := l.persist(ctx, func(ctx context.Context) error {
		r, err := l.read(ctx, name)
		if errors.Is(err, sql.ErrNoRows) {
			return nil
		}
		if err == nil {
			info = r.Info
		}
		return err
	})
	return info, err
}

// List returns all leases, by name.
func (l *Leases) List(ctx context.Context) ([]Info, error) {
	var rows []row
	err := l.persist(ctx, func(ctx context.Context) (err error) {
		rows, err = l.query(ctx, table.list)
		return err
	})
	infos := make([]Info, 0, len(rows))
	for _, r := range rows {
		infos = append(infos, r.Info)
	}
	return infos, err
}

// ForceRelease takes the lease from a holder that hangs. Its renewals and guards fail from now on; another can acquire it as if the
// holder had died now, when the lease has expired and was observed for long enough. token is [Info.Token]; if the lease
// has changed hands since, the error matches [ErrLost] and nothing is changed.
func (l *Leases) ForceRelease(ctx context.Context, name string, token uint64) error {
	if err := checkName(name); err != nil {
		return err
	}
	unsure := false
	return l.persist(ctx, func(ctx context.Context) error {
		n, _, err := l.exec(ctx, l.attempt, func(t table) string { return t.revoke(name, token) })
		if err == nil && n == 0 {
			err = l.whose(ctx, name, token)
		}
		if lost, ok := errors.AsType[*LostError](err); ok && unsure && lost.Reason == LostForced {
			return nil // by the try whose answer was lost
		}
		unsure = unsure || err != nil
		return err
	})
}

// whose says what became of the term with this token.
func (l *Leases) whose(ctx context.Context, name string, token uint64) error {
	r, err := l.read(ctx, name)
	if errors.Is(err, sql.ErrNoRows) {
		return &LostError{Name: name, Reason: LostReleased, Err: errors.New("it was never acquired")}
	}
	if err != nil {
		return err
	}
	return r.taken(token)
}
