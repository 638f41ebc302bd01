package runlog

import (
	"fmt"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/slotlease/slotlease/cmd/leasectl/internal/display"
	"github.com/slotlease/slotlease/slots"
	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/workerlease"
	"github.com/slotlease/slotlease/workerlease/event"
)

// shortSlot is up to which length of slots only a debug log says who has them, and what comes next:
// it would be little else.
const shortSlot = 10 * time.Second

// ahead is what a worker waits for, for the lines about it.
type ahead struct {
	schedule slots.Schedule                 // nil: none is known
	waits    bool                           // for the next boundary, when it starts
	joins    func(slots.Slot) time.Duration // up to how late in a slot it doesn't wait; nil: it does in any case
	// lost is the newest slot that another has, or has done, and token the lease by which.
	lost  slots.Slot
	token int64
	done  bool
}

// sample is a sample of store time, and the local time of it. The zero value: it isn't known.
type sample struct{ store, at time.Time }

// storeTime is store time at a local time; zero if it isn't known.
func (s sample) storeTime(now time.Time) time.Time {
	if s.store.IsZero() {
		return time.Time{}
	}
	return s.store.Add(now.Sub(s.at))
}

// next is the slot that begins next, by store time, and how soon. It is zero if that isn't known.
func (l *Log) next(now time.Time) (slot slots.Slot, in time.Duration) {
	at := l.clock.storeTime(now)
	if l.ahead.schedule == nil || at.IsZero() {
		return slots.Slot{}, 0
	}
	slot = l.ahead.schedule.Next(at)
	return slot, slot.Start.Sub(at)
}

// level is that of a line about what is ahead, by a slot.
func (l *Log) level(about slots.Slot) zapcore.Level {
	if about.Length() < shortSlot && !l.once {
		return zap.DebugLevel
	}
	return zap.InfoLevel
}

// nextSlot is what comes next, as text after a separator, and as fields.
func (l *Log) nextSlot(now time.Time) (text string, fields []zap.Field) {
	slot, in := l.next(now)
	if slot.IsZero() {
		return "", nil
	}
	return fmt.Sprintf("next slot %s in %s", store.Format(slot.Start), display.Brief(in)), []zap.Field{
		zap.String("nextSlot", store.Format(slot.Start)), zap.Int64("nextSlotInMs", in.Milliseconds()),
	}
}

// lookAhead logs what comes next after an event: who has the slot and until when, or that it is done,
// and when the next one begins. The caller holds mu.
func (l *Log) lookAhead(e event.Event) {
	switch e := e.(type) {
	case event.ClockSample:
		l.clock = sample{e.StoreTime, l.now()}
		for _, w := range l.waiting {
			w.firstSlot()
		}
		l.waiting = nil
	case event.Lost:
		a, done := &l.ahead, e.Done
		if same := e.Slot == a.lost && e.Holder.Token == a.token && done == a.done; !same {
			a.lost, a.token, a.done = e.Slot, e.Holder.Token, done
			l.lost(e)
		}
	case event.HolderChanged:
		// Another has taken the slot over that was lost. (The next one is told when it is lost.)
		h, slot := e.Holder, l.ahead.lost
		if slot.IsZero() || e.Released || h.InstanceID == l.worker.InstanceID || h.Token == l.ahead.token || h.From.Before(slot.Start) || !h.From.Before(slot.End) {
			return
		}
		l.ahead.token = h.Token
		l.standby(slot, h.InstanceID, h.Priority, h.Until, "")
	case event.SlotDone:
		now := l.now()
		if !l.clock.storeTime(now).Before(e.Slot.End) {
			return // A slot since may be begun at once, or be run late.
		}
		if text, fields := l.nextSlot(now); text != "" && !l.once {
			l.write(l.level(e.Slot), slots.Slot{}, l.begun, text, "next slot", fields...)
		}
	}
}

// expect takes in what a worker waits for when it starts. The caller holds mu.
func (l *Log) expect(o workerlease.Options) {
	joins := o.FailoverWithin > 0 || o.Continuous || o.Job != nil
	// A member of a group joins the lease that this holds.
	l.ahead.schedule, l.ahead.waits = o.Schedule, (!joins || o.WaitForBoundary) && o.Group == "" && !l.once
	// A job that catches up may begin with an earlier slot at any time.
	if t, err := o.Timing(); err == nil && o.Job != nil && o.Job.CatchUp == workerlease.CatchUpNone && !l.ahead.waits && !l.once {
		l.ahead.waits, l.ahead.joins = true, t.StartWithin
	}
}

// awaitFirst sees to it that what a worker that has started waits for is logged, once store time is known. The caller
// holds mu.
func (l *Log) awaitFirst() {
	switch {
	case !l.ahead.waits:
	case l.clock.store.IsZero():
		l.waiting = append(l.waiting, l)
	default:
		l.firstSlot()
	}
}

// firstSlot logs what a worker that has started waits for.
func (l *Log) firstSlot() {
	now := l.now()
	slot, in := l.next(now)
	if slot.IsZero() {
		return
	}
	if at := l.clock.storeTime(now); l.ahead.joins != nil {
		if current := l.ahead.schedule.At(at); !at.After(current.Start.Add(l.ahead.joins(current))) {
			return
		}
	}
	l.write(l.level(slot), slots.Slot{}, l.begun, fmt.Sprintf("first slot %s in %s", store.Format(slot.Start), display.Brief(in)),
		"first slot", zap.String("nextSlot", store.Format(slot.Start)), zap.Int64("nextSlotInMs", in.Milliseconds()))
}

// lost logs who has a slot, or has done it.
func (l *Log) lost(e event.Lost) {
	h := e.Holder
	switch {
	case e.Done && h.SlotStart.Before(e.Slot.Start): // It is a record of the run that went on into the slot.
		l.write(l.level(e.Slot), e.Slot, l.begun, fmt.Sprintf("%s: skipped, since %q still ran for an earlier one", slotText(e.Slot), h.InstanceID),
			"slot passed over", zap.String("holder", h.InstanceID))
	case e.Done:
		by, fields := "", []zap.Field(nil)
		if h.SlotStart.Equal(e.Slot.Start) { // Otherwise the record is one of a later slot.
			by, fields = fmt.Sprintf(", by %q", h.InstanceID), []zap.Field{zap.String("doneBy", h.InstanceID)}
		}
		text, next := l.nextSlot(l.now())
		if text != "" {
			text = "; " + text
		}
		l.write(l.level(e.Slot), e.Slot, l.begun, slotText(e.Slot)+": is done already"+by+text, "slot done already", append(fields, next...)...)
	case !h.WindowStart.Before(e.Slot.End):
		l.write(l.level(e.Slot), e.Slot, l.begun, fmt.Sprintf("%s: %q has claimed the slot after it already", slotText(e.Slot), h.InstanceID),
			l.unheld(), zap.String("holder", h.InstanceID), zap.Int("holderPriority", h.Priority))
	default:
		l.standby(e.Slot, h.InstanceID, h.Priority, h.WindowEnd, inversion(e.Inversion))
	}
}

// standby logs that another has a slot. An end before that of the slot is put off as long as it lives.
func (l *Log) standby(slot slots.Slot, holder string, priority int, until time.Time, note string) {
	if until.Before(slot.End) {
		note = ", or longer while it lives" + note
	}
	l.write(l.level(slot), slot, l.begun, fmt.Sprintf("%s: %s: held by %q, priority %d, until %s%s", slotText(slot), l.unheld(), holder, priority, display.When(until, l.clock.storeTime(l.now())), note),
		l.unheld(), zap.String("holder", holder), zap.Int("holderPriority", priority), zap.String("until", store.Format(until)))
}

// unheld is what a worker is that doesn't get a slot.
func (l *Log) unheld() string {
	if l.once {
		return "not claimed"
	}
	return "standby"
}
