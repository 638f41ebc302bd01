package machine

import (
	"time"

	"github.com/slotlease/slotlease/slots"
	"github.com/slotlease/slotlease/store"
)

// Term is a window that is known to be one's own, or one's group's, with all that
// has extended it.
type Term struct {
	Seq        int64      // of its newest record
	Kind       store.Kind // of that: a grant, or bookkeeping above it
	Slot       slots.Slot
	Start, End time.Time
	Token      int64
	Attempt    int
	Spared     int // of those before it, don't count
	Claim      string
	Own        bool // claimed by this worker, not by another of its group
	Missed     bool // its work was not begun in time, and is done late
}

// IsZero reports whether there is no term.
func (t Term) IsZero() bool { return t.Seq == 0 }

// record is the newest record of a term of one's own, as far as it is remembered.
func (t Term) record(workerType, instance string) store.Record {
	return store.Record{WorkerType: workerType, Seq: t.Seq, Kind: t.Kind, InstanceID: instance, Claim: t.Claim, Token: t.Token, WindowStart: t.Start, WindowEnd: t.End}
}

// Hold is what a worker has won: the term it works under, the one that comes next,
// and the one that came before.
type Hold struct {
	Next Term // won, but not begun
	Held Term // the user's code works under it
	Left Term // ended, perhaps before its window did

	Freed     slots.Slot // whose rest is given back, to be claimed again; zero: none
	FreedLate int        // how often in a row that was since it could not begin within its window

	WonEnd  time.Time // end of the newest window that was won or joined, unless it was superseded
	WonSeq  int64     // of the record of that window
	WonSlot time.Time // end of the newest slot of which a part was won

	Narrowed        bool // the time was sampled because it is too uncertain to begin Next
	Looking, Looked bool // whether Next may begin: the head is being read for it, or was

	Postponed string // the claim of the newest attempt that has failed here, of which it was said when the next one comes

	Skipped time.Time // start of the newest slot that can't begin because of the work under Held
	Row     int       // how many did so in a row

	Began   time.Duration // the local reading at which the user's code began
	Running bool          // the user's code has not returned
	Overdue time.Duration // the local reading from which on code that has not returned overruns
	Overran bool
	Cut     bool      // the code under Left took too long, and so has failed, however it ends
	Resume  time.Time // start of the slot in which code that rests is called again; zero: it doesn't rest
}

// holding reports that the user's code works under a term.
func (h *Hold) holding() bool { return !h.Held.IsZero() }

// overrunning reports that user code runs although its lease is over.
func (h *Hold) overrunning() bool { return !h.holding() && h.Running }

// newest is the newest term of one's own that is in force.
func (h *Hold) newest() Term {
	for _, t := range []Term{h.Next, h.Held} {
		if t.Own {
			return t
		}
	}
	return Term{}
}

// unreleased is the term that could be released: the one in the head, if any, is the
// newest.
func (h *Hold) unreleased(latest time.Time) Term {
	for _, t := range []Term{h.Next, h.Left} {
		if t.Own && latest.Before(t.End) {
			return t
		}
	}
	return Term{}
}

// knows reports that a claim is that of the term held, or of the one before it.
func (h *Hold) knows(claim string) bool { return claim == h.Held.Claim || claim == h.Left.Claim }

// leave ends the term that is held. It is never worked under or extended again.
func (h *Hold) leave() { h.Left, h.Held, h.Resume = h.Held, Term{}, time.Time{} }

// hold looks after what the worker has won: ends it in time, and begins what comes
// next.
func (x *step) hold() {
	h, now := &x.s.Hold, x.at.Now
	switch {
	case !h.holding():
	case x.m.Rules.over(now, h.Held.End, x.m.Margin):
		x.expire(WindowEnded)
	case !x.m.Rules.begun(now, h.Held.Start):
		// By the clock of another server, the window may not have begun.
		x.expire(ClockJumped)
	case x.at.Lapsed != 0:
		// That, or its end, was seen a moment ago. A lease that has ended stays ended.
		x.expire(x.at.Lapsed)
	case x.stalled():
		x.cut(Stalled, Work{Error: "no progress for " + x.m.Stall.String()})
	case x.timedOut():
		x.cut(TimedOut, Work{Cause: store.TimedOut, Error: "it has run for " + x.m.Config.Timeout.String()})
	}
	x.skipped()
	if h.holding() && !h.Resume.IsZero() && x.m.Rules.begun(now, h.Resume) {
		h.Resume, h.Began = time.Time{}, x.at.Local
		x.s.Eligibility.Progressed = x.at.Local // It needed none until now.
		x.do(CallAgain{})
	}
	if h.overrunning() && !h.Overran && x.at.Local >= h.Overdue {
		h.Overran = true
		x.note(Note{What: Overrun, Slot: h.Left.Slot})
	}
	x.giveBackNext()
	x.forgetFreed()
	if !h.Next.IsZero() {
		x.begin()
	}
}

// begin starts the user's code in the slot that is won, once its time has come and
// unless that has passed.
func (x *step) begin() {
	h, now := &x.s.Hold, x.at.Now
	if x.m.Rules.over(now, h.Next.End, x.m.Margin) {
		next := h.Next
		h.Next = Term{}
		x.outlast(next)
		return
	}
	if x.giveBackUnfit() || x.startsLate() {
		return
	}
	if x.narrows() && x.s.Pending == Nothing && !x.backingOff() {
		h.Narrowed = true
		x.ask(Sampling, Sample{})
		return
	}
	if !x.m.mayBegin(x.s) || !x.m.Rules.Inside(now, h.Next.Start, h.Next.End, x.m.Margin) {
		return
	}
	if x.m.mustLook(h) {
		if x.s.Pending == Nothing && !x.backingOff() {
			h.Looking = true
			x.ask(ReadingHead, ReadHead{2})
		}
		return
	}
	h.Held, h.Next = h.Next, Term{}
	x.s.Bid.begun(h.Held.Claim, true)
	x.s.Eligibility.Progressed, x.s.Trouble.Began = x.at.Local, h.Held.Slot.Start
	h.Running, h.Overran, h.Cut, h.Looked = true, false, false, false
	h.Began, h.Skipped, h.Row = x.at.Local, time.Time{}, 0
	x.do(Allocate{h.Held})
}

// outlast gives up a term that was won and has not begun, since its window is over: the store may have answered late. The attempt that
// it counts as is taken back, and what may be left of the slot is claimed anew.
func (x *step) outlast(t Term) {
	h := &x.s.Hold
	late := h.FreedLate + 1
	leads := !x.m.Once && x.m.Failover > 0 && t.Own && !x.s.Stopping
	if leads || x.m.Once && x.giveBack(t, true) {
		x.s.Bid.VoidClaim, h.Freed = t.Claim, x.within(t) // A single claim is made anew, too.
		if h.FreedLate = late; !h.Freed.IsZero() && x.at.Now.Mid().Before(x.m.abandoned(h.Freed)) {
			return
		}
		h.Freed = slots.Slot{}
	}
	why := TooLate
	if h.overrunning() && h.Overran {
		why = Overrunning
	}
	x.passOver(t.Slot, t.Slot.End, why)
}

// narrows reports that so much of the slot that was won would be lost to the uncertainty of the
// time that this is sampled once more: the newest sample may have been slow.
func (f facts) narrows() bool {
	h := &f.s.Hold
	if h.Narrowed || f.at.InQuestion || f.s.Clock.unsettled() {
		return false // No sample helps, or not one alone.
	}
	return f.m.Rules.Samples&IfWide != 0 && f.m.mayBegin(f.s) && !f.m.Rules.begun(f.at.Now, h.Next.Start) &&
		f.at.Now.Uncertainty() > h.Next.Slot.Length()/16
}

// mustLook reports that the head is to be read right before the work begins: it was tried
// before, and may have been recorded as done since the grant.
func (m *Machine) mustLook(h *Hold) bool {
	return m.Rules.Look(AtRetry) && m.Once && h.Next.Attempt > 1 && !h.Looked
}

// looked takes in the head that was read right before the work of a slot was to begin. A
// head older than the grant is a stale read.
func (x *step) looked(head store.Record, obeyed bool) {
	h := &x.s.Hold
	h.Looking = false
	switch {
	case h.Next.IsZero():
	case head.Seq < h.Next.Seq:
		x.backOff(nil)
	case obeyed && x.m.IsDone(x.m.Rules.Carry(head), h.Next.Slot):
		x.note(Note{What: Lost, Slot: h.Next.Slot, Record: head})
		x.noteDone(head, h.Next.Slot)
		x.s.Bid.VoidClaim, h.Next = h.Next.Claim, Term{}
		x.next()
	default:
		h.Looked = true
	}
}

// expire ends the term that is held.
func (x *step) expire(why Reason) {
	h := &x.s.Hold
	x.do(Expire{why})
	// The code gets a margin to return in, even if this comes late.
	h.Overdue = x.at.Local + max(h.Held.End.Sub(x.at.Now.Latest), x.m.Margin)
	x.note(Note{What: Expired, Slot: h.Held.Slot, Why: why})
	x.ordered(why)
	if why == ClockJumped && x.m.Rules.GivesBack&AfterJump != 0 {
		x.giveBack(h.Held, false)
	}
	switch {
	case why == CodePanicked || why == Stalled:
		x.troubled(h.Held.Slot, why)
		if !x.m.Once {
			x.yield(x.inSlot(h.Held))
		}
	case why == Ineligible, why == TimedOut:
		x.troubled(x.inSlot(h.Held), why)
	case x.s.Trouble.failed(h.Held.Slot):
	case why == WindowEnded && !x.m.Once, x.lasted(h.Held.Slot):
		x.works() // To the end of its slot, or through a slot at least.
	}
	h.leave()
}

// had reports that this worker had the slot before one: to its end or, if work is done
// once per slot, until that was done.
func (h *Hold) had(slot slots.Slot, once bool) bool {
	return h.WonEnd.Equal(slot.Start) || once && h.WonSlot.Equal(slot.Start)
}
