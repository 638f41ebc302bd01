package inspect

import (
	"slices"
	"time"

	"github.com/slotlease/slotlease/slots"
	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/workerlease"
	"github.com/slotlease/slotlease/workerlease/history"
)

// plan takes a schedule, and the slot that comes next by it.
func (t *typeStatus) plan(text string, now time.Time) {
	t.schedule = text
	if schedule, err := slots.Parse(text); err == nil {
		t.next = schedule.Next(now)
	}
}

// replaced is the schedule of the workers that are there, if all have one, and nobody goes by that of the newest records any more: a
// slot of that has begun, and nobody has it.
func (t typeStatus) replaced(crew []store.Presence, now time.Time) (by string) {
	if n := len(t.rows); n == 0 || t.rows[n-1].State != history.Missed && t.rows[n-1].State != history.Free {
		return ""
	}
	there := slices.DeleteFunc(slices.Clone(crew), func(p store.Presence) bool { return !workerlease.StandingOf(p, t.rows, now).There() })
	if theirs := (typeStatus{}).schedules(there, now); len(theirs) == 1 && len(t.schedules(there, now)) == 2 {
		return theirs[0]
	}
	return ""
}

// scheduleIn is the schedule that the first worker of a roster says it has.
func scheduleIn(crew []store.Presence) string {
	for _, p := range crew {
		if p.Schedule != "" {
			return p.Schedule
		}
	}
	return ""
}

// schedules are those of the newest records and of the workers that are there, in order, one of those that have the
// same slots.
func (t typeStatus) schedules(there []store.Presence, now time.Time) (names []string) {
	texts := []string{t.schedule}
	for _, p := range there {
		texts = append(texts, p.Schedule)
	}
	for _, text := range texts {
		schedule, err := slots.Parse(text)
		same := func(name string) bool { return slots.Same(slots.Must(slots.Parse(name)), schedule, now) }
		if err == nil && !slices.ContainsFunc(names, same) {
			names = append(names, schedule.String())
		}
	}
	slices.Sort(names)
	return names
}
