package machine

import (
	"slices"
	"time"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/workerlease/internal/timeline"
)

// Holder is the worker that a record gives its window to. The zero Holder is nobody.
type Holder struct {
	Claim, InstanceID, Group string
	Worker                   store.Worker // zero: not known
	Own                      bool
	Priority                 int
	Token                    int64
	Start, End               time.Time
	SlotEnd                  time.Time // up to where it may extend what it has, unseen
	Fixed                    time.Time // when its newest claim was fixed; zero: not known
}

// goesOn reports that h goes on as next: the windows meet, or would if h has extended its
// own to the end of the slot, and it is the same worker as far as is known. Several
// workers may have one name, and a claim is new for each slot; but a worker knows its
// own.
func (h Holder) goesOn(next Holder) bool {
	known := h.Worker != store.Worker{} && next.Worker != store.Worker{}
	return h.InstanceID == next.InstanceID && h.Group == next.Group && h.Own == next.Own &&
		(!known || h.Worker.Host == next.Worker.Host && h.Worker.PID == next.Worker.PID) &&
		(next.Start.Equal(h.End) || next.Start.Equal(h.SlotEnd))
}

// Holders are the two newest holders that a worker knows of: claims are made ahead, so
// the newest may not have begun.
type Holders struct{ Before, Newest Holder }

// At is the holder of the lease at a time, as far as is known: another worker that has a
// part of its slot is taken to extend that until the ledger is read again.
func (h Holders) At(t time.Time) Holder {
	for _, each := range []Holder{h.Newest, h.Before} {
		until := each.End
		if succeeded := each == h.Before && h.Newest.Start.Before(each.SlotEnd); !each.Own && !succeeded {
			until = later(until, each.SlotEnd)
		}
		if !t.Before(each.Start) && t.Before(until) {
			return each
		}
	}
	return Holder{}
}

// observe takes in a record that can be obeyed, and reports whether another worker has
// the lease by it, or nobody: not if the same one goes on, nor if the record is surely
// over. own says that the record's claim is the worker's own.
func (h *Holders) observe(r store.Record, own bool, now timeline.Interval) (changed bool) {
	newest := &h.Newest
	same := r.Claim == newest.Claim
	switch {
	case r.Seq == 0:
	case r.Kind == store.KindGrant && same:
		newest.End, newest.SlotEnd, newest.Fixed = r.WindowEnd, r.SlotEnd, r.FixedAt
		if !now.Earliest.Before(r.WindowEnd) {
			newest.SlotEnd = r.WindowEnd // It was not extended.
		}
	case r.Kind == store.KindGrant:
		return h.succeed(r, Holder{Start: r.WindowStart, Worker: r.Worker, Fixed: r.FixedAt, Own: own}, now)
	case r.Kind == store.KindDone && same:
		if !r.DoneUntil.Before(r.SlotEnd) {
			newest.SlotEnd = newest.End // Nobody extends a slot that is done.
		}
	case r.Kind == store.KindDone && r.Claim != "":
		// It repeats the term in the head, except for its beginning, which the token shows
		// well enough, and for where its holder runs.
		return h.succeed(r, Holder{Start: store.FromMillis(r.Token), Own: own}, now)
	case r.Kind == store.KindRelease && same && r.WindowEnd.Before(newest.End):
		newest.End, newest.SlotEnd = r.WindowEnd, r.WindowEnd
		return true
	case r.Kind == store.KindOverride:
		return h.override(r.WindowStart)
	}
	return false
}

// override takes in that all that was in force has ended at a time, and reports whether
// that was more than is known to be over.
func (h *Holders) override(at time.Time) (changed bool) {
	for _, each := range []*Holder{&h.Before, &h.Newest} {
		changed = at.Before(each.End)
		each.End, each.SlotEnd = earlier(each.End, at), earlier(each.SlotEnd, at)
	}
	return changed
}

// succeed takes in another term.
func (h *Holders) succeed(r store.Record, next Holder, now timeline.Interval) (changed bool) {
	next.Claim, next.InstanceID, next.Group = r.Claim, r.InstanceID, r.Group
	next.Priority, next.Token, next.End, next.SlotEnd = r.Priority, r.Token, r.WindowEnd, r.SlotEnd
	// The second: a done record of a reset or an override, which nobody holds anything by.
	if r.Kind == store.KindDone && (!r.DoneUntil.Before(r.SlotEnd) || !next.Start.Before(next.End)) {
		next.SlotEnd = next.End
	}
	changed = !h.Newest.goesOn(next) && now.Earliest.Before(next.End)
	before := h.Newest
	before.End = earlier(before.End, next.Start) // It was released or overridden, unseen.
	*h = Holders{Before: before, Newest: next}
	return changed
}

// observeRecord takes notice of a record that can be obeyed: of what it carries, and of
// the holder that it gives the lease to.
func (x *step) observeRecord(r store.Record) {
	s := x.s
	s.View.Carried = x.m.Rules.Carry(r)
	if most := x.at.Now.Latest.Add(x.m.Rules.Longest); s.View.Carried.DoneUntil.After(most) {
		s.View.Carried.DoneUntil = time.Time{} // No worker that keeps the rules can have written it.
	}
	own := []string{s.Bid.Claim.ID, s.Bid.VoidClaim, s.Hold.Next.Claim, s.Hold.Held.Claim, s.Hold.Left.Claim}
	if s.View.Holders.observe(r, slices.Contains(own, r.Claim), x.at.Now) {
		x.note(Note{What: HolderChanged, Record: r})
	}
}
