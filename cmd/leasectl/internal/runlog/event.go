package runlog

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/slotlease/slotlease/slots"
	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/workerlease/event"
)

// Observe logs what happens to the worker: that a slot is given up after why, if its last attempt has yet to end.
func (l *Log) Observe(e event.Event) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if x, ok := e.(event.Exhausted); ok && !l.running.IsZero() && x.Slot.Start.Equal(l.running.Start) {
		l.givenUp = e
		return
	}
	l.observe(e)
	switch e.(type) {
	case event.TaskFailed, event.Returned:
		if x := l.givenUp; x != nil {
			l.givenUp = nil
			l.observe(x)
		}
	}
}

// observe is Observe for what is logged now. The caller holds the lock.
func (l *Log) observe(e event.Event) {
	if f, ok := e.(event.StoreFailed); ok && (errors.Is(f.Err, context.Canceled) || l.holds(f)) {
		return // We broke the operation off, or leasectl may end with it.
	}
	if s, ok := e.(event.ClockSample); ok && !l.ready {
		l.ready, l.failing, l.lasting = true, false, false
		all := Log{process: l.process, worker: l.worker} // It is about the store.
		all.write(zap.InfoLevel, slots.Slot{}, l.begun, fmt.Sprintf("ready: store time %s ± %v", store.Format(s.StoreTime), s.Uncertainty.Round(time.Microsecond)),
			"ready", zap.String("storeTime", store.Format(s.StoreTime)), zap.Duration("uncertainty", s.Uncertainty))
	}
	// Also for JSON: they take note of what happened.
	before := l.begun
	e = l.marked(e)
	text := l.text(e)
	if o, ok := e.(event.Overrun); ok && o.Slot.Start.Equal(l.over.Start) {
		return // The command is gone: its end and this event crossed.
	}
	fields := eventFields(e, l.begun)
	whole := ""
	if l.log.Core().Enabled(zap.DebugLevel) {
		whole = detail(e)
	}
	if whole != "" {
		fields = append(fields, zap.String("detail", whole))
	}
	defer l.lookAhead(e)
	_, extended := e.(event.Extended)
	switch {
	case l.json:
		event.LogToZap(l.log.With(fields...)).Observe(e)
	case text == "":
	case extended && !l.begun.Start.Equal(before.Start):
		l.write(zap.InfoLevel, slots.Slot{}, l.begun, text, "") // Its lease goes on into another slot.
	default:
		if !ofAll(e) {
			text = l.whose(text)
		}
		saying := zap.WrapCore(func(c zapcore.Core) zapcore.Core { return sentence{c, text} })
		event.LogToZap(l.log.WithOptions(saying)).Observe(e)
		if whole != "" {
			l.write(zap.DebugLevel, slots.Slot{}, l.begun, "in full: "+whole, "")
		}
	}
}

// ofAll reports that an event is about the store, and so about all workers of a process, though one had it.
func ofAll(e event.Event) bool {
	switch e.(type) {
	case event.StoreFailed, event.Throttled, event.ClockSample, event.ClockJump, event.StoreWarning, event.WatchFailed, event.RosterFailed:
		return true
	}
	return false
}

// detail is what a store's error says besides its text, or empty.
func detail(e event.Event) string {
	field := reflect.ValueOf(e).FieldByName("Err")
	if !field.IsValid() || field.IsNil() {
		return ""
	}
	err, _ := field.Interface().(error)
	if whole := store.Detail(err); !strings.Contains(err.Error(), whole) {
		return whole
	}
	return ""
}

// eventFields are the fields of an event that event.LogToZap doesn't log: the
// bounds of its slot, or the slot of the newest lease for an event without one.
func eventFields(e event.Event, begun slots.Slot) []zap.Field {
	about := slotOf(e)
	if about.IsZero() {
		return slotFields(about, begun)
	}
	fields := bounds(about)
	if e, ok := e.(event.TaskFailed); ok {
		var command interface{ ExitCode() int }
		if errors.As(e.Err, &command) {
			fields = append(fields, zap.Int("exitCode", command.ExitCode()))
		}
	}
	return fields
}

// slotOf is the slot that an event is about, if it is about one: its own, or that of its
// lease.
func slotOf(e event.Event) (about slots.Slot) {
	fields := reflect.ValueOf(e)
	if lease := fields.FieldByName("Lease"); lease.IsValid() {
		fields = lease
	}
	if slot := fields.FieldByName("Slot"); slot.IsValid() {
		about, _ = slot.Interface().(slots.Slot)
	}
	return about
}
