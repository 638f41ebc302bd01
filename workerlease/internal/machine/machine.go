package machine

import (
	"time"

	"github.com/slotlease/slotlease/slots"
	"github.com/slotlease/slotlease/workerlease/internal/timeline"
)

// Start is the state of a new worker on a time line with a history. The worker need
// not mind what came before the epoch that is settled. inQuestion reports that samples
// contradict one another of late; local is the local reading.
func Start(epoch, settled, jumps int, inQuestion bool, local time.Duration) State {
	s := State{Clock: Clock{Epoch: epoch, Settled: settled, Jumps: jumps}}
	if inQuestion {
		s.Clock.Resample, s.Clock.Jumped = timeline.Confirm, local
	}
	return s
}

// Machine decides for one worker.
type Machine struct{ Config }

// Step takes in an event and decides what to do. It changes nothing but what it returns.
func (m *Machine) Step(s State, at Moment, e Event) (State, []Action) {
	actions := m.Advance(&s, at, e)
	return s, actions
}

// Advance is Step for a state that nobody else looks at: it is changed in place, since copying
// one takes longer than most decisions.
func (m *Machine) Advance(s *State, at Moment, e Event) []Action {
	if s.Bid.Stage == Halted {
		return nil
	}
	x := &step{facts: facts{m: m, s: s, at: at}}
	x.besides()
	switch e.(type) {
	case Began, Skipped:
		// A decision of a moment ago comes before a change of the clock since: both
		// callbacks are called, or none.
		x.take(e)
		x.clock()
	default:
		x.clock()
		x.take(e)
	}
	x.progressed()
	s.pass(at.Local)
	x.hold()
	if s.Draining && !s.Hold.holding() && !s.Hold.Running && !s.Triggers.Trying {
		x.beginStop()
	}
	if x.s.Stopping {
		x.stop()
	} else {
		x.contend()
		s.Clock.Apart = x.apart()
		x.check()
		x.serve()
	}
	return x.out
}

// step is one call of Step. Its methods decide: they change the state, and add actions.
type step struct {
	facts
	took   time.Duration // by the operation whose reply this is
	hinted bool          // that is the head, read because of a hint
	news   bool          // the head has brought a preference
	out    []Action

	telling *Report // what that is the head for, read to tell it; nil: it is read for something else
}

func (x *step) do(a Action) { x.out = append(x.out, a) }

func (x *step) note(n Note) { x.do(Tell{n}) }

// ask begins a ledger operation.
func (x *step) ask(op Op, a Action) {
	x.s.Pending = op
	x.do(a)
}

// answered notes that an operation came back, and reports whether it was under way: a
// reply that is not waited for is ignored.
func (x *step) answered(op Op) bool {
	if x.s.Pending != op {
		return false
	}
	x.s.Pending = Nothing
	return true
}

func (f facts) backingOff() bool { return f.s.Retries.Until > f.at.Local }

// take takes in the event itself.
func (x *step) take(e Event) {
	s := x.s
	x.measure(e)
	switch e := e.(type) {
	case Sampled, HeadRead, RecordRead, Appended, Trimmed, Sighted:
		x.reply(e)
	case Began, Skipped, Panicked, Rested:
		if s.Hold.holding() {
			x.called(e)
		}
	case Finished:
		x.finished(e)
	case Faltered:
		x.faltered(e)
	case Worked:
		x.worked(e)
	case Returned:
		// While the lease is held nothing has returned: the event is a stray one.
		s.Hold.Running = s.Hold.Running && s.Hold.holding()
	case Hinted:
		s.Hint.Heard = true
	case Judged:
		x.judged(e)
	case Served:
		x.served(e)
	case Ranked:
		if s.Rank != e.Rank {
			s.Rank = e.Rank
			x.replan()
		}
	case Remembered:
		x.remembered(e)
	case Drain:
		s.Draining = true
	case Stop:
		x.beginStop()
	case GiveUp:
		x.beginStop()
		s.GivenUp = true
	}
}

// reply takes in how a ledger operation ended, unless nothing waits for it.
func (x *step) reply(e Event) {
	switch e := e.(type) {
	case Sampled:
		if x.answered(Sampling) {
			x.sampled(e)
		}
	case HeadRead:
		if x.answered(ReadingHead) {
			x.headRead(e)
		}
	case RecordRead:
		if x.answered(Probing) {
			x.probed(e)
		} else if x.answered(ReadingRecord) {
			x.recordRead(e)
		}
	case Appended:
		if x.answered(Appending) {
			x.appended(e)
		}
	case Trimmed:
		if x.answered(Trimming) {
			x.trimmed(e)
		}
	case Sighted:
		if x.answered(Sighting) {
			x.sighted(e)
		}
	}
}

// called takes in what has become of the user's code, while the lease is held.
func (x *step) called(e Event) {
	h := &x.s.Hold
	switch e := e.(type) {
	case Began:
		h.Began, h.FreedLate = x.at.Local, 0
		x.note(Note{What: Allocated, Slot: h.Held.Slot})
	case Skipped:
		h.leave()
		h.Running = false
		x.s.Bid.begun(h.Left.Claim, false)
		if e.Unwanted {
			x.unwanted()
		} else {
			x.outlast(h.Left)
		}
	case Panicked:
		// If the context had ended before the code panicked, the lease did not end by that.
		if x.at.Lapsed != 0 {
			return
		}
		x.fault(e.Work)
		if x.m.Failover > 0 {
			x.stepDown(CodePanicked)
		} else {
			x.expire(CodePanicked)
		}
	case Rested: // If the lease has ended meanwhile, the next one begins with a call.
		h.Resume = x.m.Schedule.Next(x.m.Schedule.At(x.at.Now.Mid()).Start).Start
		x.note(Note{What: Resting, Slot: h.Held.Slot, Until: h.Resume})
	}
}

// awaits reports that the user's code, which runs, must return before an act.
func (m *Machine) awaits(s *State, a Acts) bool {
	return (s.Hold.Running || s.Triggers.beside() && a != Releasing) && m.Rules.Await&a != 0
}

// mayBegin reports that the slot that was won may begin as soon as its time has come.
func (m *Machine) mayBegin(s *State) bool {
	return !s.Hold.holding() && !m.awaits(s, Beginning) && s.Clock.Resample == 0 && !s.Stopping
}

// blocked reports that the worker may claim nothing: user code overruns, or a
// slot is won that has not begun.
func (m *Machine) blocked(s *State) bool {
	return !s.Hold.holding() && m.awaits(s, Claiming) || !s.Hold.Next.IsZero()
}

// through reports that the worker has nothing more to contend for.
func (m *Machine) through(s *State) bool {
	return m.Single && !m.Continuous && (!m.Once || !m.Finishes || !s.Hold.holding()) && s.Bid.Slot.Start.After(s.Bid.First.Start)
}

// leaves is when the worker turns from the bid's slot to the next one: when the slot is
// abandoned or, if it is not the worker's to miss, when claims for the next one open.
func (m *Machine) leaves(s *State) time.Time {
	if s.Bid.Role != Claimant {
		return m.opens(m.Schedule.Next(s.Bid.Slot.Start))
	}
	return m.abandoned(s.Bid.Slot)
}

// abandoned is when a slot is given up that nobody is known to have.
func (m *Machine) abandoned(slot slots.Slot) time.Time {
	return m.Rules.Abandon(slot, m.opens(m.Schedule.Next(slot.Start)))
}

// Waits is what to wait for in a state, besides the operation under way.
func (m *Machine) Waits(s *State) []Wait {
	if s.Bid.Stage == Halted {
		return nil
	}
	w := m.holdWaits(s)
	if s.Clock.unsettled() && !s.Clock.SettleAt.IsZero() {
		w = append(w, Wait{Time: s.Clock.SettleAt, Edge: timeline.Earliest}, Wait{Local: s.Clock.SettleBy})
	}
	if s.Stopping && !s.GivenUp && s.Pending == Nothing {
		w = append(w, m.stopsBy(s)...)
	}
	w = append(w, m.bidWaits(s)...)
	w = append(w, m.checkWaits(s)...)
	w = append(w, m.tellWaits(s)...)
	w = append(w, m.serveWaits(s)...)
	if s.Pending == Nothing && s.Retries.Until == 0 && !s.Stopping && s.Bid.Stage == Aiming {
		w = append(w, m.aimWaits(s)...)
	}
	return w
}

// bidWaits is what the bid waits for.
func (m *Machine) bidWaits(s *State) []Wait {
	switch {
	case s.Pending != Nothing:
	case s.Retries.Until > 0:
		return []Wait{{Local: s.Retries.Until}}
	case s.Stopping || s.Bid.Slot.IsZero() || m.through(s):
	case s.Bid.Recheck > 0:
		return []Wait{{Local: s.Bid.Recheck}}
	case m.blocked(s):
		return []Wait{{Time: m.leaves(s), Edge: timeline.Mid}}
	case s.Bid.Stage == Aiming && m.waitsForCheck(s):
	case s.Bid.Stage == Aiming:
		return []Wait{{Time: m.begins(s), Edge: s.Bid.TurnEdge}}
	}
	return nil
}

// aimWaits is what may come before the turn of a bid: a hint, the end of a watch of poison, a sample.
func (m *Machine) aimWaits(s *State) (w []Wait) {
	if s.Hint.Heard && (m.waitsForOthers(s) || m.attends(s)) {
		w = append(w, Wait{Local: s.Hint.next()})
	}
	if s.View.Watch.Seq != 0 {
		w = append(w, Wait{Local: s.View.Watch.Over})
	}
	if s.Clock.SampleBy > 0 {
		w = append(w, Wait{Local: s.Clock.SampleBy})
	}
	return w
}

// holdWaits is what the lease that is held, and the one that was won, wait for.
func (m *Machine) holdWaits(s *State) (w []Wait) {
	until := func(t time.Time, e timeline.Edge) { w = append(w, Wait{Time: t, Edge: e}) }
	h := &s.Hold
	if h.holding() {
		until(m.Rules.Last(h.Held.End, m.Margin), m.Rules.EndBy)
		if !h.Resume.IsZero() {
			until(h.Resume, m.Rules.BeginBy)
		} else if m.needsProgress() {
			w = append(w, Wait{Local: s.Eligibility.Progressed + m.Stall})
		}
		w = append(w, m.finishWaits(s)...)
	}
	if h.overrunning() && !h.Overran {
		w = append(w, Wait{Local: h.Overdue})
	}
	if h.overrunning() && !h.Freed.IsZero() {
		until(m.abandoned(h.Freed), timeline.Mid)
	}
	if !h.Next.IsZero() {
		until(m.Rules.Last(h.Next.End, m.Margin), m.Rules.EndBy)
		if m.Rules.GivesBack&WhileOverrun != 0 && h.keepsNext() && m.Group == "" && s.Closing.Done.IsZero() && !s.Stopping {
			until(m.keeps(h.Next), timeline.Earliest)
		}
		if m.mayBegin(s) && !m.unfitFor(s, Beginning) && !h.Looking && (s.Pending == Nothing && s.Retries.Until == 0 || !m.mustLook(h)) {
			until(h.Next.Start, m.Rules.BeginBy)
		}
	}
	return w
}
