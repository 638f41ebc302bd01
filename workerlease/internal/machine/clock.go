package machine

import (
	"time"

	"github.com/slotlease/slotlease/slots"
	"github.com/slotlease/slotlease/store"
)

// Clock is what a worker has noticed of the time line.
type Clock struct {
	Epoch, Settled, Jumps int
	SettleAt              time.Time     // when Epoch is settled; zero: a head must be read first
	SettleBy              time.Duration // the local reading at which it is settled at the latest
	SettleSeq             int64         // of the head that was read then
	Reread                bool          // the head is read again, because SettleAt has come
	Resample              int           // how often the time must be sampled before anything is begun
	Jumped                time.Duration // the local reading at the newest contradiction
	Contested             bool          // it came soon after another one
	Questioned            bool          // samples contradicted one another, and had not decided yet
	SampleBy              time.Duration // while they go on, the local reading at which to sample again; 0: when a claim needs it
	Apart                 bool          // by so much that nothing can be led
}

// Samples that contradict one another again and again, as those of servers that answer in turn
// may, are asked for less often: after two contradictions within contested, the wait between
// samples begins at MinBackoff, doubled that often.
const contested, contestedTries = 20 * time.Second, 3

// Unknown reports that nothing can begin: until more samples have come, because samples contradict
// one another by too much, or because other workers may still act by a clock that has jumped.
func (c *Clock) Unknown() bool { return c.Resample > 0 || c.Apart || c.unsettled() }

// unsettled reports that a clock was in force by which other workers may still act.
func (c *Clock) unsettled() bool { return c.Settled < c.Epoch }

// clock takes notice of what happened to the time line.
func (x *step) clock() {
	c := &x.s.Clock
	x.history()
	if x.at.Epoch > c.Epoch {
		c.Epoch, c.SettleAt, c.SettleBy, c.SettleSeq, c.Reread = x.at.Epoch, time.Time{}, 0, 0, false
		x.forgo()
	}
	if x.m.Rules.Jumped(c.Jumps, x.at.Jumps) {
		c.Resample = x.m.Rules.Confirm + 1 // One is under way, or has just come.
		c.Contested = c.Jumped > 0 && x.at.Local-c.Jumped < contested
		c.Jumped = x.at.Local
		if x.s.Hold.holding() {
			x.expire(ClockJumped)
		}
	}
	c.Jumps = x.at.Jumps
	if c.Questioned && !x.at.InQuestion && x.m.Rules.Reaims {
		x.s.Bid.Recheck = x.at.Local + time.Millisecond // The slot, or the turn in it, may be one of the clock that was wrong.
	}
	c.Questioned = x.at.InQuestion
	if c.SampleBy = 0; x.m.Rules.Samples&IfApart != 0 && x.costly() {
		c.SampleBy = x.at.Local - x.at.Age + sampleEvery
	} else if x.m.Rules.Samples&IfAhead != 0 && x.ahead() {
		c.SampleBy = x.at.Local - x.at.Age + max(sampleEvery, min(x.m.Schedule.At(x.at.Now.Mid()).Length(), x.nearSlot().Length()))
	}
	if by := x.nameBy(); by > 0 && (c.SampleBy == 0 || by < c.SampleBy) {
		c.SampleBy = by
	}
	switch {
	case !c.unsettled() || !x.m.Rules.Settled(x.at, *c):
	case x.m.Rules.Unchanged && !c.Reread && x.at.Local < c.SettleBy:
		c.Reread, c.SettleAt = true, time.Time{}
	default:
		c.Settled = c.Epoch
		x.s.Bid.Recheck = x.at.Local + time.Millisecond // x.at.Now was measured before it settled.
	}
	x.s.Retries.pass(x.at.Local)
}

// forgo gives up a slot that was won by a clock that is not in force any more. By the
// time of another it may come once more, when other workers have taken it for over. Its rest
// is released, for another worker or, under another claim, for this one. A worker that stops
// begins nothing, and releases it anyway.
func (x *step) forgo() {
	h := &x.s.Hold
	t := h.Next
	if t.IsZero() || x.s.Stopping {
		return
	}
	h.Next = Term{}
	if t.Own {
		x.s.Bid.VoidClaim = t.Claim
	}
	if x.m.Single || x.m.Rules.GivesBack&AfterJump == 0 || !x.giveBack(t, true) {
		x.note(Note{What: Missed, Slot: t.Slot, Until: t.Slot.End, Why: ClockJumped})
	}
}

// settle decides when the epoch is settled, by the head that was read since it began. When that
// has ended, it must still be the head: a holder that didn't know of the epoch may have extended its
// lease, by a sample from before.
func (x *step) settle(head store.Record, below []store.Record) {
	c := &x.s.Clock
	if !c.unsettled() || x.s.Bid.ReadEpoch != x.at.Epoch || !c.SettleAt.IsZero() {
		return
	}
	if c.SettleSeq != head.Seq {
		c.SettleSeq, c.Reread = head.Seq, false
	}
	c.SettleAt, c.SettleBy = head.WindowEnd, x.at.Began+drifted(x.m.Rules.Outlasting(append([]store.Record{head}, below...), min(x.s.Bid.Slot.Length(), x.m.Rules.Longest)))
	switch {
	case head.Seq == 0:
		c.SettleAt = x.at.Now.Earliest
	case head.CheckEnvelope() != nil:
		c.SettleAt = x.at.Now.Latest.Add(x.m.Rules.Longest) // Only SettleBy counts.
	}
}

// sampled takes in a sample of store time, or the failure to get one.
func (x *step) sampled(e Sampled) {
	s := x.s
	if e.Err != nil {
		if x.looking() {
			x.lookFailed(Sampling, e.Err)
			return
		}
		x.failed(Sampling, e.Err)
		x.regroup()
		return
	}
	if s.Clock.Resample = max(s.Clock.Resample-1, 0); s.Clock.Resample > 0 || x.undecidable() {
		s.Clock.Resample = max(s.Clock.Resample, 1)
		if s.Clock.Contested {
			s.Retries.Tries = max(s.Retries.Tries, contestedTries)
		}
		x.backOff(nil)
		return
	}
	s.Bid.Outage = s.Bid.Outage || s.Retries.Failures > 0
	if !s.Retries.SampleFirst {
		s.Retries.over()
	} else {
		// What has failed before may fail again, although the time could be sampled.
		s.Retries.Until, s.Retries.SampleFirst, s.Retries.Twice = 0, false, true
		if s.Bid.Stage == Reading || s.Bid.Stage == Aiming {
			x.again()
		}
		s.Bid.MissReason = s.Retries.why() // should the slot be missed yet
	}
}

// partsFor is how long after a contradiction an uncertainty that is too wide for a part of a slot
// is a reason to sample. Servers whose clocks stay that far apart contradict each other for good,
// and no number of samples decides between them: after that time only the whole slot counts.
const partsFor = 5 * time.Minute

// sampleEvery is how often, in that time, the time is sampled at least, although no claim needs it, if
// the uncertainty costs a good part of a slot: up to 12 samples decide between clocks of which one
// has come back.
const sampleEvery = 10 * time.Second

// costly reports that samples have contradicted one another of late, by a 16th of a slot or 5 min.
func (f facts) costly() bool {
	return f.at.InQuestion && f.at.Local-f.s.Clock.Jumped < partsFor &&
		f.at.Now.Uncertainty() > min(f.nearSlot().Length()/16, partsFor)
}

// ahead reports that what the worker has won last is of a slot after the next one. It waits for the end of that, and so
// for as long as the clock that has jumped differs from this one: unless a sample, one for each slot as if it contended,
// shows that this one is gone, too.
func (f facts) ahead() bool {
	h := &f.s.Hold
	if !f.at.Now.Known() || h.holding() || !h.WonEnd.After(f.at.Now.Mid()) {
		return false
	}
	next := f.m.Schedule.Next(f.at.Now.Mid())
	return f.m.Schedule.At(h.WonEnd.Add(-1)).Start.After(next.Start)
}

// sampleDue reports that such a sample is due. It comes before a claim, not amid one.
func (f facts) sampleDue() bool {
	by := f.s.Clock.SampleBy
	return by > 0 && f.at.Local >= by && f.s.Bid.Stage == Aiming && !f.recording()
}

// apart reports that samples contradict one another by more than the worker leads at a time.
func (f facts) apart() bool {
	if !f.at.InQuestion || f.s.Hold.holding() {
		return false
	}
	part := f.nearSlot().Length()
	if f.m.Failover > 0 {
		part = min(part, f.m.Failover)
	}
	return MinWindow(f.at.Now.Uncertainty(), f.m.Margin) > part
}

// nearSlot is the bid's slot or, before there is one, the slot whose time it is.
func (f facts) nearSlot() slots.Slot {
	if slot := f.s.Bid.Slot; !slot.IsZero() {
		return slot
	}
	return f.m.Schedule.At(f.at.Now.Mid())
}

// undecidable reports that samples contradict one another by so much that nothing can be
// begun. Only more of them help.
func (f facts) undecidable() bool {
	part := f.nearSlot().Length()
	if f.m.Failover > 0 && f.at.Local-f.s.Clock.Jumped < partsFor {
		part = min(part, f.m.Failover)
	}
	return f.at.InQuestion && MinWindow(f.at.Now.Uncertainty(), f.m.Margin) > part/2
}

// regroup makes the turns count again from the end of an outage that outlasted the
// boundary, when all workers come back at once: the time is sampled before anything
// else.
func (x *step) regroup() {
	s := x.s
	s.Retries.SampleFirst = !s.Stopping && !s.Bid.Slot.IsZero() && x.at.Now.Known() && !x.at.Now.Mid().Before(s.Bid.Slot.Start)
}
