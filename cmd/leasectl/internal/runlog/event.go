package runlog

import (
	"context"
	"errors"
	"fmt"
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
	switch {
	case l.json:
		workerlease.LogTo(l.log.With(eventFields(e, l.begun)...)).Observe(e)
	case text != "":
		l.write(level, slots.Slot{}, l.begun, text, "")
	}
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

// slotOf is the slot that an event is about, if it is about one.
func slotOf(e workerlease.Event) slots.Slot {
	switch e := e.(type) {
	case workerlease.Claimed:
		return e.Slot
	case workerlease.Lost:
		return e.Slot
	case workerlease.Allocated:
		return e.Lease.Slot
	case workerlease.Extended:
		return e.Lease.Slot
	case workerlease.Expired:
		return e.Lease.Slot
	case workerlease.Missed:
		return e.Slot
	case workerlease.Released:
		return e.Slot
	case workerlease.Overrun:
		return e.Slot
	case workerlease.Panic:
		return e.Slot
	case workerlease.SlotDone:
		return e.Slot
	case workerlease.Exhausted:
		return e.Slot
	case workerlease.TaskFailed:
		return e.Lease.Slot
	}
	return slots.Slot{}
}
