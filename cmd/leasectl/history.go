package main

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/slotlease/slotlease/slots"
	"github.com/slotlease/slotlease/store"
)

// state is what a row of a history says of its slot. A record of a kind that
// this version doesn't know has its kind as state.
type state string

// The states.
const (
	upcoming state = "upcoming" // claimed, not begun
	held     state = "held"     // the lease is in force
	expired  state = "expired"  // the lease ran to the end of its window
	released state = "released" // the holder gave the rest back
	missed   state = "missed"   // the slot passed, and nobody had claimed it
	free     state = "free"     // the slot has begun, and nobody has claimed it
	done     state = "done"     // the slot's work is done, or was made up for
	poison   state = "poison"   // the record can't be obeyed
)

// entry is a row of a history: what the records of one term say of a slot, or
// another record, or that there is none.
type entry struct {
	Slot  slots.Slot
	State state
	// Record is the zero Record for slots that nobody claimed.
	Record store.Record
	// Claimed is how long after the start of the slot its claim was fixed:
	// negative before it. Known says whether that is recorded.
	Claimed time.Duration
	Known   bool
	// Released is when the rest of the lease was given back.
	Released time.Time
	// Slots is how many slots a row of missed ones stands for; 0 if it is one.
	Slots int
	// Extended is how often the lease was extended within the slot: the window of
	// Record reaches to the end of the newest, which has the number Newest.
	Extended int
	Newest   int64
	// Headless says that the lease began before Record, which was read first.
	Headless bool
	// Note is what else there is to say.
	Note string
}

const (
	// missedRows is how many missed slots in a row are shown one by one.
	missedRows = 3
	// missedCount bounds the counting of missed slots.
	missedCount = 10_000
	// ahead and longest, and unfit, are how workers judge a record. The source of
	// truth is workerlease/internal/machine: Standard in rules.go, and poison.go.
	ahead   = time.Hour
	longest = 366 * 24 * time.Hour
)

// history reads the newest records of a ledger, newest first, at a store time,
// and returns at most last rows, the oldest slot first. It reads nothing but its
// arguments. Slots that nobody claimed are told by the schedules in the records.
func history(tail []store.Record, now time.Time, last int) []entry {
	var rows []entry
	var newest store.Record // the newest grant so far
	var doneUntil time.Time // of the newest record so far
	for _, r := range slices.Backward(tail) {
		if why := unfit(r, now); why != "" {
			rows = append(rows, entry{Slot: slots.Slot{Start: r.SlotStart, End: r.SlotEnd}, State: poison, Record: r, Note: why})
			continue
		}
		switch r.Kind {
		case store.KindGrant:
			rows = append(rows, gap(newest, r, r.SlotStart)...)
			if !extend(rows, r, now) {
				rows = append(rows, granted(r, now, newest.Seq == 0))
			}
			newest = r
		case store.KindRelease:
			release(rows, r)
		default:
			if r.Kind != store.KindDone || r.DoneUntil.IsZero() {
				rows = append(rows, entry{Slot: slots.Slot{Start: r.SlotStart, End: r.SlotEnd}, State: state(r.Kind), Record: r, Note: r.Metadata})
			}
		}
		if !r.DoneUntil.Equal(doneUntil) {
			rows, doneUntil = closeSlot(rows, r), r.DoneUntil
		}
	}
	if newest.Seq != 0 {
		rows = append(rows, gap(newest, newest, now)...)
		rows = append(rows, current(newest, now)...)
	}
	return rows[max(0, len(rows)-last):]
}

// granted is the row of a grant, perhaps the first that was read.
func granted(r store.Record, now time.Time, first bool) entry {
	e := entry{Slot: slots.Slot{Start: r.SlotStart, End: r.SlotEnd}, Record: r}
	if e.Slot.Start.IsZero() || !e.Slot.Start.Before(e.Slot.End) {
		e.Slot = slots.Slot{Start: r.WindowStart, End: r.WindowEnd}
	}
	// Of an extension alone it isn't known how the lease began. Its token is that of
	// the beginning.
	e.Headless = first && r.WindowStart.After(e.Slot.Start) && r.Token < r.WindowStart.UnixMilli()
	if !r.FixedAt.IsZero() && !e.Headless {
		e.Claimed, e.Known = r.FixedAt.Sub(e.Slot.Start), true
	}
	e.judge(now)
	return e
}

// judge sets the state of a term's row at a time, and notes what part of the slot
// it has, if that isn't all.
func (e *entry) judge(now time.Time) {
	r := e.Record
	switch {
	case now.Before(r.WindowStart):
		e.State = upcoming
	case now.Before(r.WindowEnd):
		e.State = held
	default:
		e.State = expired
	}
	e.Note = e.from()
	if e.State == expired && r.WindowEnd.Before(e.Slot.End) {
		e.Note += " to " + relative(r.WindowEnd.Sub(e.Slot.Start))
	}
	e.Note = strings.TrimSpace(e.Note)
}

// from notes where in the slot a lease began, if not at its start.
func (e *entry) from() string {
	late := e.Record.WindowStart.Sub(e.Slot.Start)
	switch {
	case late <= 0:
		return ""
	case e.Headless:
		return "from before " + relative(late)
	}
	return "from " + relative(late)
}

// extend adds a grant to the row of the term that it extends, if that is the newest
// and the slot is the same.
func extend(rows []entry, r store.Record, now time.Time) bool {
	for i, e := range slices.Backward(rows) {
		if e.Record.Kind != store.KindGrant || e.State == poison {
			continue
		}
		if r.Claim == "" || e.Record.Claim != r.Claim || !e.Record.SlotStart.Equal(r.SlotStart) || e.State == released {
			return false
		}
		rows[i].Record.WindowEnd, rows[i].Newest = r.WindowEnd, r.Seq
		rows[i].Extended++
		if e.State != done {
			rows[i].judge(now)
		}
		return true
	}
	return false
}

// release marks the rows of the term that a record released: the newest, and the
// one before if the term was to go on into another slot.
func release(rows []entry, r store.Record) {
	for i, e := range slices.Backward(rows) {
		if e.Record.Kind != store.KindGrant || e.State == poison {
			continue
		}
		if e.Record.Claim != r.Claim || !r.WindowStart.Before(e.Record.WindowEnd) {
			return
		}
		rows[i].Released = r.WindowStart
		if e.State == done {
			continue // What is left of its lease is nothing that anybody waits for.
		}
		rows[i].State = released
		rows[i].Note = strings.TrimSpace(e.from() + " at " + relative(r.WindowStart.Sub(e.Slot.Start)))
		if !r.WindowStart.After(e.Record.WindowStart.Add(time.Millisecond)) {
			rows[i].Note = "before it began"
		}
	}
}

// gap is the rows of the slots between a grant and the time until, by the
// schedule of another, that nobody claimed.
func gap(before, by store.Record, until time.Time) []entry {
	if before.Seq == 0 || !until.After(before.WindowEnd) {
		return nil
	}
	schedule, err := slots.Parse(by.Schedule)
	if err != nil {
		return nil
	}
	slot := schedule.At(before.WindowEnd)
	if slot.Start.Before(before.WindowEnd) {
		slot = schedule.Next(before.WindowEnd)
	}
	var rows []entry
	for n := 0; !slot.IsZero() && !slot.End.After(until); n++ {
		if n == missedCount {
			rows[len(rows)-1].Note = fmt.Sprintf("and more: only %d were counted", missedCount)
			break
		}
		if n < missedRows {
			rows = append(rows, entry{Slot: slot, State: missed})
		} else {
			rows[0].Slot.End, rows[0].Slots = slot.End, n+1
			rows = rows[:1]
		}
		slot = schedule.Next(slot.Start)
	}
	if len(rows) == 1 {
		rows[0].count()
	}
	return rows
}

// count notes how many slots a row stands for.
func (e *entry) count() {
	if e.Slots > 0 {
		e.Note = strings.TrimPrefix(fmt.Sprintf("%s; %d slots", e.Note, e.Slots), "; ")
	}
}

// current is the row of the slot that is under way, if nobody has claimed it.
func current(newest store.Record, now time.Time) []entry {
	if now.Before(newest.WindowEnd) {
		return nil
	}
	schedule, err := slots.Parse(newest.Schedule)
	if err != nil {
		return nil
	}
	slot := schedule.At(now)
	if slot.IsZero() || slot.Start.Before(newest.WindowEnd) {
		return nil
	}
	return []entry{{Slot: slot, State: free}}
}

// unfit says why a record can't be obeyed, or nothing.
func unfit(r store.Record, now time.Time) string {
	if r.Seq == 0 {
		return cmp.Or(r.Defect, "no key")
	}
	if err := r.CheckEnvelope(); err != nil {
		return strings.TrimPrefix(strings.Join(strings.Fields(err.Error()), " "), store.ErrInvalid.Error()+": ")
	}
	limit := now.Add(ahead)
	switch length := r.WindowEnd.Sub(r.WindowStart); {
	case r.WindowStart.After(limit) && (length > 0 || r.WindowStart.After(limit.Add(longest))):
		// What grants nothing stands at the end of a term, which may be far off.
		return "window starts at " + store.Format(r.WindowStart) + ", more than 1h ahead of store time"
	case length > longest:
		return fmt.Sprintf("window is %v long, more than 366 days", length)
	case r.Token > limit.UnixMilli():
		return fmt.Sprintf("token %d is more than 1h ahead of store time", r.Token)
	}
	return ""
}

// relative is a time relative to a boundary, with its sign.
func relative(d time.Duration) string {
	sign := "+"
	if d < 0 {
		sign, d = "-", -d
	}
	switch {
	case d < time.Second:
		return fmt.Sprintf("%s%dms", sign, d.Milliseconds())
	case d < time.Minute:
		return fmt.Sprintf("%s%.1fs", sign, d.Truncate(100*time.Millisecond).Seconds())
	}
	return sign + d.Truncate(time.Second).String()
}
