package machine

import "time"

// hold looks at what the worker holds: ends it in time, begins what was won.
func (x *step) hold() {
	s, now := &x.s, x.at.Now
	switch {
	case s.Held.IsZero():
	case x.m.Rules.over(now, s.Held.End, x.m.Margin):
		x.expire(WindowEnded)
	case !x.m.Rules.begun(now, s.Held.Start):
		// By the clock of another server, the window may not have begun.
		x.expire(ClockJumped)
	case x.at.Lapsed != 0:
		// That, or its end, was seen a moment ago. What has ended stays ended.
		x.expire(x.at.Lapsed)
	}
	if !s.Held.IsZero() && !s.Rest.IsZero() && x.m.Rules.begun(now, s.Rest) {
		s.Rest = time.Time{}
		x.do(CallAgain{})
	}
	if s.overrunning() && !s.Overran && x.at.Local >= s.Overdue {
		s.Overran = true
		x.note(Note{What: Overrun, Slot: s.Left.Slot})
	}
	if s.Next.IsZero() {
		return
	}
	if x.m.Rules.over(now, s.Next.End, x.m.Margin) {
		why := TooLate
		if s.overrunning() && s.Overran {
			why = Overrunning
		}
		x.note(Note{What: Missed, Slot: s.Next.Slot, Until: s.Next.Slot.End, Why: why})
		s.Next = Term{}
		return
	}
	if x.m.mayBegin(s) && x.m.Rules.Inside(now, s.Next.Start, s.Next.End, x.m.Margin) {
		s.Held, s.Next = s.Next, Term{}
		s.Running, s.Overran = true, false
		x.do(Allocate{s.Held})
	}
}

// expire ends the term that is held. It is left for good: never worked under
// or extended again.
func (x *step) expire(why Reason) {
	s := &x.s
	x.do(Expire{why})
	// It gets a margin to return in, also if this comes late.
	s.Overdue = x.at.Local + max(s.Held.End.Sub(x.at.Now.Latest), x.m.Margin)
	x.note(Note{What: Expired, Slot: s.Held.Slot, Why: why})
	if why == CodePanicked {
		s.SkipSlot = s.Held.Slot.Start // Others may try.
	}
	s.Left, s.Held, s.Rest = s.Held, Term{}, time.Time{}
}
