package lease_test

import (
	"cmp"
	"fmt"
	"slices"
	"sync"
	"time"
)

// interval is a time in which a worker trusted that it had the lease: from the answer of its acquire to the end of its
// work or of its context, whichever came first.
type interval struct {
	Name, Owner string
	Token       uint64
	From, To    time.Time
}

// history is who held what token from when to when, by their own trust, and which tokens wrote, in commit order.
type history struct {
	mu        sync.Mutex
	intervals []*interval
}

// enter begins an interval; the function that it returns ends it, the first call counting.
func (h *history) enter(name, owner string, token uint64) (leave func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	i := &interval{Name: name, Owner: owner, Token: token, From: time.Now()}
	h.intervals = append(h.intervals, i)
	return sync.OnceFunc(func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		i.To = time.Now()
	})
}

// terms is how often the lease was had.
func (h *history) terms() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.intervals)
}

// check returns the first violation for one lease: trusted intervals that overlap, a token that doesn't grow, or a row written
// under a token that was not the newest.
func (h *history) check(writes []uint64) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	byStart := slices.SortedFunc(slices.Values(h.intervals), func(a, b *interval) int { return a.From.Compare(b.From) })
	for i, v := range byStart {
		if v.To.IsZero() {
			v.To = time.Now()
		}
		if i == 0 {
			continue
		}
		before := byStart[i-1]
		if v.From.Before(before.To) {
			return fmt.Errorf("two inside: %s (token %d) from %s, while %s (token %d) is there from %s to %s",
				v.Owner, v.Token, clock(v.From), before.Owner, before.Token, clock(before.From), clock(before.To))
		}
		if v.Token <= before.Token {
			return fmt.Errorf("the token doesn't grow: %s has %d, after %s had %d", v.Owner, v.Token, before.Owner, before.Token)
		}
	}
	if !slices.IsSorted(writes) {
		return fmt.Errorf("a row was written under an old token: %v", writes)
	}
	for _, token := range slices.Compact(slices.Clone(writes)) {
		if !slices.ContainsFunc(byStart, func(v *interval) bool { return cmp.Compare(v.Token, token) == 0 }) {
			return fmt.Errorf("a row was written under the token %d, which nobody had", token)
		}
	}
	return nil
}

func clock(t time.Time) string { return t.Format("15:04:05.000000") }
