package event

import (
	"context"
	"log/slog"

	"github.com/slotlease/slotlease/slots"
)

// LogTo returns an observer that writes every event to a slog logger, as one line with a constant message and the
// attributes workerType and instanceId. A panic, and what the store has lost, is an error. Work that has failed, and a
// condition that needs attention, is a warning. The course of leases is information, and the rest is for debugging. Nil
// is slog.Default(), as it is at each event.
func LogTo(l *slog.Logger) Observer {
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

// Warnings passes on warnings and errors to an observer, and that a store works again which such a line was about.
func Warnings(o Observer) Observer {
	return ObserverFunc(func(e Event) {
		r, over := e.(StoreRecovered)
		if lineOf(e).level >= slog.LevelWarn || over && !r.Quiet {
			o.Observe(e)
		}
	})
}
