package machine

import (
	"time"

	"github.com/slotlease/slotlease/slots"
	"github.com/slotlease/slotlease/store"
)

// lookAge is how old an extension may get: one that is not known to be stored this
// long after the head was read is void, and after half of it the head is read again
// first. The age of a claim would do, because nothing can come between a term and its
// extension except at the extension's own key; but a record there should be noticed
// soon.
const lookAge = 4 * time.Minute

// leads reports that the term in force ends where a slot begins, and is to be extended
// into it before any other worker may claim it.
func (f facts) leads(slot slots.Slot) bool {
	t := f.s.Hold.newest()
	return t.End.Equal(slot.Start) && (f.m.Continuous && f.m.NoFailback && !f.givesWay() || f.runsOn(t))
}

// extendNow appends the next window of the slot. If the head was read long ago, it is
// read again first.
func (x *step) extendNow() {
	s, now := x.s, x.at.Now
	t, known := s.Hold.Held, s.View.HeadReadAt
	s.Bid.Claim = Claim{ID: x.id(), Start: t.End, End: x.m.windowEnd(s.Bid.Slot, t.End), Fixed: known.Fixed, Local: known.Local, Epoch: x.at.Epoch}
	stale := x.at.Age > x.m.freshToExtend()
	if stale && x.byRead() && x.at.Local-known.Local <= lookAge/2 {
		s.Bid.Claim = Claim{}
		x.ask(Sampling, Sample{}) // As it would be without the look.
		return
	}
	if t.Seq >= store.MaxSeq || known.Fixed.IsZero() || known.Seq > t.Seq || x.at.Local-known.Local > lookAge/2 || x.mayNotExtend() || x.looksBelow() {
		s.Bid.Claim.Fixed, s.Bid.Claim.Local = now.Earliest, x.at.Local
		x.readHead()
		return
	}
	if stale {
		s.Bid.Claim = Claim{}
		x.ask(Sampling, Sample{})
		return
	}
	s.View.ReadAt, s.Bid.ReadEpoch = ReadAt(now), s.Clock.Epoch
	s.Bid.send(x.extension(t, t.Seq), t.record(x.m.WorkerType, x.m.InstanceID))
	x.send()
}

// abandonExtension turns away from an extension whose term has ended: to the rest of
// the slot, if that can be taken over, or to the next slot.
func (x *step) abandonExtension() {
	s := x.s
	switch {
	case s.Bid.Role != Extender || s.Hold.holding() || !s.Hold.Next.IsZero():
	case s.Bid.skips():
		x.next()
	case s.Bid.VoidClaim != "" && s.Bid.VoidClaim == s.Hold.Left.Claim, !s.Hold.WonEnd.After(s.Bid.Slot.Start):
		// An extension that came too late is in the way, and can be released; or it was to
		// go on into this slot.
		x.again()
	case !x.standBy(s.Hold.WonEnd):
		x.next()
	}
}
