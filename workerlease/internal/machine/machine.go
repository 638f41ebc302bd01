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
	s.Report.pass(at.Local)
	x.hold()
	if x.s.Stopping {
		x.stop()
	} else {
		x.contend()
		s.Clock.Apart = x.apart()
		x.check()
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

	telling bool // that is the head, read to tell what came of a slot's work
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
	case Wake:
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
	case Began:
		if s.Hold.holding() {
			s.Hold.Began = x.at.Local
			x.note(Note{What: Allocated, Slot: s.Hold.Held.Slot})
		}
	case Skipped:
		if s.Hold.holding() {
			slot := s.Hold.Held.Slot
			x.note(Note{What: Missed, Slot: slot, Until: slot.End, Why: TooLate})
			s.Hold.leave()
			s.Hold.Running = false
		}
	case Panicked:
		// If the context had ended before the code panicked, the lease did not end by that.
		if s.Hold.holding() && x.at.Lapsed == 0 {
			x.fault(e.Work)
			x.expire(CodePanicked)
		}
	case Finished:
		x.finished(e)
	case Rested:
		if s.Hold.holding() { // If the lease has ended meanwhile, the next one begins with a call.
			s.Hold.Resume = x.m.Schedule.Next(x.m.Schedule.At(x.at.Now.Mid()).Start).Start
			x.note(Note{What: Resting, Slot: s.Hold.Held.Slot, Until: s.Hold.Resume})
		}
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
	case Ranked:
		if s.Rank != e.Rank {
			s.Rank = e.Rank
			x.replan()
		}
	case Remembered:
		x.remembered(e)
	case Stop:
		x.beginStop()
	case GiveUp:
		x.beginStop()
		s.GivenUp = true
	}
}

// awaits reports that the user's code, which runs, must return before an act.
func (m *Machine) awaits(s *State, a Acts) bool { return s.Hold.Running && m.Rules.Await&a != 0 }

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
	return m.Single && !m.Continuous && s.Bid.Slot.Start.After(s.Bid.First.Start)
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
	var w []Wait
	until := func(t time.Time, e timeline.Edge) { w = append(w, Wait{Time: t, Edge: e}) }
	h := &s.Hold
	if h.holding() {
		until(m.Rules.Last(h.Held.End, m.Margin), m.Rules.EndBy)
		if !h.Resume.IsZero() {
			until(h.Resume, m.Rules.BeginBy)
		} else if m.needsProgress() {
			w = append(w, Wait{Local: s.Eligibility.Progressed + m.Stall})
		}
	}
	if h.overrunning() && !h.Overran {
		w = append(w, Wait{Local: h.Overdue})
	}
	if h.overrunning() && !h.Freed.IsZero() {
		until(m.abandoned(h.Freed), timeline.Mid)
	}
	if !h.Next.IsZero() {
		until(m.Rules.Last(h.Next.End, m.Margin), m.Rules.EndBy)
		if m.Rules.GivesBack&WhileOverrun != 0 && h.keepsNext() && m.Group == "" && s.Closing.DoneUntil.IsZero() && !s.Stopping {
			until(m.keeps(h.Next), timeline.Earliest)
		}
		if m.mayBegin(s) && !m.unfitFor(s, Beginning) && !h.Looking && (s.Pending == Nothing && s.Retries.Until == 0 || !m.mustLook(h)) {
			until(h.Next.Start, m.Rules.BeginBy)
		}
	}
	if s.Clock.unsettled() && !s.Clock.SettleAt.IsZero() {
		until(s.Clock.SettleAt, timeline.Earliest)
		w = append(w, Wait{Local: s.Clock.SettleBy})
	}
	if s.Stopping && !s.GivenUp && s.Pending == Nothing {
		w = append(w, m.stopsBy(s)...)
	}
	switch {
	case s.Pending != Nothing:
	case s.Retries.Until > 0:
		w = append(w, Wait{Local: s.Retries.Until})
	case s.Stopping || s.Bid.Slot.IsZero() || m.through(s):
	case s.Bid.Recheck > 0:
		w = append(w, Wait{Local: s.Bid.Recheck})
	case m.blocked(s):
		until(m.leaves(s), timeline.Mid)
	case s.Bid.Stage == Aiming && m.waitsForCheck(s):
	case s.Bid.Stage == Aiming:
		until(m.begins(s), s.Bid.TurnEdge)
	}
	w = append(w, m.checkWaits(s)...)
	w = append(w, m.tellWaits(s)...)
	if s.Pending == Nothing && s.Retries.Until == 0 && !s.Stopping && s.Bid.Stage == Aiming {
		if s.Hint.Heard && m.waitsForRival(s) {
			w = append(w, Wait{Local: s.Hint.next()})
		}
		if s.View.Watch.Seq != 0 {
			w = append(w, Wait{Local: s.View.Watch.Over})
		}
		if s.Clock.SampleBy > 0 {
			w = append(w, Wait{Local: s.Clock.SampleBy})
		}
	}
	return w
}
