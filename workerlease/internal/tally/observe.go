package tally

import "github.com/slotlease/slotlease/workerlease"

// Observe counts an event.
func (t *Tally) Observe(e workerlease.Event) {
	t.mu.Lock()
	defer t.mu.Unlock()
	s := t.of(e.Of().WorkerType)
	switch e := e.(type) {
	case workerlease.Started:
		t.join(member{e.Self, s})
	case workerlease.Claimed:
		s.add(slotsWon, 1)
		t.observe(s, early, e.Early)
	case workerlease.Lost:
		s.add(slotsLost, 1)
		if e.Inversion {
			s.add(inverted, 1)
		}
	case workerlease.Missed:
		s.addBy(missed, value(e.Why), float64(e.Count))
	case workerlease.SlotDone:
		s.add(slotsDone, 1)
	case workerlease.Exhausted:
		s.add(exhausted, 1)
	case workerlease.Allocated:
		s.add(allocated, 1)
		t.hold(s, 1)
		t.observe(s, delay, e.Late)
	case workerlease.Extended:
		s.add(extended, 1)
	case workerlease.Expired:
		s.addBy(expired, value(e.Why), 1)
		t.hold(s, -1)
	case workerlease.Released:
		s.add(released, 1)
	case workerlease.Lapsed:
		s.add(lapsed, 1)
	case workerlease.Vanished:
		s.add(vanished, 1)
	default:
		t.observeCode(s, e)
	}
}

// observeCode counts what the user's code does.
func (t *Tally) observeCode(s *series, e workerlease.Event) {
	switch e := e.(type) {
	case workerlease.TaskSucceeded:
		s.add(succeeded, 1)
		if e.Took > 0 {
			t.observe(s, duration, e.Took)
		}
		if !e.At.IsZero() {
			last := &s.sums[lastSuccess.number][0]
			*last, s.seen[lastSuccess.number] = max(*last, float64(e.At.UnixMilli())/1000), true
		}
	case workerlease.TaskFailed:
		s.addBy(failed, returned, 1)
	case workerlease.Panic:
		s.addBy(failed, panicked, 1)
	case workerlease.Faltered:
		s.addBy(failed, reported, 1)
	case workerlease.Overrun:
		s.add(overruns, 1)
	case workerlease.StopFailed:
		s.add(stopsFailed, 1)
	case workerlease.SteppedBack:
		s.add(steppedBack, 1)
	default:
		t.observeStore(s, e)
	}
}

// observeStore counts what the store answers.
func (t *Tally) observeStore(s *series, e workerlease.Event) {
	switch e := e.(type) {
	case workerlease.Operated:
		s.addBy(storeOperations, value(e.Operation), 1)
		t.observe(s, roundTrip, e.Took)
	case workerlease.StoreFailed:
		s.addBy(storeErrors, value(e.Operation), 1)
	case workerlease.Throttled:
		s.addBy(throttled, value(e.Operation), 1)
	case workerlease.Unknown:
		s.add(unknown, 1)
	case workerlease.Conflict:
		s.add(conflicts, 1)
	case workerlease.Charged:
		s.addBy(charges, value(e.Operation), e.Units)
	case workerlease.Trimmed:
		s.add(trimmed, float64(e.Count))
	case workerlease.Poison:
		s.add(poisoned, 1)
	case workerlease.PoisonReset:
		s.add(resets, 1)
	case workerlease.Blocked:
		s.add(blocks, 1)
	case workerlease.ScheduleMismatch:
		s.add(mismatches, 1)
	case workerlease.RosterFailed:
		s.add(rosterFailed, 1)
	case workerlease.WatchFailed:
		s.add(watchFailed, 1)
	case workerlease.ClockJump:
		s.addBy(jumps, verdicts[e.Verdict], 1)
	case workerlease.TooUncertain:
		s.add(tooUncertain, 1)
	}
}
