package verify

import (
	"slices"
	"time"

	"github.com/slotlease/slotlease/store"
)

// losses finds who may have worked beside somebody whose record the store has lost.
type losses struct {
	recent []store.Record // the newest that workers obeyed, oldest first
	lost   []loss         // what is gone, unless all above it begins later
	said   []store.Lost   // what workers have said, newest last
}

// loss is a record that is gone, and until when its holder may have worked.
type loss struct {
	store.Lost
	until time.Time
}

// obeyed takes in a record that workers obey.
func (l *losses) obeyed(v *Verifier, r store.Record) {
	l.recent = append(l.recent[max(0, len(l.recent)+1-lookBack):], r)
	for i := range l.lost {
		l.lost[i].followed(v, r)
	}
	l.lost = slices.DeleteFunc(l.lost, func(x loss) bool { return !r.WindowStart.Before(x.until) })
	lost, says := r.Lost()
	if !says || slices.ContainsFunc(l.said, func(s store.Lost) bool { return same(s, lost) }) {
		return
	}
	l.said = append(l.said[max(0, len(l.said)+1-lookBack):], lost)
	there := func(r store.Record) bool {
		is := store.Lost{Seq: r.Seq, Token: r.Token, Claim: r.Claim, InstanceID: r.InstanceID, End: r.WindowEnd}
		return same(is, lost)
	}
	if slices.ContainsFunc(l.recent, there) {
		return // It was there after all: reads were stale.
	}
	v.find(RecordsLost, r, "The store had record %d, of %q, with token %d until %s, and has lost it.", lost.Seq, lost.InstanceID, lost.Token, store.Format(lost.End))
	x := loss{lost, lost.End}
	for _, above := range l.recent {
		if above.Seq >= lost.Seq {
			x.followed(v, above)
		}
	}
	l.lost = append(l.lost[max(0, len(l.lost)+1-lookBack):], x)
}

// followed finds a grant in the place of the record that is gone, or above it, while its holder may have worked: until it has released
// its term, or an operator has said that nobody works.
func (x *loss) followed(v *Verifier, r store.Record) {
	own := r.Claim == x.Claim
	switch {
	case r.Kind == store.KindOverride, r.Kind == store.KindRelease && own:
		x.until = sooner(x.until, r.WindowStart)
	case r.Kind != store.KindGrant, own, r.Group != "" && r.Group == x.Group:
	case r.WindowStart.Before(x.until) && r.WindowEnd.After(x.Start):
		v.find(BesideLost, r, "It grants %q a lease from %s, with token %d, and record %d, which the store has lost, had granted %q one until %s, with token %d.",
			r.InstanceID, store.Format(r.WindowStart), r.Token, x.Seq, x.InstanceID, store.Format(x.End), x.Token)
	}
}

// same reports that two workers say the same record to be gone: one may have read more of its term.
func same(a, b store.Lost) bool {
	return a.Seq == b.Seq && a.Token == b.Token && a.Claim == b.Claim && a.InstanceID == b.InstanceID && a.End.Equal(b.End)
}

func sooner(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}
