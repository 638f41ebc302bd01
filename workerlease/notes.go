package workerlease

import (
	"cmp"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"time"

	"github.com/slotlease/slotlease/slots"
	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/workerlease/event"
	"github.com/slotlease/slotlease/workerlease/internal/machine"
)

func (w *WorkerLease) label() event.Worker {
	return event.Worker{WorkerType: w.options.WorkerType, InstanceID: w.options.InstanceID}
}

// emit passes an event to the observer.
func (w *WorkerLease) emit(e event.Event) {
	switch e := e.(type) {
	case event.ClockJump:
		if e.Verdict == event.ClockInQuestion {
			w.report(fmt.Errorf("%s: %w: server %s now says %s",
				w.options.WorkerType, ErrClockJumped, e.Server, store.Format(e.StoreTime)))
		}
	case event.Charged:
		w.count(func(p *progress) { p.charges.add(e.Operation, e.Units) })
	case event.TaskFailed, event.Panic, event.Faltered, event.WorkerDied:
		w.count(func(p *progress) { p.failed++ })
	case event.Skipped:
		w.count(func(p *progress) { p.skipped++ })
	case event.Exhausted:
		w.count(func(p *progress) { p.givenUp++ })
	}
	if w.listen != nil {
		w.listen(e)
	}
	if w.client.observer != nil && (w.main == nil || tells(e)) {
		w.outside(&inObserver, func() { w.client.observer.Observe(e) })
	}
	switch e := e.(type) {
	case event.ClockSample:
		w.noteUncertainty(e.Uncertainty)
		w.noteWarning()
	case event.Missed:
		if e.Why == TooLate {
			w.noteUncertainty(w.now().Uncertainty()) // Samples may all be those of other workers.
		}
	}
}

// warning is what the store says of itself, or empty.
func (c *Client) warning() string {
	return c.described.Warning()
}

// storeNote returns what the store adds to its time; empty if it adds nothing.
func (c *Client) storeNote() string {
	return c.described.Note()
}

// mostWarnings is how many shortcomings of a store a worker reports.
const mostWarnings = 10

// figures are the durations in a warning, which may differ each time.
var figures = regexp.MustCompile(`\s(\d+(\.\d+)?(h|ms|µs|ns|m|s))+\b`)

// noteWarning reports each shortcoming that the store describes once.
func (w *WorkerLease) noteWarning() {
	text := w.client.warning()
	about := figures.ReplaceAllLiteralString(text, "")
	if text == "" || slices.Contains(w.warned, about) || len(w.warned) == mostWarnings {
		return
	}
	w.warned = append(w.warned, about)
	w.report(fmt.Errorf("%s: %s", w.options.WorkerType, text))
	w.emit(event.StoreWarning{Worker: w.label(), Text: text})
}

// note turns a note of the machine into an event, counts and errors.
func (w *WorkerLease) note(n machine.Note) {
	var e event.Event
	switch n.What { // Of all of them, as lint holds: each of these functions has the cases named here.
	case machine.Claimed, machine.Joined, machine.Lost, machine.Allocated, machine.Extended, machine.Expired, machine.Missed, machine.Released, machine.Overrun:
		e = w.aboutLease(n)
	case machine.Outlasted, machine.SlotDone, machine.WorkerDied, machine.Exhausted, machine.Postponed, machine.Resting:
		e = w.aboutJob(n)
	case machine.BecameUnfit, machine.BecameFit, machine.SteppedBack:
		e = w.aboutWorker(n)
	case machine.Conflict, machine.Unknown, machine.Failed, machine.Cleared:
		e = w.aboutStore(n)
	case machine.Poison, machine.Blocked, machine.Reset, machine.Vanished, machine.Forgot, machine.Mismatch, machine.OtherWork:
		e = w.aboutLedger(n)
	}
	w.emit(e)
}

// aboutLease is the event of a note about a slot that is won or lost, and its lease; nil of others.
func (w *WorkerLease) aboutLease(n machine.Note) event.Event {
	me := w.label()
	switch n.What {
	case machine.Claimed, machine.Joined:
		return event.Claimed{
			Worker: me, Slot: n.Slot, Seq: n.Record.Seq, Token: n.Record.Token,
			Joined: n.What == machine.Joined, Early: n.Slot.Start.Sub(w.now().Mid()),
		}
	case machine.Lost:
		return w.lost(n)
	case machine.Allocated:
		w.noteMissed(n.Slot, "", false)
		return event.Allocated{Worker: me, Lease: w.active.Load().lease().plain(), Late: w.now().Mid().Sub(n.Slot.Start)}
	case machine.Extended:
		return event.Extended{Worker: me, Lease: w.active.Load().lease().plain(), Seq: n.Record.Seq}
	case machine.Expired:
		ended := w.active.Load().lease()
		if n.Why == machine.WindowEnded {
			w.noteLapse(ended)
		}
		return event.Expired{Worker: me, Lease: ended.plain(), Why: reason(n.Why), Early: n.Why == machine.WindowEnded && w.endsEarly(ended)}
	case machine.Missed:
		missed := w.between(n.Slot.Start, n.Until)
		if w.main == nil {
			w.count(func(p *progress) { p.missed += missed })
		}
		w.noteMissed(slots.Slot{Start: n.Slot.Start, End: n.Until}, "nobody had it: "+string(reason(n.Why)), false)
		return event.Missed{Worker: me, Slot: n.Slot, Until: n.Until, Count: missed, Why: reason(n.Why)}
	case machine.Released:
		return event.Released{Worker: me, Slot: n.Slot, Seq: n.Record.Seq, At: n.Record.WindowStart}
	case machine.Overrun:
		return event.Overrun{Worker: me, Slot: n.Slot}
	default:
		return nil
	}
}

// lost counts a slot that another worker has, and says why.
func (w *WorkerLease) lost(n machine.Note) event.Event {
	if w.main == nil {
		w.count(func(p *progress) { p.lost++ })
	}
	done := w.machine.Once && w.machine.IsDone(machine.Standard.Carry(n.Record), n.Slot)
	why := fmt.Sprintf("%s has it, with priority %d", cmp.Or(n.Record.Group, n.Record.InstanceID), n.Record.Priority)
	if done {
		why = "its job is done"
	}
	w.noteMissed(n.Slot, why, true)
	return event.Lost{Worker: w.label(), Slot: n.Slot, Holder: n.Record, Inversion: n.Record.Priority > w.machine.Effective(&w.state), Done: done}
}

// aboutJob is the event of a note about the work of a slot; nil of others.
func (w *WorkerLease) aboutJob(n machine.Note) event.Event {
	me := w.label()
	switch n.What {
	case machine.Outlasted:
		return event.Skipped{Worker: me, Slot: n.Slot, Running: n.Of, Since: n.Until, Row: n.Count}
	case machine.SlotDone:
		return event.SlotDone{Worker: me, Slot: n.Slot, Seq: n.Record.Seq}
	case machine.WorkerDied:
		return event.WorkerDied{Worker: me, Slot: n.Slot, Attempt: n.Count, Holder: n.Record.InstanceID, GivenUp: w.machine.LastAttempt(n.Count - n.Record.Spared)}
	case machine.Exhausted:
		w.report(w.exhausted(n.Slot, n.Count))
		return event.Exhausted{Worker: me, Slot: n.Slot, Attempts: n.Count}
	case machine.Postponed:
		return event.Postponed{Worker: me, Slot: n.Slot, Attempts: n.Count, After: n.Until}
	case machine.Resting:
		return event.Rested{Worker: me, Lease: w.active.Load().lease().plain(), Until: n.Until}
	default:
		return nil
	}
}

// aboutWorker is the event of a note about what a worker may claim; nil of others.
func (w *WorkerLease) aboutWorker(n machine.Note) event.Event {
	me := w.label()
	switch n.What {
	case machine.BecameUnfit:
		return event.BecameIneligible{Worker: me, Slot: n.Slot, Err: n.Err}
	case machine.BecameFit:
		return event.BecameEligible{Worker: me, Slot: n.Slot}
	case machine.SteppedBack:
		return event.SteppedBack{Worker: me, Slot: n.Slot, Failures: n.Count, Until: n.Until}
	default:
		return nil
	}
}

// aboutStore is the event of a note about how an operation has ended; nil of others.
func (w *WorkerLease) aboutStore(n machine.Note) event.Event {
	me := w.label()
	switch n.What {
	case machine.Conflict:
		return event.Conflict{Worker: me, Seq: n.Record.Seq}
	case machine.Unknown:
		w.report(fmt.Errorf("%s: append seq %d: outcome unknown: %w", w.options.WorkerType, n.Record.Seq, n.Err))
		if e := w.throttled(machine.Appending, n.Err); e != nil {
			return e
		}
		return event.Unknown{Worker: me, Seq: n.Record.Seq, Err: n.Err, Again: w.fails(machine.Appending, n.Err)}
	case machine.Failed:
		w.report(fmt.Errorf("%s: %s: %w", w.options.WorkerType, n.Op, n.Err))
		if e := w.throttled(n.Op, n.Err); e != nil {
			return e
		}
		return event.StoreFailed{Worker: me, Operation: n.Op.String(), Err: n.Err, Again: w.fails(n.Op, n.Err)}
	case machine.Cleared:
		return event.Trimmed{Worker: me, Count: n.Count}
	default:
		return nil
	}
}

// aboutLedger is the event of a note about what is odd about the records; nil of others.
func (w *WorkerLease) aboutLedger(n machine.Note) event.Event {
	me := w.label()
	switch n.What {
	case machine.Poison:
		w.report(fmt.Errorf("%s: seq %d can't be obeyed: %w", w.options.WorkerType, n.Record.Seq, n.Err))
		return event.Poison{Worker: me, Seq: n.Record.Seq, Err: n.Err}
	case machine.Blocked:
		done := n.Record.WindowEnd.Before(n.Until)
		w.report(fmt.Errorf("%s: seq %d leaves nothing to claim until %s", w.options.WorkerType, n.Record.Seq, store.Format(n.Until)))
		return event.Blocked{Worker: me, Seq: n.Record.Seq, Until: n.Until, Done: done}
	case machine.Reset:
		return event.PoisonReset{Worker: me, Seq: n.Record.Seq, Reason: n.Record.Metadata}
	case machine.Vanished:
		err := fmt.Errorf("%s: seq %d: %w: %w", w.options.WorkerType, n.Record.Seq, ErrRecordVanished, n.Err)
		w.report(err)
		return event.Vanished{Worker: me, Seq: n.Record.Seq, Err: err}
	case machine.Forgot:
		err := fmt.Errorf("%s: %w: %w", w.options.WorkerType, store.ErrWentBack, n.Err)
		if !n.Until.IsZero() {
			err = fmt.Errorf("%w: another worker may still work by what was lost, so nothing is claimed before %s", err, store.Format(n.Until))
			w.noteMissed(n.Slot, "nobody had it: "+string(StoreWentBack), false)
		}
		w.report(err)
		return event.WentBack{Worker: me, Seq: n.Record.Seq, Until: n.Until, Err: err}
	case machine.OtherWork:
		e := event.WorkMismatch{Worker: me, Ours: w.options.Work, Theirs: n.Record.Work, Holder: n.Record.InstanceID}
		w.report(fmt.Errorf("%s: %s", w.options.WorkerType, e.Text()))
		return e
	case machine.Mismatch:
		e := event.ScheduleMismatch{
			Worker: me, Ours: w.options.Schedule.String(), Theirs: n.Record.Schedule, Holder: n.Record.InstanceID,
			OurSlot: n.Slot, TheirSlot: slots.Slot{Start: n.Record.SlotStart, End: n.Record.SlotEnd},
		}
		w.report(fmt.Errorf("%s: %s", w.options.WorkerType, e.Text()))
		return e
	default:
		return nil
	}
}

// throttled is the event of an operation for which a store asks for a pause; nil if it doesn't.
func (w *WorkerLease) throttled(op machine.Op, err error) event.Event {
	t, ok := errors.AsType[*store.ThrottledError](err)
	if !ok {
		return nil
	}
	return event.Throttled{Worker: w.label(), Operation: op.String(), RetryAfter: t.RetryAfter, Err: err, Again: w.fails(op, err)}
}

// count counts what a worker does, for the one that it serves, if it does.
func (w *WorkerLease) count(f func(*progress)) {
	if w.main != nil {
		w = w.main
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	f(&w.progress)
}

// between counts the slots that start in [from, to), as far as that is quick.
func (w *WorkerLease) between(from, to time.Time) int {
	const enough = 10_000
	n := 0
	for slot := range slots.Upcoming(w.options.Schedule, from.Add(-1)) {
		if !slot.Start.Before(to) || n == enough {
			break
		}
		n++
	}
	return n
}

// panicked are the events of a callback that panicked with err; none if err is nil.
func (w *WorkerLease) panicked(h *activeLease, err error) []event.Event {
	if err == nil {
		return nil
	}
	return []event.Event{event.Panic{Worker: w.label(), Slot: h.lease().Slot, Err: err}}
}
