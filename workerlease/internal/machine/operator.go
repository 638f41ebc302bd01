package machine

import (
	"fmt"
	"slices"
	"time"

	"github.com/slotlease/slotlease/slots"
	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/workerlease/internal/timeline"
)

// Below is what an override would end: what the newest records of a ledger say at a time.
type Below struct {
	// Head is the record that workers go by, to which the override is appended; the zero
	// Record if there is none. Why is why they don't obey it, nil if they do.
	Head store.Record
	Why  error
	// Terms have the newest record of each term that may not be over, newest first.
	Terms []store.Record

	inForce   store.Record // what the override repeats of it: the newest that can be obeyed
	token     int64        // the highest of those that can be obeyed
	doneUntil time.Time
}

// LookBelow reads the newest records, of which so many were asked for. It reports false if
// more are needed to know which record workers go by, and what can be obeyed.
func LookBelow(records []store.Record, asked int, now timeline.Interval) (b Below, enough bool) {
	if len(records) > 0 && records[0].Seq == 0 {
		records = records[1:] // a key that can't be read
	}
	f := facts{
		m:  &Machine{Config{Rules: Standard}},
		s:  &State{View: View{Asked: asked}},
		at: Moment{Now: now, Newest: now},
	}
	records = records[f.unreachable(records):]
	if len(records) >= asked && asked < deepest && f.needsMore(records) {
		return Below{}, false
	}
	if len(records) == 0 {
		return Below{}, true
	}
	b = Below{Head: records[0], Why: f.defect(records), Terms: f.unfinished(records)}
	overridden := false
	for i, r := range records {
		if f.poison(r) != nil {
			continue
		}
		b.token = max(b.token, r.Token)
		if f.impossible(records[i:]) {
			continue
		}
		if b.inForce.Seq == 0 {
			b.inForce = r
		}
		if !overridden && !blocks(r, now) {
			b.doneUntil = later(b.doneUntil, r.DoneUntil)
		}
		overridden = overridden || r.Kind == store.KindOverride // It may have opened slots again.
	}
	return b, true
}

// unfinished are the newest records of the terms whose windows may not be over: others may
// work by them, whatever has been appended since.
func (f facts) unfinished(records []store.Record) (terms []store.Record) {
	var over []string // claims
	for i, r := range records {
		switch {
		case r.CheckEnvelope() != nil || slices.Contains(over, r.Claim):
		case r.WindowStart.Before(r.WindowEnd):
			over = append(over, r.Claim) // What comes below ends before it.
			if f.at.Now.Earliest.Before(r.WindowEnd) {
				terms = append(terms, r)
			}
		case r.Kind == store.KindRelease && !f.impossible(records[i:]):
			over = append(over, r.Claim)
		}
	}
	return terms
}

// blocks reports that a record says that slots are done up to more than a slot of its
// schedule and a day ahead.
func blocks(r store.Record, now timeline.Interval) bool {
	most := now.Latest.Add(longBlock)
	if schedule, err := slots.Parse(r.Schedule); err == nil {
		most = most.Add(schedule.At(now.Latest).Length())
	}
	return r.DoneUntil.After(most)
}

// Override completes the record of an operator, which has the fields that the ledger
// doesn't decide: it ends whatever is in force, as of now, and moves nothing else. Its
// DoneUntil is the newest that doesn't block, unless it has one.
func (b Below) Override(r store.Record, readAt time.Time, now timeline.Interval) (store.Record, error) {
	at, token := Standard.Reset(store.Record{Token: b.token}, now)
	r.WorkerType, r.Seq, r.Kind = b.Head.WorkerType, b.Head.Seq+1, store.KindOverride
	r.WindowStart, r.WindowEnd, r.Token = at, at, token
	r.SlotStart, r.SlotEnd, r.Schedule, r.Attempt = b.inForce.SlotStart, b.inForce.SlotEnd, b.inForce.Schedule, b.inForce.Attempt
	r.FixedAt, r.ReadAt = now.Earliest.Truncate(time.Millisecond), readAt
	if r.DoneUntil.IsZero() {
		r.DoneUntil = b.doneUntil
	}
	r = r.Truncated()
	early := timeline.Interval{Earliest: now.Earliest, Latest: now.Earliest} // as another may know it
	if err := Standard.Poison(r, early, Standard.Ahead, Standard.Longest); err != nil {
		return store.Record{}, fmt.Errorf("workers would not obey the override: %w", err)
	}
	return r, nil
}
