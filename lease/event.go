package lease

import (
	"context"
	"log/slog"
	"time"
)

// EventKind says what happened to a lease.
type EventKind string

// The kinds.
const (
	EventAcquired     EventKind = "acquired"
	EventStolen       EventKind = "stolen" // acquired from a holder that had gone; the other side gets EventLost
	EventRenewed      EventKind = "renewed"
	EventRenewFailed  EventKind = "renew-failed" // one attempt; the work goes on while the lease is trusted
	EventLost         EventKind = "lost"
	EventReleased     EventKind = "released"
	EventClockAnomaly EventKind = "clock-anomaly" // the server's clock jumped, stands still, or wrote a time that lies in its future
)

// Event is something that happened to a lease, sent by the goroutine in which it happened.
type Event struct {
	Kind  EventKind
	Name  string
	Token uint64        // 0 where it isn't known
	Took  time.Duration // how long the call took that led to it; 0 where there was none
	Err   error         // for renew-failed, lost and clock-anomaly; for released, why that isn't certain
}

func (k EventKind) level() slog.Level {
	switch k {
	case EventAcquired, EventRenewed, EventReleased:
		return slog.LevelDebug
	case EventStolen:
		return slog.LevelInfo
	}
	return slog.LevelWarn
}

func (l *Leases) emit(e Event) {
	if l.cfg.OnEvent != nil {
		l.cfg.OnEvent(e)
	}
	if !l.cfg.Logger.Enabled(context.Background(), e.Kind.level()) {
		return
	}
	attrs := []slog.Attr{slog.String("name", e.Name), slog.Uint64("token", e.Token), slog.Duration("took", e.Took)}
	if e.Err != nil {
		attrs = append(attrs, slog.Any("error", e.Err))
	}
	l.cfg.Logger.LogAttrs(context.Background(), e.Kind.level(), "lease "+string(e.Kind), attrs...)
}
