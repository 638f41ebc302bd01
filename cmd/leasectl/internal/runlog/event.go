package runlog

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"time"

	"go.uber.org/zap"

	"github.com/slotlease/slotlease/slots"
	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/workerlease"
)

// Observe logs what happens to the worker.
func (l *Log) Observe(e workerlease.Event) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if s, ok := e.(workerlease.ClockSample); ok && !l.outage.ready {
		l.outage.ready = true
		l.write(zap.InfoLevel, slots.Slot{}, l.begun, fmt.Sprintf("ready: store time %s ± %v", store.Format(s.StoreTime), s.Uncertainty.Round(time.Microsecond)),
			"ready", zap.String("storeTime", store.Format(s.StoreTime)), zap.Duration("uncertainty", s.Uncertainty))
	}
	// Also for JSON: it takes note of what happened.
	level, text := l.line(e)
	if o, ok := e.(workerlease.Overrun); ok && o.Slot.Start.Equal(l.over.Start) {
		return // The command is gone: its end and this event crossed.
	}
	if f, ok := e.(workerlease.StoreFailed); ok && l.stopping && errors.Is(f.Err, context.Canceled) {
		return // We broke the operation off.
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
	switch {
	case l.json:
		workerlease.LogTo(l.log.With(fields...)).Observe(e)
	case text != "":
		l.write(level, slots.Slot{}, l.begun, text, "")
		if whole != "" {
			l.write(zap.DebugLevel, slots.Slot{}, l.begun, "in full: "+whole, "")
		}
	}
}

// detail is what a store's error says besides its text, or empty.
func detail(e workerlease.Event) string {
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

// eventFields are the fields of an event that workerlease.LogTo doesn't log: the
// bounds of its slot, or the slot of the newest lease for an event without one.
func eventFields(e workerlease.Event, begun slots.Slot) []zap.Field {
	about := slotOf(e)
	if about.IsZero() {
		return slotFields(about, begun)
	}
	fields := bounds(about)
	if e, ok := e.(workerlease.TaskFailed); ok {
		var command interface{ ExitCode() int }
		if errors.As(e.Err, &command) {
			fields = append(fields, zap.Int("exitCode", command.ExitCode()))
		}
	}
	return fields
}

// slotOf is the slot that an event is about, if it is about one: its own, or that of its
// lease.
func slotOf(e workerlease.Event) (about slots.Slot) {
	fields := reflect.ValueOf(e)
	if lease := fields.FieldByName("Lease"); lease.IsValid() {
		fields = lease
	}
	if slot := fields.FieldByName("Slot"); slot.IsValid() {
		about, _ = slot.Interface().(slots.Slot)
	}
	return about
}
