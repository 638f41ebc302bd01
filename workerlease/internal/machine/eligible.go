package machine

import (
	"time"

	"github.com/slotlease/slotlease/workerlease/internal/timeline"
)

// A worker may be asked, by a check of its user's, whether it is fit to lead. The answer decides only
// whether the worker claims, begins and goes on: it gives nobody a right. So an answer that is wrong or
// late costs order, and never safety.

// Eligibility is what the check has answered.
type Eligibility struct {
	Asking bool          // the check is under way
	Known  bool          // it has answered
	Unfit  bool          // the newest answer
	Due    time.Duration // the local reading from which on the answer is old
	Fresh  bool          // it counted in the last step
	Lasts  bool          // and was not to be old before the turn
	Looked time.Time     // start of the slot that was found free, and not claimed
	// Progressed is the local reading at which the user's code was last known to go on.
	Progressed time.Duration
}

// checked reports that there is an answer which counts. It does until the next one, if that was asked for
// in time: a check that takes its time delays no claim.
func (f facts) checked() bool {
	e, due := &f.s.Eligibility, f.s.Eligibility.Due
	if e.Asking {
		due += f.m.CheckTimeout
	}
	return e.Known && f.at.Local < due
}

// lasts reports that the answer isn't old before the turn has come.
func (f facts) lasts() bool {
	ahead := max(f.m.begins(f.s).Sub(f.at.Now.At(f.s.Bid.TurnEdge)), 0)
	return f.s.Eligibility.Known && f.at.Local+ahead <= f.s.Eligibility.Due && f.checked()
}

// unfitFor reports that the worker is not fit for an act, by its newest answer, or begins nothing more.
func (m *Machine) unfitFor(s *State, a Acts) bool {
	return a == Beginning && s.Draining || m.Checks && m.Rules.Heeds&a != 0 && s.Eligibility.Unfit
}

// waitsForAnswer reports that the bid waits for an answer, and not for its turn. Who isn't fit looks
// once at each slot, to know who has it.
func (f facts) waitsForAnswer() bool {
	return f.m.Checks && f.m.Rules.Heeds&Claiming != 0 && (!f.checked() && !f.m.keepsLease(f.s) || f.m.passes(f.s))
}

// keepsLease reports that the bid may go on with a lease that is kept whatever the check says.
func (m *Machine) keepsLease(s *State) bool {
	return m.KeepsUnfit && (m.Continuous || m.Once && m.Finishes) && s.Hold.Held.Own && s.Hold.Held.End.Equal(s.Bid.Slot.Start)
}

// looksLater puts off the look of a worker that isn't fit to when the others have had their turns.
func (x *step) looksLater() bool {
	b := &x.s.Bid
	if !x.m.unfitFor(x.s, Claiming) || x.m.keepsLease(x.s) || !x.at.Now.Earliest.Before(b.Slot.Start) {
		return false
	}
	b.wait(b.Slot.Start, timeline.Earliest)
	return true
}

// passes reports that the worker has left the bid's slot to others.
func (m *Machine) passes(s *State) bool {
	return m.unfitFor(s, Claiming) && s.Eligibility.Looked.Equal(s.Bid.Slot.Start)
}

// waitsForCheck is the same, as of the last step.
func (m *Machine) waitsForCheck(s *State) bool {
	e := &s.Eligibility
	waits := e.Asking && !e.Fresh && !m.keepsLease(s) || e.Fresh && m.passes(s)
	return m.Checks && m.Rules.Heeds&Claiming != 0 && !s.extends() && waits
}

// checksFrom is the time from which on the answer has to be fresh for the bid: so long before the
// turn that a check which takes its time delays no claim.
func (m *Machine) checksFrom(s *State) time.Time { return m.begins(s).Add(-m.CheckTimeout) }

// contends reports that the worker waits for a turn at which it claims.
func (m *Machine) contends(s *State) bool {
	return s.Bid.Stage == Aiming && !s.extends() && !s.Bid.Slot.IsZero() && !m.through(s) && !m.blocked(s)
}

// needsCheck reports that what the worker has won depends on the answer now.
func (h *Hold) needsCheck() bool { return h.holding() || !h.Next.IsZero() }

// check begins the check, if it is due.
func (x *step) check() {
	s, e := x.s, &x.s.Eligibility
	contends := x.m.contends(s) && x.at.Now.Known()
	e.Fresh = x.checked()
	e.Lasts = e.Fresh && (!contends || x.lasts())
	if !x.m.Checks || e.Asking || s.Stopping {
		return
	}
	if !e.Fresh && s.Hold.needsCheck() || !e.Lasts && contends && !x.at.Now.At(s.Bid.TurnEdge).Before(x.m.checksFrom(s)) {
		e.Asking = true
		e.Fresh = x.checked()
		x.do(Check{})
	}
}

// checkWaits is what to wait for because of the check.
func (m *Machine) checkWaits(s *State) []Wait {
	e := &s.Eligibility
	switch {
	case !m.Checks || e.Asking || s.Stopping:
		return nil
	}
	var w []Wait
	if e.Fresh && (s.Hold.needsCheck() || e.Unfit) {
		w = append(w, Wait{Local: e.Due})
	}
	if passed := e.Fresh && m.passes(s); !passed && !e.Lasts && m.contends(s) {
		w = append(w, Wait{Time: m.checksFrom(s), Edge: s.Bid.TurnEdge})
	}
	return w
}

// judged takes in an answer of the check. A holder that is no longer fit ends its lease.
func (x *step) judged(e Judged) {
	s, was := x.s, x.s.Eligibility
	s.Eligibility.Asking, s.Eligibility.Known = false, true
	s.Eligibility.Unfit, s.Eligibility.Due = e.Err != nil, x.at.Local+x.m.Rules.Counts(x.m.CheckEvery)
	switch unfit := e.Err != nil; {
	case unfit && !was.Unfit:
		x.note(Note{What: BecameUnfit, Slot: s.Bid.Slot, Err: e.Err})
	case !unfit && was.Unfit:
		x.note(Note{What: BecameFit, Slot: s.Bid.Slot})
		x.replan() // Its turn may not be over yet.
	}
	if s.Hold.holding() && !x.m.KeepsUnfit && x.m.unfitFor(s, Holding) {
		x.stepDown(Ineligible)
	}
}

// needsProgress reports that user code has to show progress.
func (m *Machine) needsProgress() bool { return m.Stall > 0 && m.Rules.Heeds&Stalling != 0 }

// stalled reports that the user's code has shown no progress for too long. Code that rests need not.
func (f facts) stalled() bool {
	h := &f.s.Hold
	return f.m.needsProgress() && h.holding() && h.Resume.IsZero() && f.at.Local-f.s.Eligibility.Progressed >= f.m.Stall
}

// progressed notes up to when the user's code is known to go on.
func (x *step) progressed() {
	if h := &x.s.Hold; h.holding() {
		x.s.Eligibility.Progressed = max(x.s.Eligibility.Progressed, x.at.Progressed)
	}
}

// stepDown ends the lease, and has its rest given to others once the user's code has returned. In
// what is left of the slot they go first.
func (x *step) stepDown(why Reason) {
	held := x.s.Hold.Held
	x.expire(why)
	if x.m.Rules.GivesBack&AfterStepDown != 0 {
		x.giveBack(held, false)
	}
	slot := held.Slot
	if now := x.m.Schedule.At(x.at.Now.Mid()); slot.Start.Before(now.Start) {
		slot = now
	}
	x.s.Bid.YieldSlot = slot.Start
}

// giveBackUnfit gives back the slot that is won, if the worker is not fit to begin it, and reports
// that it doesn't begin. A member of a group begins when it is fit again: the others work on.
func (x *step) giveBackUnfit() bool {
	h := &x.s.Hold
	if !x.m.unfitFor(x.s, Beginning) {
		return false
	}
	if next := h.Next; x.giveBack(next, true) {
		x.s.Bid.VoidClaim, h.Next = next.Claim, Term{}
	}
	return true
}
