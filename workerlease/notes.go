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
	"github.com/slotlease/slotlease/workerlease/internal/machine"
)

func (w *WorkerLease) label() Worker {
	return Worker{WorkerType: w.options.WorkerType, InstanceID: w.options.InstanceID}
}

// emit passes an event to the observer.
func (w *WorkerLease) emit(e Event) {
	switch e := e.(type) {
	case ClockJump:
		if e.Verdict == ClockInQuestion {
			w.report(fmt.Errorf("%s: %w: server %s now says %s",
				w.options.WorkerType, ErrClockJumped, e.Server, store.Format(e.StoreTime)))
		}
	case Charged:
		w.count(func(p *progress) { p.charges.add(e.Operation, e.Units) })
	}
	if w.listen != nil {
		w.listen(e)
	}
	if w.client.observer != nil {
		w.client.observer.Observe(e)
	}
	switch e := e.(type) {
	case ClockSample:
		w.noteUncertainty(e.Uncertainty)
		w.noteWarning()
	case Missed:
		if e.Why == TooLate {
			w.noteUncertainty(w.now().Uncertainty()) // Samples may all be those of other workers.
		}
	}
}

// warning is what the store says of itself, or empty.
func (c *Client) warning() string {
	if l, ok := c.ledger.(store.Warner); ok {
		return l.Warning()
	}
	return ""
}

// storeNote returns what the store adds to its time; empty if it adds nothing.
func (c *Client) storeNote() string {
	if l, ok := c.ledger.(store.Noter); ok {
		return l.Note()
	}
	return ""
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
	w.emit(StoreWarning{Worker: w.label(), Text: text})
}

// note turns a note of the machine into events, counts and errors.
func (w *WorkerLease) note(n machine.Note) {
	me := w.label()
	switch n.What {
	case machine.Claimed, machine.Joined:
		w.emit(Claimed{
			Worker: me, Slot: n.Slot, Seq: n.Record.Seq, Token: n.Record.Token,
			Joined: n.What == machine.Joined, Early: n.Slot.Start.Sub(w.now().Mid()),
		})
	case machine.Lost:
		w.count(func(p *progress) { p.lost++ })
		w.noteMissed(n.Slot, fmt.Sprintf("%s has it, with priority %d", cmp.Or(n.Record.Group, n.Record.InstanceID), n.Record.Priority), true)
		w.emit(Lost{Worker: me, Slot: n.Slot, Holder: n.Record, Inversion: n.Record.Priority > w.machine.Effective(&w.state)})
	case machine.Allocated:
		w.noteMissed(n.Slot, "", false)
		w.emit(Allocated{Worker: me, Lease: w.active.Load().lease(), Late: w.now().Mid().Sub(n.Slot.Start)})
	case machine.SlotDone:
		w.emit(SlotDone{Worker: me, Slot: n.Slot, Seq: n.Record.Seq})
	case machine.Exhausted:
		w.report(fmt.Errorf("%s: slot %v: was tried %d times, and is not done: MaxAttempts is %d", w.options.WorkerType, n.Slot, n.Count, w.options.job().MaxAttempts))
		w.emit(Exhausted{Worker: me, Slot: n.Slot, Attempts: n.Count})
	case machine.Postponed:
		w.emit(Postponed{Worker: me, Slot: n.Slot, Attempts: n.Count, After: n.Until})
	case machine.Resting:
		w.emit(Rested{Worker: me, Lease: w.active.Load().lease(), Until: n.Until})
	case machine.Extended:
		w.emit(Extended{Worker: me, Lease: w.active.Load().lease(), Seq: n.Record.Seq})
	case machine.Expired:
		ended := w.active.Load().lease()
		if n.Why == machine.WindowEnded {
			w.noteLapse(ended)
		}
		w.emit(Expired{Worker: me, Lease: ended, Why: reason(n.Why)})
	case machine.Missed:
		missed := w.between(n.Slot.Start, n.Until)
		w.count(func(p *progress) { p.missed += missed })
		w.noteMissed(slots.Slot{Start: n.Slot.Start, End: n.Until}, "nobody had it: "+string(reason(n.Why)), false)
		w.emit(Missed{Worker: me, Slot: n.Slot, Until: n.Until, Count: missed, Why: reason(n.Why)})
	case machine.BecameUnfit:
		w.count(func(p *progress) { p.ineligible = n.Err })
		w.emit(BecameIneligible{Worker: me, Slot: n.Slot, Err: n.Err})
	case machine.BecameFit:
		w.count(func(p *progress) { p.ineligible = nil })
		w.emit(BecameEligible{Worker: me, Slot: n.Slot})
	case machine.SteppedBack:
		w.emit(SteppedBack{Worker: me, Slot: n.Slot, Failures: n.Count, Until: n.Until})
	case machine.Released:
		w.emit(Released{Worker: me, Slot: n.Slot, Seq: n.Record.Seq, At: n.Record.WindowStart})
	case machine.Overrun:
		w.emit(Overrun{Worker: me, Slot: n.Slot})
	case machine.Conflict:
		w.emit(Conflict{Worker: me, Seq: n.Record.Seq})
	case machine.Unknown:
		w.report(fmt.Errorf("%s: append seq %d: outcome unknown: %w", w.options.WorkerType, n.Record.Seq, n.Err))
		if !w.throttled(machine.Appending, n.Err) {
			w.emit(Unknown{Worker: me, Seq: n.Record.Seq, Err: n.Err})
		}
	case machine.Failed:
		w.report(fmt.Errorf("%s: %s: %w", w.options.WorkerType, n.Op, n.Err))
		if !w.throttled(n.Op, n.Err) {
			w.emit(StoreFailed{Worker: me, Operation: n.Op.String(), Err: n.Err})
		}
	case machine.Cleared:
		w.emit(Trimmed{Worker: me, Count: n.Count})
	case machine.Poison:
		w.report(fmt.Errorf("%s: seq %d can't be obeyed: %w", w.options.WorkerType, n.Record.Seq, n.Err))
		w.emit(Poison{Worker: me, Seq: n.Record.Seq, Err: n.Err})
	case machine.Blocked:
		done := n.Record.WindowEnd.Before(n.Until)
		w.report(fmt.Errorf("%s: seq %d leaves nothing to claim until %s", w.options.WorkerType, n.Record.Seq, store.Format(n.Until)))
		w.emit(Blocked{Worker: me, Seq: n.Record.Seq, Until: n.Until, Done: done})
	case machine.Reset:
		w.emit(PoisonReset{Worker: me, Seq: n.Record.Seq, Reason: n.Record.Metadata})
	case machine.Vanished:
		err := fmt.Errorf("%s: seq %d: %w: %w", w.options.WorkerType, n.Record.Seq, ErrRecordVanished, n.Err)
		w.report(err)
		w.emit(Vanished{Worker: me, Seq: n.Record.Seq, Err: err})
	case machine.Mismatch:
		w.report(fmt.Errorf("%s: schedule mismatch: this worker has %q, %s has %q",
			w.options.WorkerType, w.options.Schedule, n.Record.InstanceID, n.Record.Schedule))
		w.emit(ScheduleMismatch{
			Worker: me, Ours: w.options.Schedule.String(), Theirs: n.Record.Schedule, Holder: n.Record.InstanceID,
		})
	}
}

// throttled reports that a store asks for a pause, and emits that.
func (w *WorkerLease) throttled(op machine.Op, err error) bool {
	t, ok := errors.AsType[*store.ThrottledError](err)
	if !ok {
		return false
	}
	w.emit(Throttled{Worker: w.label(), Operation: op.String(), RetryAfter: t.RetryAfter, Err: err})
	return true
}

func (w *WorkerLease) count(f func(*progress)) {
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
func (w *WorkerLease) panicked(h *activeLease, err error) []Event {
	if err == nil {
		return nil
	}
	return []Event{Panic{Worker: w.label(), Slot: h.lease().Slot, Err: err}}
}
