package machine

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/slotlease/slotlease/store"
)

// stamped is a record with what all records of this worker have in common.
func (f facts) stamped(k store.Kind, seq int64) store.Record {
	b, v := &f.s.Bid, &f.s.View
	return store.Record{
		WorkerType: f.m.WorkerType, Seq: seq, Kind: k,
		InstanceID: f.m.InstanceID, Priority: f.m.Effective(f.s),
		SlotStart: b.Slot.Start, SlotEnd: b.Slot.End,
		Schedule: f.m.Schedule.String(),
		FixedAt:  f.at.Now.Earliest.Truncate(time.Millisecond), ReadAt: v.ReadAt,
		DoneUntil: v.Carried.DoneUntil, Done: v.Carried.Done.String(), Attempt: v.Carried.Attempt, Spared: v.Carried.Spared, Orders: f.orders(),
		Worker: f.m.Worker, Work: f.m.Work,
	}
}

// observeRecord takes notice of a record that can be obeyed, and of what it carries.
func (x *step) observeRecord(r store.Record) {
	s := x.s
	s.View.Carried = x.m.Rules.Carry(r)
	if most := x.at.Now.Latest.Add(x.m.Rules.Longest); s.View.Carried.DoneUntil.After(most) {
		s.View.Carried.DoneUntil, s.View.Carried.Done = time.Time{}, store.Done{} // No worker that keeps the rules can have written it.
	}
	for _, t := range []*Term{&s.Hold.Held, &s.Hold.Next} {
		if t.Claim == r.Claim && t.Attempt == r.Attempt {
			t.Spared = r.Spared // An earlier attempt may be told to count for nothing only now.
		}
	}
	x.hear()
	if r.Seq != 0 {
		own := []string{s.Bid.Claim.ID, s.Bid.VoidClaim, s.Hold.Next.Claim, s.Hold.Held.Claim, s.Hold.Left.Claim}
		x.do(Observe{Record: r, Own: slices.Contains(own, r.Claim)})
	}
}

// grant makes the record that claims the window from start to the claim's end.
func (x *step) grant(head store.Record, start time.Time) store.Record {
	b := &x.s.Bid
	r := x.stamped(store.KindGrant, head.Seq+1)
	r.Claim = b.Claim.ID
	r.Group = x.m.Group
	r.WindowStart, r.WindowEnd = start, b.Claim.End
	r.Token = x.m.Rules.Token(start, x.above(head))
	r.FixedAt = b.Claim.Fixed.Truncate(time.Millisecond)
	r.Metadata = x.m.Metadata
	if r.Attempt, r.Spared = 0, 0; x.m.Once {
		work := x.work(start)
		r.SlotStart, r.SlotEnd, r.Attempt, r.Spared = work.Start, work.End, x.s.View.Carried.attempt(work), x.s.View.Carried.spared(work)
	}
	x.counts(&r)
	return r
}

// extension makes the record that extends a term to the claim's end, after the head
// with a Seq.
func (f facts) extension(t Term, head int64) store.Record {
	r := f.stamped(store.KindGrant, head+1)
	r.Claim, r.Token = t.Claim, t.Token
	if f.m.Once {
		r.SlotStart, r.SlotEnd = t.Slot.Start, t.Slot.End
	}
	r.WindowStart, r.WindowEnd = t.End, f.s.Bid.Claim.End
	r.Metadata = f.m.Metadata
	return r
}

// releasable reports that the head's term is a claim's, may be released, and that
// anything of it is left, or to be said of it.
func (f facts) releasable(head store.Record, claim string) bool {
	left := f.m.Rules.ReleaseAt(head, f.at.Now).Before(head.WindowEnd)
	return f.m.Rules.Releasable(head, f.m.identity(claim)) && (left || f.uncounts(head) && head.WindowEnd.UnixMilli() > head.Token)
}

// uncounts reports that a release of the head's term takes back the attempt which that counts as: no code was begun under it,
// and none will be. Only its own worker knows that.
func (f facts) uncounts(head store.Record) bool {
	sent := f.s.Bid.sent(head.Claim)
	return f.m.Once && head.Attempt > 0 && sent != nil && f.m.Rules.Uncounts(head, *sent)
}

// uncounts goes by the claim. What was said above its release repeats that, and one attempt less.
func uncounts(head store.Record, of Sent) bool { return !of.Begun && head.Attempt == of.Attempt }

// spares has a record that says how an attempt at the slot in the head ended say, too, that this doesn't count, if it was nobody's
// failure, and no record has said so before.
func (f facts) spares(r *store.Record) {
	if report := &f.s.Report; report.Spared && report.in(*r) {
		return
	}
	if o, told := r.Outcome(); told && o.SlotStart.Equal(r.SlotStart) && r.Spared < r.Attempt && f.m.Rules.Spares(o) {
		r.Spared++
	}
}

// spares no attempt that ended by itself, or since it took too long: a deployment or an order costs none.
func spares(o store.Outcome) bool {
	return o.Result == store.Failed && o.Cause.Spared()
}

// release makes the next record to be sent the one that frees the rest of the head's
// term, and nothing else.
func (x *step) release(head store.Record) {
	at := x.m.Rules.ReleaseAt(head, x.at.Now)
	if at.After(head.WindowEnd) {
		at = head.WindowEnd // It is over, and its attempt is taken back.
	}
	r := x.stamped(store.KindRelease, head.Seq+1)
	r.Claim, r.Token = head.Claim, head.Token
	r.SlotStart, r.SlotEnd = head.SlotStart, head.SlotEnd
	if !at.Before(head.SlotEnd) && !x.m.Once { // The slot is for information, and makes no sense here.
		r.SlotStart, r.SlotEnd = head.WindowStart, head.WindowEnd
	}
	r.WindowStart, r.WindowEnd = at, at
	r.Metadata = x.carried(head.Claim)
	if x.uncounts(head) {
		r.Attempt--
	}
	x.settles(&r)
	x.spares(&r)
	x.s.Bid.send(r, head)
}

// reset makes the record that supersedes poison.
func (x *step) reset(head store.Record, below []store.Record, why error) store.Record {
	r := x.stamped(store.KindReset, head.Seq+1)
	r.Claim = x.id()
	inForce, held := x.ledger().InForce(r, below)
	v := &x.s.View
	v.Carried = x.m.Rules.Carry(inForce)
	r.DoneUntil, r.Done, r.Attempt, r.Spared = inForce.DoneUntil, v.Carried.Done.String(), v.Carried.attempt(x.s.Bid.Slot)-1, v.Carried.spared(x.s.Bid.Slot)
	r.Orders = x.orders()
	x.counts(&r)
	at, token := x.m.Rules.Reset(x.above(held), x.at.Now)
	r.WindowStart, r.WindowEnd, r.Token = at, at, token
	text := fmt.Sprintf("supersedes seq %d, unchanged since %s: %v", head.Seq, store.Format(v.Watch.Since), why)
	text = strings.ReplaceAll(text[:min(len(text), 512)], "\x00", "")
	r.Metadata = strings.ToValidUTF8(text, "")
	return r
}
