package machine

import (
	"slices"
	"time"

	"github.com/slotlease/slotlease/store"
)

// Holder is whom a record gives its window to. The zero Holder is nobody.
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

// goesOn reports that what holder h has goes on with next: the windows meet, or would if
// h has extended its own to the end of the slot, and it is the same worker, as far as can
// be told. A name may be that of several, a claim is new for each slot, and a worker knows
// its own.
func (h Holder) goesOn(next Holder) bool {
	known := h.Worker != store.Worker{} && next.Worker != store.Worker{}
	return h.InstanceID == next.InstanceID && h.Group == next.Group && h.Own == next.Own &&
		(!known || h.Worker.Host == next.Worker.Host && h.Worker.PID == next.Worker.PID) &&
		(next.Start.Equal(h.End) || next.Start.Equal(h.SlotEnd))
}

// Holders are the two newest that a worker knows of: claims are made ahead, so that
// the newest may not have begun.
type Holders struct{ Before, Newest Holder }

// At is who has the lease at a time, as far as is known: another that has a part of its
// slot is taken to extend that until the ledger was read again.
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

// see takes notice of whom a record that can be obeyed gives the lease to.
func (x *step) observeRecord(r store.Record) {
	s := &x.s
	s.Carried = x.m.Rules.Carry(r)
	if most := x.at.Now.Latest.Add(x.m.Rules.Longest); s.Carried.DoneUntil.After(most) {
		s.Carried.DoneUntil = time.Time{} // Nobody can have written that who keeps the rules.
	}
	h := &s.Holders
	switch {
	case r.Seq == 0:
	case r.Kind == store.KindGrant && r.Claim == h.Newest.Claim:
		h.Newest.End, h.Newest.SlotEnd, h.Newest.Fixed = r.WindowEnd, r.SlotEnd, r.FixedAt
		if !x.at.Now.Earliest.Before(r.WindowEnd) {
			h.Newest.SlotEnd = r.WindowEnd // It was not extended.
		}
	case r.Kind == store.KindGrant:
		x.observeTerm(r, Holder{Start: r.WindowStart, Worker: r.Worker, Fixed: r.FixedAt})
	case r.Kind == store.KindDone && r.Claim == h.Newest.Claim:
		if !r.DoneUntil.Before(r.SlotEnd) {
			h.Newest.SlotEnd = h.Newest.End // Nobody extends what is done.
		}
	case r.Kind == store.KindDone && r.Claim != "":
		// It repeats the term in the head, but for its beginning, which the token tells
		// well enough, and for where its holder runs.
		x.observeTerm(r, Holder{Start: store.FromMillis(r.Token)})
	case r.Kind == store.KindRelease && r.Claim == h.Newest.Claim && r.WindowEnd.Before(h.Newest.End):
		h.Newest.End, h.Newest.SlotEnd = r.WindowEnd, r.WindowEnd
		x.note(Note{What: HolderChanged, Record: r})
	}
}

// hand takes notice of another term, and tells of it if it is news: not if the one
// before goes on, nor if it is surely over.
func (x *step) observeTerm(r store.Record, next Holder) {
	s := &x.s
	next.Claim, next.InstanceID, next.Group = r.Claim, r.InstanceID, r.Group
	next.Priority, next.Token, next.End, next.SlotEnd = r.Priority, r.Token, r.WindowEnd, r.SlotEnd
	if r.Kind == store.KindDone && !r.DoneUntil.Before(r.SlotEnd) {
		next.SlotEnd = next.End
	}
	next.Own = slices.Contains([]string{s.Claim.ID, s.VoidClaim, s.Next.Claim, s.Held.Claim, s.Left.Claim}, r.Claim)
	news := !s.Holders.Newest.goesOn(next) && x.at.Now.Earliest.Before(next.End)
	s.Holders = Holders{Before: s.Holders.Newest, Newest: next}
	if news {
		x.note(Note{What: HolderChanged, Record: r})
	}
}
