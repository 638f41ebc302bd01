package machine

import "time"

// Clock is what a worker has noticed of the time line.
type Clock struct {
	Epoch, Settled, Jumps int
	SettleAt              time.Time // when Epoch is settled; zero: a head must be read first
	Resample              bool      // the time must be sampled before anything is begun
}

// clock takes notice of what happened to the time line.
func (x *step) clock() {
	c := &x.s.Clock
	if x.at.Epoch > c.Epoch {
		c.Epoch, c.SettleAt = x.at.Epoch, time.Time{}
	}
	if x.m.Rules.Jumped(c.Jumps, x.at.Jumps) {
		c.Resample, x.jumped = true, true
		if x.s.Hold.holding() {
			x.expire(ClockJumped)
		}
	}
	c.Jumps = x.at.Jumps
	if c.Settled < c.Epoch && x.m.Rules.Settled(x.at.Now, c.SettleAt) {
		c.Settled = c.Epoch
		x.s.Bid.Recheck = x.at.Local + time.Millisecond // x.at.Now was measured before it settled.
	}
	x.s.Retries.pass(x.at.Local)
}

// sampled takes in a sample of store time, or the failure to get one.
func (x *step) sampled(e Sampled) {
	s := x.s
	if e.Err != nil {
		x.failed(Sampling, e.Err)
		x.regroup()
		return
	}
	if x.jumped {
		// Sample again, but not at once: servers that contradict each other would be
		// asked without end.
		x.backOff(nil)
		return
	}
	s.Retries.over()
	s.Clock.Resample = false
	if s.Retries.SampleFirst {
		s.Retries.SampleFirst = false
		if s.Bid.Stage == Reading || s.Bid.Stage == Aiming {
			x.again()
		}
		s.Bid.MissReason = Unreachable // should the slot be missed yet
	}
}

// regroup makes the turns count again from the end of an outage that outlasted the
// boundary, when all workers come back at once: the time is sampled before anything
// else.
func (x *step) regroup() {
	s := x.s
	s.Retries.SampleFirst = !s.Stopping && !s.Bid.Slot.IsZero() && x.at.Now.Known() && !x.at.Now.Mid().Before(s.Bid.Slot.Start)
}
