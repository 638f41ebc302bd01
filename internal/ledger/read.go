package ledger

import (
	"slices"
	"time"

	"github.com/slotlease/slotlease/store"
)

// State is what the newest records of a worker type show of it.
type State struct {
	// Head is the newest record that workers follow, which they may not obey; the zero Record if
	// there is none.
	Head store.Record
	// Terms are those that may be in force at some time, newest first. Each is its newest
	// record, with the WindowStart that the term began with: a command that works by an earlier
	// part of it has leave to the end of the newest.
	Terms []store.Record
	// Unread is a record that can't be read, if one may hide what is in force. Above it, workers
	// grant or release nothing but after its end.
	Unread store.Record
}

// term is what the records of one term have in common.
type term struct {
	claim, group string
	token        int64
}

func termOf(r store.Record) term { return term{r.Claim, r.Group, r.Token} }

// Read reads the newest records of a worker type, newest first. The last is the oldest of all if
// they are whole. What is poison at a time, the latest that store time may be for those who work by
// the terms, ends none and hides nothing: they ignore it. Nor does what contradicts the records
// below it.
func Read(records []store.Record, whole bool, latest time.Time) (s State) {
	records = records[always.Unreachable(records, whole):]
	if len(records) > 0 {
		s.Head = records[0]
	}
	v := At(latest)
	released := map[term]bool{}
	superseded := false
	for i, r := range records {
		grants := r.WindowStart.Before(r.WindowEnd)
		obeyed := !v.passed(records, i) && v.Defect(records[i:]) == nil
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
			released[termOf(r)] = true
		case r.Kind == store.KindOverride, r.Kind == store.KindRelease, !grants:
		case v.contradicted(records[i:]), released[termOf(r)]:
		default:
			s.add(r)
		}
		superseded = superseded || obeyed && (grants || r.Kind == store.KindRelease || r.Kind == store.KindReset)
	}
	return s
}

// add adds a grant that is older than all so far. One that a newer one goes on with is of its
// term: an extension begins where the window before ends.
func (s *State) add(r store.Record) {
	for i := range s.Terms {
		if t := &s.Terms[i]; t.WindowStart.Equal(r.WindowEnd) && t.Claim == r.Claim {
			t.WindowStart = r.WindowStart
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

// passed reports that a record was poison to the writer of the reset right above it, as one that is
// dated ahead: its time may have come since, but workers don't obey it.
func (v Reader) passed(records []store.Record, i int) bool {
	if i == 0 || records[i-1].Kind != store.KindReset || records[i-1].ReadAt.IsZero() {
		return false
	}
	v.Latest = records[i-1].ReadAt
	return v.Poison(records[i]) != nil
}

// Unfinished are the newest records of the terms whose windows may not be over at a time: others
// may work by them, whatever has been appended since. Those of poison come last.
func (v Reader) Unfinished(records []store.Record, earliest time.Time) (terms []store.Record) {
	var over []string         // claims
	var poison []store.Record // which may be many, and hide no other
	for i, r := range records {
		switch {
		case r.CheckEnvelope() != nil || slices.Contains(over, r.Claim):
		case r.WindowStart.Before(r.WindowEnd):
			of := &terms
			if v.Impossible(records[i:]) {
				of = &poison // Anyone may have written another's claim: that one's term may go on below.
			} else {
				over = append(over, r.Claim) // What comes below ends before it.
			}
			if earliest.Before(r.WindowEnd) {
				*of = append(*of, r)
			}
		case r.Kind == store.KindRelease && !v.Impossible(records[i:]):
			over = append(over, r.Claim)
		}
	}
	return append(terms, poison...)
}
