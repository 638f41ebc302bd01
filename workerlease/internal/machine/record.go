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
		DoneUntil: v.Carried.DoneUntil, Attempt: v.Carried.Attempt, Orders: repeated(v.Carried.Orders, f.at.Now.Earliest),
		Worker: f.m.Worker,
	}
}

// observeRecord takes notice of a record that can be obeyed, and of what it carries.
func (x *step) observeRecord(r store.Record) {
	s := x.s
	s.View.Carried = x.m.Rules.Carry(r)
	if most := x.at.Now.Latest.Add(x.m.Rules.Longest); s.View.Carried.DoneUntil.After(most) {
		s.View.Carried.DoneUntil = time.Time{} // No worker that keeps the rules can have written it.
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
	r.Token = x.m.Rules.Token(start, head)
	r.FixedAt = b.Claim.Fixed.Truncate(time.Millisecond)
	r.Metadata = x.m.Metadata
	if r.Attempt = 0; x.m.Once {
		r.Attempt = x.s.View.Carried.attempt(b.Slot)
		if b.Missed = x.missed(b.Slot); !b.Missed.IsZero() {
			r.DoneUntil = b.Missed.End // It is begun once more, by this grant, and never again.
		}
	}
	return r
}

// extension makes the record that extends a term to the claim's end, after the head
// with a Seq.
func (f facts) extension(t Term, head int64) store.Record {
	r := f.stamped(store.KindGrant, head+1)
	r.Claim, r.Token = t.Claim, t.Token
	r.WindowStart, r.WindowEnd = t.End, f.s.Bid.Claim.End
	r.Metadata = f.m.Metadata
	return r
}

// releasable reports that the head's term is a claim's, may be released, and that
// anything of it is left.
func (f facts) releasable(head store.Record, claim string) bool {
	return f.m.Rules.Releasable(head, f.m.identity(claim)) && f.m.Rules.ReleaseAt(head, f.at.Now).Before(head.WindowEnd)
}

// release makes the next record to be sent the one that frees the rest of the head's
// term, and nothing else.
func (x *step) release(head store.Record) {
	at := x.m.Rules.ReleaseAt(head, x.at.Now)
	r := x.stamped(store.KindRelease, head.Seq+1)
	r.Claim, r.Token = head.Claim, head.Token
	r.SlotStart, r.SlotEnd = head.SlotStart, head.SlotEnd
	if !at.Before(head.SlotEnd) { // The slot is for information, and makes no sense here.
		r.SlotStart, r.SlotEnd = head.WindowStart, head.WindowEnd
	}
	r.WindowStart, r.WindowEnd = at, at
	r.Metadata = x.carried(head.Claim)
	x.s.Bid.send(r, head)
}

// unbegun reports that a window below poison hasn't begun at a time. It was granted by a
// clock which has jumped: claims are made less ahead than poison is watched, and no poison is taken
// for older than what is below it. By that clock it is over. (What grants nothing stands at the end
// of a window, which may be far ahead.)
func unbegun(r store.Record, at time.Time) bool {
	return r.WindowEnd.After(r.WindowStart) && r.WindowStart.After(at)
}

// reset makes the record that supersedes poison.
func (x *step) reset(head store.Record, below []store.Record, why error) store.Record {
	r := x.stamped(store.KindReset, head.Seq+1)
	r.Claim = x.id()
	inForce, held := x.inForce(r, below)
	v := &x.s.View
	v.Carried = x.m.Rules.Carry(inForce)
	r.DoneUntil, r.Attempt = inForce.DoneUntil, v.Carried.attempt(x.s.Bid.Slot)-1
	r.Orders = repeated(v.Carried.Orders, x.at.Now.Earliest)
	at, token := x.m.Rules.Reset(held, x.at.Now)
	r.WindowStart, r.WindowEnd, r.Token = at, at, token
	text := fmt.Sprintf("supersedes seq %d, unchanged since %s: %v", head.Seq, store.Format(v.Watch.Since), why)
	text = strings.ReplaceAll(text[:min(len(text), 512)], "\x00", "")
	r.Metadata = strings.ToValidUTF8(text, "")
	return r
}
