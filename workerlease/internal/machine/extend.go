package machine

import (
	"time"

	"github.com/slotlease/slotlease/slots"
	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/workerlease/internal/timeline"
)

// Known is when the worker last read the head, and found that it can be obeyed. An
// extension that is appended without reading it again has been fixed then.
type ReadTime struct {
	Fixed time.Time // Earliest(now)
	Local time.Duration
}

// lookAge is how long after the head was read an extension is void that is not known by
// then; after half of it the head is read again first. The age of a claim would do, since
// nothing can come between a term and its extension that isn't at the extension's key. But
// what has come there should be noticed soon.
const lookAge = 4 * time.Minute

// newest is the newest term of one's own that is in force.
func (s *State) newest() Term {
	for _, t := range []Term{s.Next, s.Held} {
		if t.Own {
			return t
		}
	}
	return Term{}
}

// onward turns to what comes after a window that is one's own: the next window of
// the slot, or the next slot.
func (x *step) scheduleNext() {
	s := &x.s
	t := s.newest()
	if x.m.Failover > 0 && t.End.After(s.Slot.Start) && t.End.Before(s.Slot.End) {
		s.drop()
		s.Extending, s.Standby = true, false
		s.Turn, s.TurnEdge = t.End.Add(-x.m.early()), timeline.Latest
		return
	}
	next := x.m.Schedule.Next(s.Slot.Start)
	if end := x.m.Schedule.At(s.WonEnd); next.Start.Before(end.Start) {
		next = end // a group's window may be longer than one's own slots
	}
	x.target(next)
}

// leads reports that the term in force ends where a slot begins, and is to go on
// in it, before anybody else may claim it.
func (x *step) leads(slot slots.Slot) bool {
	return x.m.Continuous && x.m.NoFailback && x.s.newest().End.Equal(slot.Start)
}

// prolong appends the next window of the slot, or reads the head before, if it is
// long ago that it was known.
func (x *step) extendNow() {
	s, now := &x.s, x.at.Now
	t := s.Held
	s.Claim = Claim{ID: x.id(), Start: t.End, End: x.m.windowEnd(s.Slot, t.End), Fixed: s.HeadReadAt.Fixed, Local: s.HeadReadAt.Local}
	if t.Seq >= store.MaxSeq || s.HeadReadAt.Fixed.IsZero() || x.at.Local-s.HeadReadAt.Local > lookAge/2 {
		s.Claim.Fixed, s.Claim.Local = now.Earliest, x.at.Local
		x.readHead()
		return
	}
	if x.at.Age > x.m.freshToExtend() {
		s.Claim = Claim{}
		x.ask(Sampling, Sample{})
		return
	}
	s.ReadAt, s.ReadEpoch = x.m.Rules.ReadAt(now), s.Epoch
	s.Sent, s.Stage = x.extension(t, t.Seq), Sending
	x.send()
}

// extension makes the record that extends a term to the claim's end, behind the
// head with a Seq.
func (x *step) extension(t Term, head int64) store.Record {
	r := x.stamped(store.KindGrant, head+1)
	r.Claim, r.Token = t.Claim, t.Token
	r.WindowStart, r.WindowEnd = t.End, x.s.Claim.End
	r.Metadata = x.m.Metadata
	return r
}

// extend goes on with the term that is held, if it is the one in the head and
// that is wanted.
func (x *step) extend(head store.Record) bool {
	s := &x.s
	t := s.Held
	switch {
	case x.m.Failover == 0 && !x.m.Continuous, !t.Own, !x.m.Rules.Extend(t, head, x.m.identity(t.Claim)):
		return false
	case head.Kind == store.KindGrant && head.WindowEnd.After(t.End):
		x.confirm(head, true) // in doubt until now
	case !head.WindowEnd.Equal(t.End) || !s.Claim.End.After(t.End):
		return false
	case x.m.Continuous || t.End.After(s.Slot.Start):
		s.Sent, s.Stage = x.extension(t, head.Seq), Sending
	default:
		return false // The next slot is another term.
	}
	return true
}

// extended takes a window that is known to extend one's own term.
func (x *step) extended(r store.Record) {
	s := &x.s
	x.observeRecord(r)
	s.WonEnd = r.WindowEnd
	if r.Claim != s.Held.Claim || x.at.Lapsed != 0 {
		// Too late: what was left is never worked under again. It is freed as soon as
		// nothing is done under it any more.
		s.VoidClaim = r.Claim
		if r.Claim == s.Left.Claim {
			s.Left.End = r.WindowEnd
			if x.m.Rules.TakeUp(s.Left, r) {
				s.Next = s.Left
			}
		}
		s.drop()
		return
	}
	s.Held.Seq, s.Held.Slot, s.Held.End = r.Seq, s.Slot, r.WindowEnd
	x.do(Extend{s.Held})
	x.note(Note{What: Extended, Slot: s.Slot, Record: r})
	x.rememberGrant(r, true)
	if s.Stopping {
		s.drop()
		return
	}
	x.scheduleNext()
}

// know remembers a grant, to see later that it stands and to trim.
func (x *step) rememberGrant(r store.Record, own bool) {
	s := &x.s
	s.LastGrant = Grant{Seq: r.Seq, Claim: r.Claim, End: r.WindowEnd}
	if own && r.Seq%x.m.Rules.TrimEvery == 0 {
		s.Trim, s.TrimStep = r.Seq-x.m.Rules.Keep, x.m.Rules.Keep
	}
}

// fall turns away from an extension when the term has ended: to what is left of
// the slot, if somebody is to take that over.
func (x *step) abandonExtension() {
	s := &x.s
	switch {
	case !s.Extending || !s.Held.IsZero() || !s.Next.IsZero():
	case s.SkipSlot.Equal(s.Slot.Start):
		x.next()
	case s.VoidClaim != "" && s.VoidClaim == s.Left.Claim, !s.WonEnd.After(s.Slot.Start):
		// An extension that came too late is in the way, and can be released; or it was to
		// go on into Slot.
		x.again()
	case !x.standBy(s.WonEnd):
		x.next()
	}
}

// lose turns away from Slot, which another has: with Failover, to what is left of
// it behind the other's window.
func (x *step) lose(head store.Record) {
	s := &x.s
	if !s.Standby && head.Claim != s.Held.Claim && head.Claim != s.Left.Claim {
		x.note(Note{What: Lost, Slot: s.Slot, Record: head})
	}
	if !head.WindowEnd.After(x.at.Now.Earliest) || !x.standBy(head.WindowEnd) {
		x.next()
	}
}

// stand stands by, to claim what is left of Slot when a window that ends at end has
// not been extended: in the order of the turns, from then on. It reports whether
// anything would be left before claims for the next slot open.
func (x *step) standBy(end time.Time) bool {
	s, now := &x.s, x.at.Now
	opens := s.Slot.End.Add(-x.m.lead(x.m.Schedule.Next(s.Slot.Start)))
	from := x.m.Rules.StandBy(end, opens, now, x.m.Failover)
	if from.IsZero() || s.SkipSlot.Equal(s.Slot.Start) {
		return false
	}
	place := x.turn(s.WonEnd.Equal(end))
	if s.YieldSlot.Equal(s.Slot.Start) {
		place += x.m.lead(s.Slot) // Whoever has not failed goes first.
	}
	s.drop()
	s.Standby, s.Extending = true, false
	s.Turn, s.TurnEdge = later(from, now.Earliest).Add(place), timeline.Earliest
	return true
}

// living reports that a claim would begin, within a slot, behind a term that its
// holder may yet extend: its record tells that it is a part of a slot. Whoever takes
// over itself comes again when it has ended.
func (x *step) mayExtend(start time.Time, head store.Record) bool {
	part := x.m.Failover > 0 || head.WindowEnd.Before(head.SlotEnd)
	return part && start.After(x.s.Slot.Start) && x.m.Rules.MayExtend(head, x.at.Now)
}

// freed reports that nothing is done, and will be, under a claim in the head that
// came to nothing, so that it may be released.
func (x *step) freed(claim string) bool {
	s := &x.s
	return claim != s.Held.Claim && claim != s.Next.Claim && (claim != s.Left.Claim || !x.m.awaits(s, Releasing))
}
