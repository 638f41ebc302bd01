package history

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/slotlease/slotlease/internal/ledger"
	"github.com/slotlease/slotlease/slots"
	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/workerlease/internal/timeline"
)

// Read returns what the newest records of one worker type say of its slots at a store
// time, the oldest entry first.
//
// The records are those of one ledger without gaps, newest first as
// [store.Ledger.Tail] returns them, or oldest first. Their Seq tells which; without two
// records that have one, newest first is assumed. Records that a store can't decode
// (those with a Defect) belong among them.
//
// now is the time of the store's clock, not of the local one: the Stamp that Tail
// returns, or that of [store.Ledger.Now] if Tail returns none.
//
// schedule finds the slots that nobody claimed. If it is nil, it is read from the
// records: a change of schedule then shows, but slots between records with a schedule
// that [slots.Parse] doesn't know are not shown as missed.
func Read(records []store.Record, now time.Time, schedule slots.Schedule) []Entry {
	h := reader{now: now, schedule: schedule, entries: make([]Entry, 0, len(records))}
	newest, ordered := bothWays(records)
	reached := len(ordered) - unreachable(newest, now)
	for _, r := range ordered[:reached] {
		h.take(r)
	}
	for _, r := range ordered[reached:] {
		h.passOver(r)
	}
	if h.gaps.Newest.Seq != 0 {
		h.gap(h.gaps.Newest, now)
		h.current()
	}
	h.block()
	h.fail()
	return h.entries
}

// bothWays are records with the newest first, and in the order in which they were appended.
func bothWays(records []store.Record) (newest, ordered []store.Record) {
	var keyed []int64
	for _, r := range records {
		if r.Seq != 0 {
			keyed = append(keyed, r.Seq)
		}
	}
	other := slices.Clone(records)
	slices.Reverse(other)
	if len(keyed) > 1 && keyed[0] < keyed[len(keyed)-1] {
		return other, records
	}
	return records, other
}

func (h *reader) take(r store.Record) {
	if why := defect(h.below, r, h.now); why != "" {
		e := ofRecord(r, Poison)
		e.Defect = why
		h.entries = append(h.entries, e)
		return
	}
	h.below = r
	h.gaps.Hear(r)
	switch r.Kind {
	case store.KindGrant:
		h.countJobs(r)
		if !r.Triggered() {
			h.gap(r, r.SlotStart)
		}
		if !h.extend(r) {
			h.grant(r)
		}
	case store.KindRelease:
		h.release(r)
	case store.KindOutcome:
		if !h.outcome(r) {
			h.tell(r)
		}
	default:
		if r.Kind == store.KindOverride {
			h.override(r)
		}
		if r.Kind != store.KindDone || r.DoneUntil.IsZero() {
			h.entries = append(h.entries, ofRecord(r, State(r.Kind)))
		}
	}
	h.gaps.Take(r)
	if !r.DoneUntil.Equal(h.doneUntil) || r.Done != "" && r.Done != h.doneText {
		h.done(r)
		h.doneUntil, h.doneText = r.DoneUntil, cmp.Or(r.Done, h.doneText)
	}
	if e := h.term(); r.Kind == store.KindDone && r.Triggered() && e != nil && e.Record.Claim == r.Claim {
		e.close(r)
	}
	if r.Kind == store.KindDone || r.Kind == store.KindRelease {
		h.outcome(r)
	}
}

// passOver adds the entry of a record above a free key, which workers don't follow.
func (h *reader) passOver(r store.Record) {
	e := ofRecord(r, Poison)
	e.Defect = defect(store.Record{}, r, h.now)
	if r.Seq > 0 {
		why := e.Defect
		e.Defect = "a key below it is free, so that workers go on there"
		if why != "" && r.Seq < store.MaxSeq {
			e.Defect += ": " + why
		}
	}
	h.entries = append(h.entries, e)
}

// unreachable is how many of the newest records stand above a free key, and those without a key among them.
func unreachable(newest []store.Record, now time.Time) (n int) {
	for len(newest) > 0 && newest[0].Seq == 0 {
		n, newest = n+1, newest[1:]
	}
	if above := ledger.At(now).Unreachable(newest, false); above > 0 {
		return n + above
	}
	return 0
}

func exactly(t time.Time) timeline.Interval { return timeline.Interval{Earliest: t, Latest: t} }

// defect is why workers don't obey a record above another, or "": the engine decides that.
func defect(below, r store.Record, now time.Time) string {
	if r.Seq == 0 {
		return cmp.Or(r.Defect, "no key")
	}
	err := ledger.At(now).Unfit(below, r)
	if err == nil {
		return ""
	}
	return strings.TrimPrefix(strings.Join(strings.Fields(err.Error()), " "), store.ErrInvalid.Error()+": ")
}
