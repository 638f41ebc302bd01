package explain

import (
	"slices"
	"time"

	"github.com/slotlease/slotlease/slots"
	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/workerlease"
	"github.com/slotlease/slotlease/workerlease/history"
)

// findSlot finds the slot that the time is in: that of a trigger's run that it names, or of a lease in force then, or else
// the newest that an entry names, or else that of the schedule.
func (x *asked) findSlot() {
	e := &x.e
	row := x.triggered()
	if row != nil {
		e.Slot, e.Triggered = row.Slot, true
	} else {
		x.findScheduled()
	}
	switch {
	case e.Slot.IsZero():
		e.When = Past
		if x.At.After(x.Now) {
			e.When = Future
		}
	case x.Now.Before(e.Slot.Start):
		e.When = Future
	case x.Now.Before(e.Slot.End) && (row == nil || row.Holds(x.Now)): // Nobody waits for the rest of a trigger's time.
		e.When = Now
	default:
		e.When = Past
	}
}

// triggered is the newest run of a trigger that went on at the time, or is named by when it was asked for or begun, maybe to
// the second; nil if there is none. The start of a slot names that.
func (x *asked) triggered() *history.Entry {
	starts := x.bySchedule().Start.Equal(x.At)
	for i, row := range slices.Backward(x.rows) {
		r := row.Record
		if r.Kind != store.KindGrant || !r.Triggered() || row.State == history.Poison || row.State == history.Skipped {
			continue
		}
		named := func(t time.Time) bool { return x.At.Equal(t) || x.At.Equal(t.Truncate(time.Second)) }
		if row.Holds(x.At) || !starts && (named(row.Slot.Start) || named(row.Window.Start)) {
			return &x.rows[i]
		}
	}
	return nil
}

// findScheduled finds the slot of the schedule that the time is in.
func (x *asked) findScheduled() {
	e, found := &x.e, false
	for _, row := range x.rows {
		if !row.Slot.Contains(x.At) || row.Slot.Start.IsZero() || row.State == history.Poison {
			continue
		}
		if row.Holds(x.At) {
			e.Slot, found = row.Slot, true
			break
		}
		if row.Record.Triggered() {
			continue // It had nothing of the slot.
		}
		e.Slot, found = row.Slot, true
		if row.Count > 1 {
			e.Gap, e.GapSlots = row.Slot, row.Count
			e.Slot = x.bySchedule()
		}
	}
	if !found {
		e.Slot = x.bySchedule()
		oldest, known := x.oldest()
		first := oldest.Seq == 1 && !oldest.ReadAt.IsZero() && !x.At.Before(oldest.ReadAt) // It is claimed, and nobody had the slot before.
		e.Unread = known && x.At.Before(oldest.WindowStart) && !first
	}
}

// bySchedule is the slot of the schedule that was in use at the time, as far as records tell.
func (x *asked) bySchedule() slots.Slot {
	text := ""
	for r := range x.oldestFirst() {
		if r.Schedule != "" && !r.Triggered() && (text == "" || !r.WindowStart.After(x.At)) {
			text = r.Schedule
		}
	}
	for _, p := range x.Presences {
		if text == "" {
			text = p.Schedule // They had no slot yet.
		}
	}
	schedule, err := slots.Parse(text)
	if err != nil {
		return slots.Slot{}
	}
	return schedule.At(x.At)
}

// oldestFirst are the records in the order in which they were appended.
func (x *asked) oldestFirst() func(yield func(store.Record) bool) {
	records := slices.Clone(x.Records)
	slices.SortStableFunc(records, func(a, b store.Record) int { return int(max(-1, min(1, a.Seq-b.Seq))) })
	return slices.Values(records)
}

// oldest is the oldest record that grants something.
func (x *asked) oldest() (r store.Record, known bool) {
	for r := range x.oldestFirst() {
		if r.Kind == store.KindGrant && r.Defect == "" {
			return r, true
		}
	}
	return store.Record{}, false
}

// findTerms finds who had the slot, and what came of it.
func (x *asked) findTerms() {
	e := &x.e
	if e.Slot.IsZero() {
		return
	}
	for i, row := range x.rows {
		switch {
		case row.State == history.Poison:
		case !row.RunsFor.Start.IsZero():
			if !e.Triggered && row.Slot.Contains(e.Slot.Start) && !x.mayBegin(row) {
				e.Skipped = &x.rows[i]
			}
		case row.Record.Kind == store.KindGrant && row.Slot == e.Slot:
			e.Terms = append(e.Terms, row)
		case row.Record.Kind == store.KindGrant && row.Slot.Start.Before(e.Slot.Start):
			x.before = &x.rows[i]
		}
		if row.Slot == e.Slot {
			e.Done = e.Done || row.State == history.Done
			e.Failed = e.Failed || row.State == history.Failed
		}
		if e.GapSlots == 0 && nobodyHad(row.State) && row.Slot == e.Slot {
			e.Gap, e.GapSlots = row.Slot, 1
		}
	}
	x.findRan()
	x.findHolder()
	if e.GapSlots == 0 || len(e.Terms) > 0 {
		e.Gap, e.GapSlots = slots.Slot{}, 0
		return
	}
	x.growGap()
}

// mayBegin reports that a slot may be begun now, since the run that went on into it has ended.
func (x *asked) mayBegin(row history.Entry) bool {
	var job *store.JobTimes
	for _, p := range x.Presences {
		if p.Job != nil && workerlease.IsPresent(p, x.Now) {
			job = p.Job
		}
	}
	return row.MayBegin(x.rows, job, x.Now) && row.MayBegin(x.rows, nil, x.Now)
}

// findRan finds what the job that kept others from the slot had of its own. The entry of a slot in which its worker has died names
// no record: that run is the newest of its slot that was lost.
func (x *asked) findRan() {
	s := x.e.Skipped
	if s == nil {
		return
	}
	for i, row := range x.rows {
		died := s.State != history.Skipped && row.Cause == store.WorkerDied
		if row.State != history.Skipped && row.Slot == s.RunsFor && (died || row.Record.Claim == s.Record.Claim) {
			x.e.Ran = &x.rows[i]
		}
	}
	switch {
	case s.State == history.Skipped:
	case x.e.Ran == nil:
		x.e.Skipped = nil
	default:
		s.Record = x.e.Ran.Record
	}
}

// findLost finds what the store has lost of the slot. Of a term whose start isn't known only its end is.
func (x *asked) findLost() {
	for r := range x.oldestFirst() {
		l, is := r.Lost()
		within := l.Start.Before(x.e.Slot.End)
		if l.Start.IsZero() {
			within = !l.End.After(x.e.Slot.End)
		}
		if is && within && l.End.After(x.e.Slot.Start) && !slices.ContainsFunc(x.Records, l.Is) {
			x.e.Lost = append(x.e.Lost, l)
		}
	}
}

// nobodyHad reports that nobody had the slot of an entry in this state.
func nobodyHad(s history.State) bool { return s == history.Missed || s == history.Free }

// findHolder finds whose lease was in force at the time: one of the slot, or else of another.
func (x *asked) findHolder() {
	e := &x.e
	for i := range e.Terms {
		if e.Terms[i].Holds(x.At) {
			e.Holder = &e.Terms[i]
		}
	}
	for i := range x.rows {
		if e.Holder == nil && x.rows[i].Holds(x.At) {
			e.Holder = &x.rows[i]
		}
	}
}

// growGap finds the slots in a row that nobody had. The reader of histories gives the first few of them an entry each.
func (x *asked) growGap() {
	e := &x.e
	for grown := true; grown; {
		grown = false
		for _, row := range x.rows {
			switch {
			case !nobodyHad(row.State):
			case row.Slot.End.Equal(e.Gap.Start):
				e.Gap.Start, e.GapSlots, grown = row.Slot.Start, e.GapSlots+row.Count, true
			case row.Slot.Start.Equal(e.Gap.End):
				e.Gap.End, e.GapSlots, grown = row.Slot.End, e.GapSlots+row.Count, true
			}
		}
	}
}
