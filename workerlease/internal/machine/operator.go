package machine

import (
	"fmt"
	"slices"
	"time"

	"github.com/slotlease/slotlease/internal/ledger"
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
	// Terms have the newest record of each term that may not be over, newest first, and those
	// of poison last. Those below LastOverride, the newest override that is obeyed, have been
	// ended by it, which their holders may not have noticed.
	Terms        []store.Record
	LastOverride int64
	// Unreachable are the records above a free key, newest first.
	Unreachable []store.Record
	// Stuck says that no worker supersedes the head, which is poison: nothing below it shows
	// what is in force.
	Stuck bool
	// Watched is how long workers watch the head before they supersede it, if they have slots as
	// long as that of the newest record that can be obeyed; 0 if they obey the head.
	Watched time.Duration

	records []store.Record // the head, and those below it
	asked   int
	inForce store.Record // what the override repeats of it: the newest that can be obeyed
	token   int64        // the highest of those that can be obeyed
	done    Carried      // what is done
}

// LookBelow reads the newest records, of which so many were asked for. It reports false if
// more are needed to know which record workers go by, and what can be obeyed.
func LookBelow(records []store.Record, asked int, now timeline.Interval) (b Below, enough bool) {
	if len(records) > 0 && records[0].Seq == 0 {
		records, asked = records[1:], asked-1 // a key that can't be read
	}
	reader := ledger.At(now.Latest)
	n := reader.Unreachable(records, len(records) < asked)
	b = Below{Unreachable: records[:n], records: records[n:], asked: asked}
	records = b.records
	if len(b.Unreachable)+len(records) >= asked && asked < ledger.Deepest && reader.NeedsMore(records) {
		return Below{}, false
	}
	if len(records) == 0 {
		return b, true
	}
	b.Head, b.Why, b.Terms = records[0], reader.Defect(records), reader.Unfinished(records, now.Earliest)
	b.Stuck = b.Why != nil && reader.Stuck(records)
	overridden := false
	for i, r := range records {
		if reader.Poison(r) != nil {
			continue
		}
		b.token = max(b.token, r.Token)
		if reader.Impossible(records[i:]) {
			continue
		}
		if b.inForce.Seq == 0 {
			b.inForce = r
		}
		if r.Kind == store.KindOverride {
			b.LastOverride = max(b.LastOverride, r.Seq)
		}
		c := carry(r)
		if overridden || c.DoneBefore().After(BlocksAfter(r, nil, now.Latest)) {
			continue // An override that blocks is a mistake: what it says is not repeated.
		}
		if c.DoneUntil.After(b.done.DoneUntil) || b.done.Done.IsZero() && c.DoneUntil.Equal(b.done.DoneUntil) {
			b.done = c
		}
		overridden = r.Kind == store.KindOverride // It may have opened slots again.
	}
	if b.Why != nil {
		b.Watched = reader.Watched(records, b.inForce.SlotEnd.Sub(b.inForce.SlotStart))
	}
	return b, true
}

// After is what workers go by when a record is appended to the head. That may be one of the
// records above it: the key below which was free is not free then.
func (b Below) After(r store.Record, now timeline.Interval) (head store.Record, why error) {
	next, _ := LookBelow(slices.Concat(b.Unreachable, []store.Record{r}, b.records), b.asked+1, now)
	if next.Head.Seq == 0 {
		return r, nil // Nothing that was read shows another one.
	}
	return next.Head, next.Why
}

// BlocksAfter is the time up to which a record may leave nothing to claim before that is
// reported: a slot and a day ahead. The slot is that of a schedule or, if it is nil, of the
// record's; that of the record itself, if this version can't read its schedule.
func BlocksAfter(r store.Record, schedule slots.Schedule, now time.Time) time.Time {
	if schedule == nil {
		schedule, _ = slots.Parse(r.Schedule)
	}
	most := now.Add(longBlock)
	switch {
	case schedule != nil:
		return most.Add(schedule.At(now).Length())
	case r.Schedule != "" && r.SlotStart.Before(r.SlotEnd):
		return most.Add(r.SlotEnd.Sub(r.SlotStart))
	}
	return most
}

// Override completes the record of an operator, which has the fields that the ledger
// doesn't decide: it ends whatever is in force, as of now, and moves nothing else. Its
// DoneUntil is the newest that doesn't block, unless it has one.
func (b Below) Override(r store.Record, readAt time.Time, now timeline.Interval) (store.Record, error) {
	at, token := Standard.Reset(store.Record{Token: b.token}, now)
	r.WorkerType, r.Seq, r.Kind = b.Head.WorkerType, b.Head.Seq+1, store.KindOverride
	r.WindowStart, r.WindowEnd, r.Token = at, at, token
	r.SlotStart, r.SlotEnd, r.Schedule = b.inForce.SlotStart, b.inForce.SlotEnd, b.inForce.Schedule
	r.Attempt, r.Spared = b.inForce.Attempt, b.inForce.Spared
	r.Orders = repeated(b.inForce.Orders, now.Earliest, time.Time{})
	r.FixedAt, r.ReadAt = now.Earliest.Truncate(time.Millisecond), readAt
	if r.DoneUntil.IsZero() {
		r.DoneUntil, r.Done = b.done.DoneUntil, b.done.Done.String()
	}
	r = r.Truncated()
	if err := ledger.At(now.Earliest).Poison(r); err != nil { // as another may know the time
		return store.Record{}, fmt.Errorf("workers would not obey the override: %w", err)
	}
	return r, nil
}
