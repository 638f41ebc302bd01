package machine

import (
	"time"

	"github.com/slotlease/slotlease/store"
)

// Holder is whom a record gives its window to. The zero Holder is nobody.
type Holder struct {
	Claim, InstanceID, Group string
	Priority                 int
	Token                    int64
	Start, End               time.Time
	Fixed                    time.Time // when its newest claim was fixed
}

// Holders are the two newest that a worker knows of: claims are made ahead, so that
// the newest may not have begun.
type Holders struct{ Before, Newest Holder }

// At is who has the lease at a time, as far as is known.
func (h Holders) At(t time.Time) Holder {
	for _, each := range []Holder{h.Newest, h.Before} {
		if !t.Before(each.Start) && t.Before(each.End) {
			return each
		}
	}
	return Holder{}
}

// see takes notice of whom a record that can be obeyed gives the lease to.
func (x *step) see(r store.Record) {
	s := &x.s
	s.Carried = x.m.Rules.Carry(r)
	if most := x.at.Now.Latest.Add(x.m.Rules.Longest); s.Carried.DoneUntil.After(most) {
		s.Carried.DoneUntil = time.Time{} // Nobody can have written that who keeps the rules.
	}
	h := &s.Holders
	switch {
	case r.Seq == 0:
	case r.Kind == store.KindGrant && r.Claim == h.Newest.Claim:
		h.Newest.End, h.Newest.Fixed = r.WindowEnd, r.FixedAt
	case r.Kind == store.KindGrant:
		same := r.InstanceID == h.Newest.InstanceID && r.Group == h.Newest.Group && r.WindowStart.Equal(h.Newest.End)
		h.Before, h.Newest = h.Newest, Holder{
			Claim: r.Claim, InstanceID: r.InstanceID, Group: r.Group, Priority: r.Priority, Token: r.Token,
			Start: r.WindowStart, End: r.WindowEnd, Fixed: r.FixedAt,
		}
		if !same {
			x.tell(Note{What: HolderChanged, Record: r})
		}
	case r.Kind == store.KindRelease && r.Claim == h.Newest.Claim && r.WindowEnd.Before(h.Newest.End):
		h.Newest.End = r.WindowEnd
		x.tell(Note{What: HolderChanged, Record: r})
	}
}
