package history

import (
	"slices"
	"time"

	"github.com/slotlease/slotlease/slots"
	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/workerlease/internal/gap"
)

// reader reads records one after the other, the oldest first.
type reader struct {
	now      time.Time
	schedule slots.Schedule // nil: the records'
	entries  []Entry
	gaps     gap.Finder
	// doneUntil and doneText are those of the newest record that had them.
	below     store.Record // the newest record that can be obeyed
	doneUntil time.Time
	doneText  string
	// jobs says that the workers run jobs, as far as their grants show it.
	jobs bool
	// parsed is the schedule that was read last.
	parsed struct {
		text     string
		schedule slots.Schedule
	}
}

// grant adds the entry of a term that begins in a slot.
func (h *reader) grant(r store.Record) {
	e := ofRecord(r, "")
	e.Attempt, e.Written = r.Attempt, r.ReadAt
	if r.Triggered() {
		e.Order = triggerOf(r)
	}
	if e.Slot.Start.IsZero() || !e.Slot.Start.Before(e.Slot.End) {
		e.Slot = e.Window
	}
	if before := h.term(); before != nil {
		e.Takeover = before.Record.Claim != r.Claim && before.Slot.Start.Equal(e.Slot.Start)
	}
	// An extension alone doesn't show how the lease began: its token is that of the
	// beginning.
	first := h.gaps.Newest.Seq == 0
	e.Partial = first && r.WindowStart.After(e.Slot.Start) && r.Token < r.WindowStart.UnixMilli()
	if !r.FixedAt.IsZero() && !e.Partial {
		e.Claimed, e.ClaimKnown = r.FixedAt.Sub(e.Slot.Start), true
	}
	e.judge(h.now)
	h.entries = append(h.entries, e)
}

// triggerOf is the order of an operator by which a run was granted beside the slots, nil if the record doesn't have it.
func triggerOf(r store.Record) *store.Order {
	orders, _ := store.ParseOrders(r.Orders)
	for i, o := range orders {
		if o.Kind == store.OrderTrigger && o.At.Equal(r.SlotStart) {
			return &orders[i]
		}
	}
	return nil
}

// countJobs takes in whether a grant is for a job. If it isn't, and repeats what is done, no
// jobs are run. One that says something new of that is no worker's, and shows nothing.
func (h *reader) countJobs(r store.Record) {
	switch {
	case r.Attempt > 0:
		h.jobs = true
	case r.DoneUntil.Equal(h.doneUntil):
		h.jobs = false
	}
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
	if e == nil || r.Claim == "" || e.Record.Claim != r.Claim || !e.Record.SlotStart.Equal(r.SlotStart) || e.State == Released || e.State == Overridden {
		return false
	}
	e.Window.End, e.NewestSeq = r.WindowEnd, r.Seq
	e.Extensions++
	e.write(r)
	if e.State != Done {
		e.judge(h.now)
	}
	return true
}

// release marks the entries of the term that a record releases: the newest, and the one
// before if the term was to go on into the next slot. One that takes the attempt back says so even when the lease is over, and
// whoever has taken its worker for dead meanwhile.
func (h *reader) release(r store.Record) {
	for i := range slices.Backward(h.entries) {
		e := &h.entries[i]
		if !e.granted() {
			continue
		}
		unbegun := r.Attempt < e.Attempt
		if e.Record.Claim != r.Claim || !r.WindowStart.Before(e.Window.End) && !unbegun {
			return
		}
		e.write(r)
		if e.ReleasedAt, e.Unbegun = r.WindowStart, unbegun; e.Cause == store.WorkerDied {
			e.Outcome, e.OutcomeKnown, e.Cause = store.Outcome{}, false, ""
		}
		if e.State != Done { // Nobody waits for the rest of a lease whose work is done.
			e.State = Released
		}
	}
}

// override marks the entries of all terms that a record overrides: whatever was not over.
func (h *reader) override(r store.Record) {
	for i := range slices.Backward(h.entries) {
		e := &h.entries[i]
		if !e.granted() || !r.WindowStart.Before(e.Window.End) || !e.ReleasedAt.IsZero() || !e.OverriddenAt.IsZero() {
			continue
		}
		e.OverriddenAt = r.WindowStart
		if e.State != Done {
			e.State = Overridden
		}
	}
}
