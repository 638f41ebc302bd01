package workerlease

import (
	"context"
	"log/slog"

	"github.com/slotlease/slotlease/slots"
	"github.com/slotlease/slotlease/store"
)

// LogToSlog returns an observer that writes every event to a slog logger: the same lines
// at the same levels as [LogTo], with the same attributes. Nil is slog.Default(), as it is
// at each event.
func LogToSlog(l *slog.Logger) Observer {
	if l == nil {
		return slogObserver{slog.Default}
	}
	return slogObserver{func() *slog.Logger { return l }}
}

type slogObserver struct{ log func() *slog.Logger }

// Observe logs an event.
func (o slogObserver) Observe(e Event) {
	l, log, ctx := lineOf(e), o.log(), context.Background()
	if !log.Enabled(ctx, l.level) {
		return
	}
	w := e.Of()
	out := make([]slog.Attr, 0, len(l.attrs)+2)
	for _, a := range l.attrs {
		if slot, ok := a.value.(slots.Slot); ok {
			a.value = slot.String() // A handler for JSON would take it apart.
		}
		out = append(out, slog.Any(a.key, a.value))
	}
	log.LogAttrs(ctx, l.level, l.message, append(out, slog.String("workerType", w.WorkerType), slog.String("instanceId", w.InstanceID))...)
}

// troubles passes on warnings and errors.
type troubles struct{ Observer }

func (o troubles) Observe(e Event) {
	if levelOf(e) >= slog.LevelWarn {
		o.Observer.Observe(e)
	}
}

// newDefaultClient is the client of the package-level functions. The default logger is
// looked up for each event, since a program may set it later.
func newDefaultClient(ledger store.Ledger) *Client {
	return NewClient(ledger, ClientOptions{Observer: troubles{slogObserver{slog.Default}}})
}
