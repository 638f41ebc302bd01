package tally

import (
	"cmp"

	"github.com/slotlease/slotlease/workerlease"
	"github.com/slotlease/slotlease/workerlease/event"
)

// Observe counts an event.
func (t *Tally) Observe(e event.Event) {
	t.mu.Lock()
	defer t.mu.Unlock()
	s := t.of(e.Of().WorkerType)
	switch e := e.(type) {
	case event.Started:
		w, _ := e.Self.(*workerlease.WorkerLease)
		t.join(member{w, s})
	case event.Claimed:
		s.add(slotsWon, 1)
		t.observe(s, early, e.Early)
	case event.Lost:
		s.add(slotsLost, 1)
		if e.Inversion {
			s.add(inverted, 1)
		}
	case event.Missed:
		s.addBy(missed, value(e.Why), float64(e.Count))
	case event.SlotDone:
		s.add(slotsDone, 1)
	case event.Exhausted:
		s.add(givenUp, 1)
	case event.Skipped:
		s.add(skipped, 1)
		if e.Row > 1 {
			s.add(again, 1)
		}
	case event.Allocated:
		s.add(allocated, 1)
		t.hold(s, 1)
		t.observe(s, delay, e.Late)
	case event.Extended:
		s.add(extended, 1)
	case event.Expired:
		s.addBy(expired, value(e.Why), 1)
		t.hold(s, -1)
	case event.Released:
		s.add(released, 1)
	case event.Lapsed:
		s.add(lapsed, 1)
	case event.Vanished:
		s.add(vanished, 1)
	default:
		t.observeCode(s, e)
	}
}

// observeCode counts what the user's code does.
func (t *Tally) observeCode(s *series, e event.Event) {
	switch e := e.(type) {
	case event.TaskSucceeded:
		s.add(succeeded, 1)
		if e.Took > 0 {
			t.observe(s, duration, e.Took)
		}
		if !e.At.IsZero() {
			last := &s.sums[lastSuccess.number][0]
			*last, s.seen[lastSuccess.number] = max(*last, float64(e.At.UnixMilli())/1000), true
		}
	case event.TaskFailed:
		s.addBy(failed, cmp.Or(causes[e.Cause], returned), 1)
	case event.WorkerDied:
		s.addBy(failed, died, 1)
	case event.Panic:
		s.addBy(failed, panicked, 1)
	case event.Faltered:
		s.addBy(failed, reported, 1)
	case event.Overrun:
		s.add(overruns, 1)
	case event.StopFailed:
		s.add(stopsFailed, 1)
	case event.SteppedBack:
		s.add(steppedBack, 1)
	default:
		t.observeStore(s, e)
	}
}

// observeStore counts what the store answers.
func (t *Tally) observeStore(s *series, e event.Event) {
	switch e := e.(type) {
	case event.Operated:
		s.addBy(storeOperations, value(e.Operation), 1)
		t.observe(s, roundTrip, e.Took)
	case event.StoreFailed:
		s.addBy(storeErrors, value(e.Operation), 1)
	case event.Throttled:
		s.addBy(throttled, value(e.Operation), 1)
	case event.Unknown:
		s.add(unknown, 1)
	case event.Conflict:
		s.add(conflicts, 1)
	case event.Charged:
		s.addBy(charges, value(e.Operation), e.Units)
	case event.Trimmed:
		s.add(trimmed, float64(e.Count))
	case event.Poison:
		s.add(poisoned, 1)
	case event.PoisonReset:
		s.add(resets, 1)
	case event.WentBack:
		s.add(wentBack, 1)
	case event.Blocked:
		s.add(blocks, 1)
	case event.ScheduleMismatch, event.WorkMismatch:
		s.add(mismatches, 1)
	case event.RosterFailed:
		s.add(rosterFailed, 1)
	case event.WatchFailed:
		s.add(watchFailed, 1)
	case event.ClockJump:
		s.addBy(jumps, verdicts[e.Verdict], 1)
	case event.TooUncertain:
		s.add(tooUncertain, 1)
	}
}
