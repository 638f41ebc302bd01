// Package terms decides, from records alone, which of them workers can obey and follow, and
// which terms may be in force. The engine goes by these rules, and so does a store before it
// changes its own time. The package is pure: it reads no clock and no store.
package terms

import (
	"time"

	"github.com/slotlease/slotlease/store"
)

// State is what the newest records of a worker type show of it.
type State struct {
	// Head is the newest record that workers follow, which they may not obey; the zero Record if
	// there is none.
	Head store.Record
	// Terms are those that may be in force at some time, newest first. Each is its newest
	// record, with the claim, token and WindowStart that the term began with: a command that
	// works by an earlier part of it has leave to the end of the newest.
	Terms []store.Record
	// Unread is a record that can't be read, if one may hide what is in force. Above it, workers
	// grant or release nothing but after its end.
	Unread store.Record
}

// Read reads the newest records of a worker type, newest first. The last is the oldest of all if
// they are whole. What is poison even at latest, the latest that store time may be, ends no term
// and hides nothing: workers ignore it.
func Read(records []store.Record, whole bool, latest time.Time) (s State) {
	records = records[Unreachable(records, whole, Keep, Obeyable, Leads):]
	if len(records) > 0 {
		s.Head = records[0]
	}
	released, ended := map[string]bool{}, map[int64]bool{} // claims, and the tokens of their terms
	superseded := false
	for _, r := range records {
		grants := r.WindowStart.Before(r.WindowEnd)
		obeyed := Poison(r, latest, Ahead, Longest) == nil
		switch {
		case r.Defect != "":
			if !superseded && s.Unread.Seq == 0 {
				s.Unread = r
			}
			continue
		case !Obeyable(r):
			continue
		case r.Kind == store.KindOverride && obeyed:
			return s
		case r.Kind == store.KindRelease && obeyed:
			released[r.Claim] = true
		case r.Kind == store.KindOverride, r.Kind == store.KindRelease:
		case grants && (released[r.Claim] || ended[r.Token]):
			ended[r.Token] = true // Of a lease that goes on with the next slot, each has its claim.
		case grants:
			s.add(r)
		}
		superseded = superseded || obeyed && (grants || r.Kind == store.KindRelease || r.Kind == store.KindReset)
	}
	return s
}

// add adds a grant that is older than all so far. One that a newer one goes on with is of its
// term: an extension, and the next slot of a lease that goes on, begin where the window before ends.
func (s *State) add(r store.Record) {
	for i := range s.Terms {
		if t := &s.Terms[i]; t.WindowStart.Equal(r.WindowEnd) && (t.Claim == r.Claim || t.Token == r.Token) {
			t.Claim, t.Token, t.WindowStart = r.Claim, r.Token, r.WindowStart
			return
		}
	}
	s.Terms = append(s.Terms, r)
}

// InForce are the terms that are in force at a time, or at most so long after it, newest first.
func (s State) InForce(at time.Time, after time.Duration) (in []store.Record) {
	for i := range s.Terms {
		if r := &s.Terms[i]; !r.WindowStart.After(at.Add(after)) && at.Before(r.WindowEnd) {
			in = append(in, *r)
		}
	}
	return in
}
