package machine

// hold looks at what the worker holds: ends it in time, begins what was won.
func (x *step) hold() {
	s, now := &x.s, x.at.Now
	if !s.Held.IsZero() && over(now, s.Held.End, x.m.Margin) {
		x.expire(WindowEnded)
	}
	if s.overrunning() && !s.Overran && !now.Latest.Before(s.RunEnd) {
		s.Overran = true
		x.tell(Note{What: Overrun, Slot: s.Left.Slot, Record: x.m.record(s.Left)})
	}
	if s.Next.IsZero() {
		return
	}
	if over(now, s.Next.End, x.m.Margin) {
		why := TooLate
		if s.Running {
			why = Overrunning
		}
		x.tell(Note{What: Missed, Slot: s.Next.Slot, Until: s.Next.Slot.End, Why: why})
		s.Next = Tenure{}
		return
	}
	if s.free() && !s.Resample && !s.Stopping && Inside(now, s.Next.Start, s.Next.End, x.m.Margin) {
		s.Held, s.Next = s.Next, Tenure{}
		s.Running, s.RunEnd, s.Overran = true, s.Held.End, false
		x.do(Allocate{s.Held})
	}
}

// expire ends the tenure that is held. It is left for good: never worked under
// or extended again.
func (x *step) expire(why Reason) {
	s := &x.s
	x.do(Expire{why})
	x.tell(Note{What: Expired, Slot: s.Held.Slot, Record: x.m.record(s.Held), Why: why})
	s.Left, s.Held = s.Held, Tenure{}
}
