package lease

import (
	"sync"
	"time"
)

// sight is the state of a row that is somebody else's, and since when it has been like that. Tokens and seqs only grow,
// so a row that shows both again was not written in between.
type sight struct {
	token, seq uint64
	owner      string
	ttl        time.Duration
	since      time.Time // the arrival of the answer that first showed this state
}

// memory is what is remembered between two looks: by the monotonic clock, so that neither the server's clock nor the
// local wall clock can make a lease look older than it is.
type memory struct {
	mu            sync.Mutex
	seen          map[string]sight
	server, local time.Time // the server's clock at an earlier look, and the local one when the answer arrived
}

// observe remembers what an answer showed. The sight's since tells for how long the row has been like that.
func (m *memory) observe(r *row, arrived time.Time) sight {
	m.mu.Lock()
	defer m.mu.Unlock()
	s, ok := m.seen[r.Name]
	if !ok || s.token != r.Token || s.seq != r.seq {
		s = sight{token: r.Token, seq: r.seq, owner: r.Owner, ttl: r.ttl, since: arrived}
		m.seen[r.Name] = s
	}
	return s
}

func (m *memory) recall(name string) (sight, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	s, ok := m.seen[name]
	return s, ok
}

func (m *memory) forget(name string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.seen, name)
}

// drift is how far the server's clock ran ahead of the local one since an earlier look, about window ago if there was one
// so recently; behind, it is negative.
func (m *memory) drift(server, local time.Time, window time.Duration) (d, since time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.local.IsZero() {
		since = local.Sub(m.local)
		d = server.Sub(m.server) - since
	}
	if m.local.IsZero() || since >= window {
		m.server, m.local = server, local
	}
	return d, since
}

// patience is how long a row must stand still before its lease may be stolen.
func (l *Leases) patience(s sight) time.Duration {
	return max(l.cfg.Observe, s.ttl)
}

// wrongClockFactor times the patience is how long a row must stand still to count as expired whatever the server's clock
// says: so that what a wrong clock wrote doesn't stay for ever.
const wrongClockFactor = 2

// stale is the state in which the lease may be stolen now, by what has been observed.
func (l *Leases) stale(name string) (stale, sight) {
	s, ok := l.memory.recall(name)
	if !ok {
		return stale{}, s
	}
	switch age, patience := time.Since(s.since), l.patience(s); {
	case age >= wrongClockFactor*patience:
		return stale{token: s.token, seq: s.seq, how: whatever}, s
	case age >= patience:
		return stale{token: s.token, seq: s.seq, how: onceExpired}, s
	}
	return stale{}, s
}
