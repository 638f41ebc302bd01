package gap

import (
	"iter"
	"slices"
	"time"

	"github.com/slotlease/slotlease/slots"
	"github.com/slotlease/slotlease/store"
)

// Slot is one that nobody claimed.
type Slot struct {
	slots.Slot
	// Run is what still ran when it began, so that it was skipped; nil if it was missed. Died is that in which a worker has died,
	// if this is the last slot that it kept from its beginning: it was missed, as the workers that find the death say.
	Run, Died *Run
	// Pause and Drain are the orders of operators in force in it, nil if there were none.
	Pause, Drain *store.Order
}

// Run is the run of a job outside of its slot: beyond its end, or late.
type Run struct {
	Grant      store.Record // the first of its term that was taken
	Start, End time.Time    // of that part of its windows
	Said       bool         // its worker, or an operator, has ended it, or it is a group's
}

// Since is when the run began.
func (r *Run) Since() time.Time {
	if begun := store.FromMillis(r.Grant.Token); begun.After(r.Grant.SlotStart) {
		return begun
	}
	return r.Grant.SlotStart
}

// most is how many runs, and orders, are remembered: those of one gap between grants are needed.
const most = 64

// Finder finds the slots that nobody claimed, as records come, the oldest first: those that workers
// obey. The zero Finder is ready for use.
type Finder struct {
	// Newest is the newest grant so far. Its window and its slot end with an override.
	Newest store.Record
	// Since is the end of the newest slot that somebody has claimed.
	Since time.Time

	first store.Record // of the newest term
	runs  []Run
	// orders are the pauses and drains, and text that in which the newest came.
	orders []store.Order
	text   string
}

// Hear takes in the orders of a record, and what it says of a run. Each repeats the orders in force, and the one that ends them
// early says when.
func (f *Finder) Hear(r store.Record) {
	for i := range f.runs {
		f.runs[i].Said = f.runs[i].Said || f.runs[i].says(r)
	}
	if o, ok := r.Order(); ok && o.Removes() {
		for i, p := range f.orders {
			if p.Kind == o.Kind && (o.Target == "" || o.Target == p.Target) && p.Until.After(o.At) {
				f.orders[i].Until = o.At
			}
		}
	}
	if r.Orders == f.text {
		return
	}
	f.text = r.Orders
	orders, _ := store.ParseOrders(r.Orders)
	for _, o := range orders {
		known := func(p store.Order) bool { return p.Kind == o.Kind && p.Target == o.Target && p.At.Equal(o.At) }
		if o.Kind != store.OrderPause && o.Kind != store.OrderDrain || o.Removes() || slices.ContainsFunc(f.orders, known) {
			continue
		}
		f.orders = append(f.orders, o)
		f.orders = f.orders[max(0, len(f.orders)-most):]
	}
}

// Take takes in what a record grants, or frees.
func (f *Finder) Take(r store.Record) {
	switch r.Kind {
	case store.KindGrant:
		f.grant(r)
	case store.KindRelease:
		if n := len(f.runs); n > 0 && f.runs[n-1].Grant.Claim == r.Claim {
			f.runs[n-1].end(r.WindowStart)
		}
	case store.KindOverride:
		if r.WindowStart.Before(f.Newest.WindowEnd) {
			f.Newest.WindowEnd, f.Newest.SlotEnd = r.WindowStart, r.WindowStart // From there on, slots were free.
		}
		if r.WindowStart.Before(f.Since) {
			f.Since = r.WindowStart
		}
		for i := range f.runs {
			f.runs[i].end(r.WindowStart)
		}
	case store.KindReset, store.KindDone, store.KindOutcome, store.KindOrder, store.KindSighting:
	}
}

// says reports that a record says what came of the run, other than that its worker has died.
func (r *Run) says(by store.Record) bool {
	if o, ok := by.Outcome(); ok {
		own := o.InstanceID == r.Grant.InstanceID && o.Attempt == r.Grant.Attempt && o.SlotStart.Equal(r.Grant.SlotStart)
		return own && o.Cause != store.WorkerDied
	}
	own := by.Claim == r.Grant.Claim && (by.Kind == store.KindDone || by.Kind == store.KindRelease)
	return own || by.Kind == store.KindOverride
}

func (r *Run) end(at time.Time) {
	if at.Before(r.End) {
		r.End = at
	}
}

// grant takes in a grant. What a job has after its slot is a run that its slot was too short for, or a late one.
func (f *Finder) grant(r store.Record) {
	if r.Claim != f.first.Claim || !r.SlotStart.Equal(f.first.SlotStart) {
		f.first = r
	}
	if r.Triggered() { // It is beside the slots, and keeps those that begin meanwhile waiting.
		f.run(r, r.WindowStart)
		return
	}
	f.Newest, f.Since = r, r.WindowEnd
	if r.SlotEnd.After(r.WindowEnd) || OutsideSlot(r) {
		f.Since = r.SlotEnd // What begins before that is of a schedule that was changed since.
	}
	if !OutsideSlot(r) {
		return
	}
	start := r.WindowStart
	if begun := store.FromMillis(r.Token); begun.Before(start) {
		start = begun // Its first grants are older than what was read.
	}
	if start.Before(r.SlotEnd) {
		start = r.SlotEnd
	}
	f.run(r, start)
}

// run takes in a part of the windows of a run.
func (f *Finder) run(r store.Record, start time.Time) {
	if n := len(f.runs); n > 0 && f.runs[n-1].Grant.Claim == r.Claim && f.runs[n-1].Grant.SlotStart.Equal(r.SlotStart) {
		f.runs[n-1].End = r.WindowEnd
		return
	}
	f.runs = append(f.runs, Run{Grant: f.first, Start: start, End: r.WindowEnd, Said: r.Group != ""})
	f.runs = f.runs[max(0, len(f.runs)-most):]
}

// OutsideSlot reports that a grant is for a job that runs on after its slot, or late.
func OutsideSlot(r store.Record) bool {
	return r.Kind == store.KindGrant && r.Attempt > 0 && r.SlotStart.Before(r.SlotEnd) && r.WindowEnd.After(r.SlotEnd)
}

// Late reports that a grant is for a slot that was over.
func Late(r store.Record) bool { return OutsideSlot(r) && !r.WindowStart.Before(r.SlotEnd) }

// SaidBy is when the worker of an attempt at a slot has said what came of it, if it lives: at the end of its windows, or,
// if they ended with its slot, within the next one, where other appends go first.
func SaidBy(slot slots.Slot, windowEnd time.Time) time.Time {
	if !windowEnd.Equal(slot.End) {
		return windowEnd
	}
	return windowEnd.Add(min(slot.Length(), time.Minute))
}

// Unclaimed yields the slots of a schedule up to a time, as a whole, that nobody has claimed since the newest grant.
func (f *Finder) Unclaimed(s slots.Schedule, until time.Time) iter.Seq[Slot] {
	return func(yield func(Slot) bool) {
		for slot := range Slots(s, f.Since, until) {
			if !yield(f.Judge(slot, until)) {
				return
			}
		}
	}
}

// Judge says why nobody has claimed a slot, as of a time.
func (f *Finder) Judge(slot slots.Slot, now time.Time) Slot {
	out := Slot{Slot: slot}
	for i, r := range f.runs {
		if slot.Start.Before(r.Start) || !slot.Start.Before(r.End) {
			continue
		}
		if out.Run, out.Died = &f.runs[i], nil; !r.Said && !slot.End.Before(r.End) && !now.Before(r.End) {
			out.Run, out.Died = nil, &f.runs[i]
		}
	}
	for i, o := range f.orders {
		switch in := o.At.Before(slot.End) && o.Until.After(slot.Start); {
		case in && o.Kind == store.OrderPause:
			out.Pause = &f.orders[i]
		case in:
			out.Drain = &f.orders[i]
		}
	}
	return out
}
