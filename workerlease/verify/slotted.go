package verify

import (
	"fmt"
	"slices"
	"time"

	"github.com/slotlease/slotlease/slots"
	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/workerlease/internal/gap"
)

const (
	// maxMissed bounds how many missed slots in a row are counted, and mostSchedules how many
	// schedules are kept.
	maxMissed, mostSchedules = 10_000, 16
	// mostReturns is how often workers may return to a schedule that others had replaced: in a
	// rolling change, old and new workers take turns for a while.
	mostReturns = 8
)

// slotted is what is known of slots.
type slotted struct {
	newest store.Record // grant
	held   time.Time    // up to when slots are taken, by all grants so far
	jobs   bool         // the workers run jobs, as far as their grants show it

	// pauses are the pauses and drains of operators, the newest mostPauses, and orders the text in which the newest came.
	pauses []pause
	orders string

	parsed map[string]slots.Schedule
	// schedules are the texts of grants, in the order in which they came, without what they replaced
	// before, and returns counts how often one came back.
	schedules []string
	returns   int
}

// pause is a time in which no worker may claim, or none of a host.
type pause struct {
	kind      store.OrderKind // pause or drain
	host      string
	at, until time.Time
}

// mostPauses is how many of them are kept: those of one gap between grants are needed.
const mostPauses = 64

func newSlotted() slotted { return slotted{parsed: map[string]slots.Schedule{}} }

// grant looks at a grant that workers obey.
func (s *slotted) grant(v *Verifier, r store.Record, extends bool) {
	s.jobs = r.Attempt > 0
	s.mixed(r)
	slot := r.SlotStart.Before(r.SlotEnd)
	if slot && (r.WindowStart.Before(r.SlotStart) || r.WindowEnd.After(r.SlotEnd)) {
		v.find(OutsideSlot, r, "Its window, from %s to %s, is not within its slot, from %s to %s.",
			store.Format(r.WindowStart), store.Format(r.WindowEnd), store.Format(r.SlotStart), store.Format(r.SlotEnd))
	}
	if slot && !extends && s.newest.SlotStart.Equal(r.SlotStart) && s.newest.SlotEnd.Equal(r.SlotEnd) && !s.held.Before(r.SlotEnd) {
		v.find(SlotTwice, r, "The slot that starts at %s was granted to its end by record %d.", store.Format(r.SlotStart), s.newest.Seq)
	}
	if s.newest.Seq != 0 {
		s.missed(v, r, r.SlotStart)
	}
	s.newest, s.held = r, later(s.held, r.WindowEnd)
}

// frees takes in that slots are free from the time of a release or an override on. After an override
// they are missed, too, if nobody claims them.
func (s *slotted) frees(r store.Record) {
	if r.WindowStart.Before(s.held) {
		s.held = r.WindowStart
	}
	if r.Kind == store.KindOverride && r.WindowStart.Before(s.newest.WindowEnd) {
		s.newest.WindowEnd = r.WindowStart
	}
}

// missed counts the slots before a time that nobody claimed, by the schedule of a record.
func (s *slotted) missed(v *Verifier, by store.Record, until time.Time) {
	schedule := s.scheduleOf(by)
	if schedule == nil {
		return
	}
	n, paused, drained := 0, 0, false
	var first, firstPaused slots.Slot
	for slot := range gap.Slots(schedule, s.newest.WindowEnd, until) {
		if n+paused == maxMissed {
			v.report.MissedMore = true
			break
		}
		if s.isOrdered(store.OrderPause, slot) {
			if paused++; paused == 1 {
				firstPaused = slot
			}
			continue
		}
		drained = drained || s.isOrdered(store.OrderDrain, slot)
		if n++; n == 1 {
			first = slot
		}
	}
	v.report.Missed += n + paused
	switch {
	case n > 0 && drained:
		v.find(MissedSlots, by, "Nobody claimed %s from %s on, and hosts were drained then.", counted(n), store.Format(first.Start))
	case n > 0:
		v.find(MissedSlots, by, "Nobody claimed %s from %s on.", counted(n), store.Format(first.Start))
	}
	if paused > 0 {
		f := v.finding(MissedSlots, by, "Nobody claimed %s from %s on, in a pause.", counted(paused), store.Format(firstPaused.Start))
		f.Severity, f.Remedy = Note, "leasectl inspect slots shows who ordered it, and why."
		v.found.add(f)
	}
}

func counted(n int) string {
	if n == 1 {
		return "1 slot"
	}
	return fmt.Sprintf("%d slots", n)
}

// isOrdered reports that an order of a kind was in force in a slot.
func (s *slotted) isOrdered(kind store.OrderKind, slot slots.Slot) bool {
	return slices.ContainsFunc(s.pauses, func(p pause) bool { return p.kind == kind && p.at.Before(slot.End) && p.until.After(slot.Start) })
}

// order takes in the pauses and drains of a record. Each record repeats those in force, and the one that ends them early
// says when.
func (s *slotted) order(r store.Record) {
	if o, ok := r.Order(); ok && o.Removes() {
		for i, p := range s.pauses {
			if p.kind == o.Kind && (o.Target == "" || o.Target == p.host) && p.until.After(o.At) {
				s.pauses[i].until = o.At
			}
		}
	}
	if r.Orders == s.orders {
		return
	}
	s.orders = r.Orders
	orders, _ := store.ParseOrders(r.Orders)
	for _, o := range orders {
		known := func(p pause) bool { return p.kind == o.Kind && p.host == o.Target && p.at.Equal(o.At) }
		if o.Kind != store.OrderPause && o.Kind != store.OrderDrain || o.Removes() || slices.ContainsFunc(s.pauses, known) {
			continue
		}
		s.pauses = append(s.pauses, pause{o.Kind, o.Target, o.At, o.Until})
		s.pauses = s.pauses[max(0, len(s.pauses)-mostPauses):]
	}
}

// scheduleOf is the schedule of a record, nil if it can't be read.
func (s *slotted) scheduleOf(r store.Record) slots.Schedule {
	schedule, known := s.parsed[r.Schedule]
	if !known {
		if len(s.parsed) == mostSchedules {
			clear(s.parsed)
		}
		schedule, _ = slots.Parse(r.Schedule) // nil for one that isn't known
		s.parsed[r.Schedule] = schedule
	}
	return schedule
}

// mixed counts how often grants return to a schedule that was replaced.
func (s *slotted) mixed(r store.Record) {
	if n := len(s.schedules); r.Schedule == "" || n > 0 && s.schedules[n-1] == r.Schedule {
		return
	}
	for i, text := range s.schedules {
		if text == r.Schedule {
			s.returns++
			s.schedules = append(s.schedules[:i], s.schedules[i+1:]...)
			break
		}
	}
	if len(s.schedules) == mostSchedules {
		s.schedules = s.schedules[1:]
	}
	s.schedules = append(s.schedules, r.Schedule)
}

// judge adds what the slots show at the end.
func (s *slotted) judge(v *Verifier) {
	if s.newest.Seq != 0 {
		s.missed(v, s.newest, v.o.Now)
	}
	if n := len(s.schedules); s.returns >= mostReturns {
		v.find(MixedSchedules, s.newest, "Grants changed %d times to a schedule that others had replaced, at last from %q to %q.",
			s.returns, s.schedules[n-2], s.schedules[n-1])
	}
}
