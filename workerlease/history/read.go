package history

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/slotlease/slotlease/slots"
	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/workerlease/internal/machine"
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
// returns.
//
// schedule finds the slots that nobody claimed. If it is nil, it is read from the
// records: a change of schedule then shows, but slots between records with a schedule
// that [slots.Parse] doesn't know are not shown as missed.
func Read(records []store.Record, now time.Time, schedule slots.Schedule) []Entry {
	h := reader{now: now, schedule: schedule}
	for r := range oldestFirst(records) {
		h.take(r)
	}
	if h.newest.Seq != 0 {
		h.gap(h.newest, now)
		h.current()
	}
	return h.entries
}

// oldestFirst are records in the order in which they were appended.
func oldestFirst(records []store.Record) func(yield func(store.Record) bool) {
	var keyed []int64
	for _, r := range records {
		if r.Seq != 0 {
			keyed = append(keyed, r.Seq)
		}
	}
	if len(keyed) > 1 && keyed[0] < keyed[len(keyed)-1] {
		return slices.Values(records)
	}
	return func(yield func(store.Record) bool) {
		for _, r := range slices.Backward(records) {
			if !yield(r) {
				return
			}
		}
	}
}

// reader reads records one after the other, the oldest first.
type reader struct {
	now      time.Time
	schedule slots.Schedule // nil: the records'
	entries  []Entry
	// newest is the newest grant so far, and doneUntil that of the newest record.
	newest    store.Record
	doneUntil time.Time
}

func (h *reader) take(r store.Record) {
	if why := defect(r, h.now); why != "" {
		e := ofRecord(r, Poison)
		e.Defect = why
		h.entries = append(h.entries, e)
		return
	}
	switch r.Kind {
	case store.KindGrant:
		h.gap(r, r.SlotStart)
		if !h.extend(r) {
			h.grant(r)
		}
		h.newest = r
	case store.KindRelease:
		h.release(r)
	default:
		if r.Kind != store.KindDone || r.DoneUntil.IsZero() {
			h.entries = append(h.entries, ofRecord(r, State(r.Kind)))
		}
	}
	if !r.DoneUntil.Equal(h.doneUntil) {
		h.done(r)
		h.doneUntil = r.DoneUntil
	}
}

// grant adds the entry of a term that begins in a slot.
func (h *reader) grant(r store.Record) {
	e := ofRecord(r, "")
	e.Attempt = r.Attempt
	if e.Slot.Start.IsZero() || !e.Slot.Start.Before(e.Slot.End) {
		e.Slot = e.Window
	}
	if before := h.term(); before != nil {
		e.Takeover = before.Record.Claim != r.Claim && before.Slot.Start.Equal(e.Slot.Start)
	}
	// An extension alone doesn't show how the lease began: its token is that of the
	// beginning.
	first := h.newest.Seq == 0
	e.Partial = first && r.WindowStart.After(e.Slot.Start) && r.Token < r.WindowStart.UnixMilli()
	if !r.FixedAt.IsZero() && !e.Partial {
		e.Claimed, e.ClaimKnown = r.FixedAt.Sub(e.Slot.Start), true
	}
	e.judge(h.now)
	h.entries = append(h.entries, e)
}

// term is the newest entry of a term, nil if there is none.
func (h *reader) term() *Entry {
	for i := range slices.Backward(h.entries) {
		if h.entries[i].granted() {
			return &h.entries[i]
		}
	}
	return nil
}

// extend adds a grant to the newest entry if it extends that term within its slot.
func (h *reader) extend(r store.Record) bool {
	e := h.term()
	if e == nil || r.Claim == "" || e.Record.Claim != r.Claim || !e.Record.SlotStart.Equal(r.SlotStart) || e.State == Released {
		return false
	}
	e.Window.End, e.NewestSeq = r.WindowEnd, r.Seq
	e.Extensions++
	if e.State != Done {
		e.judge(h.now)
	}
	return true
}

// release marks the entries of the term that a record releases: the newest, and the one
// before if the term was to go on into the next slot.
func (h *reader) release(r store.Record) {
	for i := range slices.Backward(h.entries) {
		e := &h.entries[i]
		if !e.granted() {
			continue
		}
		if e.Record.Claim != r.Claim || !r.WindowStart.Before(e.Window.End) {
			return
		}
		e.ReleasedAt = r.WindowStart
		if e.State != Done { // Nobody waits for the rest of a lease whose work is done.
			e.State = Released
		}
	}
}

// defect is why workers don't obey a record, or "": the engine decides that.
func defect(r store.Record, now time.Time) string {
	if r.Seq == 0 {
		return cmp.Or(r.Defect, "no key")
	}
	err := machine.Unfit(r, now)
	if err == nil {
		return ""
	}
	return strings.TrimPrefix(strings.Join(strings.Fields(err.Error()), " "), store.ErrInvalid.Error()+": ")
}
