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
// below it. Grants that end after last, unless that is zero, are left out.
func Read(records []store.Record, whole bool, latest, last time.Time) (s State) {
	records = records[Unreachable(records, whole, Keep, Obeyable, Leads):]
	if len(records) > 0 {
		s.Head = records[0]
	}
	v := view{records: records, latest: latest}
	released := map[term]bool{}
	superseded := false
	for i, r := range records {
		grants := r.WindowStart.Before(r.WindowEnd)
		obeyed := v.obeys(i)
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
		case v.contradicted(i), released[termOf(r)], !last.IsZero() && r.WindowEnd.After(last):
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

// view is how workers see records, newest first, at a time.
type view struct {
	records []store.Record
	latest  time.Time
}

func (v view) poison(i int) bool { return Poison(v.records[i], v.latest, Ahead, Longest) != nil }

// contradicted reports that a record contradicts the one right below it. No worker has appended
// it: above what it doesn't obey, it appends a reset first.
func (v view) contradicted(i int) bool {
	if r := v.records[i]; i+1 < len(v.records) && r.Kind != store.KindReset && Leads(v.records[i+1], r) && !v.poison(i+1) {
		return Contradicts(v.records[i+1], r) != nil
	}
	return false
}

// passed reports that a record was poison to the writer of the reset right above it, as one that is
// dated ahead: its time may have come since, but workers don't obey it.
func (v view) passed(i int) bool {
	if i == 0 || v.records[i-1].Kind != store.KindReset || v.records[i-1].ReadAt.IsZero() {
		return false
	}
	return Poison(v.records[i], v.records[i-1].ReadAt, Ahead, Longest) != nil
}

// obeys reports that workers obey a record, as far as those below it show. What an override or a
// reset ends is judged by the time of its writer. An override ends all that is below it, so none of
// that may contradict it: what was in force when it came is not known.
func (v view) obeys(i int) bool {
	r := v.records[i]
	ends := r.Kind == store.KindOverride || r.Kind == store.KindReset
	if v.poison(i) || v.passed(i) || !ends && v.contradicted(i) {
		return false
	}
	for j := i + 1; j < len(v.records); j++ {
		then := v
		if ends && Dated(r, v.records[j]) {
			then.latest = r.ReadAt
		}
		switch {
		case then.poison(j), ends && then.contradicted(j):
		case Contradicts(v.records[j], r) != nil:
			return false
		case r.Kind != store.KindOverride:
			return true
		}
	}
	return true
}
