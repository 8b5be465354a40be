package retention_test

import (
	"context"
	"strings"
	"sync"

	"github.com/mailretention/mailretention/retention"
)

type progress = func(rows int64) error

// script is a Store that notes its calls and does what a test says. What is nil succeeds: the inventory is that of
// inv, a drop detaches 2 messages, a prune deletes 3.
type script struct {
	mu    sync.Mutex
	calls []string

	inv       retention.Inventory
	inventory func(ctx context.Context) (retention.Inventory, error)
	reconcile func(ctx context.Context) (int, error)
	drop      func(ctx context.Context, name string, p progress) error
	prune     func(ctx context.Context, cut retention.Cut, p progress) error
}

func (s *script) note(call string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls = append(s.calls, call)
}

func (s *script) Inventory(ctx context.Context) (retention.Inventory, error) {
	s.note("inventory")
	if s.inventory != nil {
		return s.inventory(ctx)
	}
	return s.inv, nil
}

func (s *script) Reconcile(ctx context.Context) (int, error) {
	s.note("reconcile")
	if s.reconcile != nil {
		return s.reconcile(ctx)
	}
	return 0, nil
}

func (s *script) DropTable(ctx context.Context, name string, p func(int64) error) error {
	s.note("drop " + name)
	if s.drop != nil {
		return s.drop(ctx, name, p)
	}
	return p(2)
}

func (s *script) PruneMessages(ctx context.Context, cut retention.Cut, p func(int64) error) error {
	s.note("prune")
	if s.prune != nil {
		return s.prune(ctx, cut, p)
	}
	return p(3)
}

// log is the calls on one line.
func (s *script) log() string { return strings.Join(s.calls, ", ") }

// failing gives drops the errors by table name; others succeed.
func failing(errs map[string]error) func(context.Context, string, progress) error {
	return func(_ context.Context, name string, p progress) error {
		if err := errs[name]; err != nil {
			return err
		}
		return p(2)
	}
}

// locker is a Locker made of its method.
type locker func(ctx context.Context, name string, fn func(context.Context) error) error

func (l locker) Do(ctx context.Context, name string, fn func(context.Context) error) error {
	return l(ctx, name, fn)
}

// events collects what a run tells.
type events struct{ list []retention.Event }

func (e *events) on(ev retention.Event) { e.list = append(e.list, ev) }

// log is the events on one line: kind, table, rows.
func (e *events) log() string {
	var b strings.Builder
	for i, ev := range e.list {
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString(string(ev.Kind))
		if ev.Table != "" {
			b.WriteString(" " + strings.TrimPrefix(ev.Table, "raw-2026-06-"))
		}
	}
	return b.String()
}
