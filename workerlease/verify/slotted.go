package verify

import (
	"fmt"
	"slices"
	"time"

	"github.com/slotlease/slotlease/slots"
	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/workerlease/internal/gap"
	"github.com/slotlease/slotlease/workerlease/internal/machine"
)

const (
	// maxMissed bounds how many missed slots are counted, and mostSchedules how many schedules are
	// kept.
	maxMissed, mostSchedules = 1_000_000, 16
	// mostUnsaid is how many attempts wait for the word of their workers, and how many words are remembered.
	mostUnsaid = 16
	// mostReturns is how often workers may return to a schedule that others had replaced: in a
	// rolling change, old and new workers take turns for a while.
	mostReturns = 8
)

// slotted is what is known of slots.
type slotted struct {
	gaps gap.Finder
	held time.Time // up to when slots are taken, by all grants so far
	jobs bool      // the workers run jobs, as far as their grants show it

	// unsaid are the newest grants of jobs of which their workers have said nothing yet.
	unsaid []store.Record
	// led is the newest grant, if it is no job's, and its window ends before its slot: its worker extends or releases it, or it has
	// gone without a word. Of older ones the worker that came after it has said so.
	led store.Record
	// dead are the newest attempts whose workers have died, as others say, and words the records that say themselves what came of
	// their attempts: while the store stands still, who lives can be taken for dead.
	dead  []failure
	words []store.Record
	// givenUp are the newest attempts with which slots were given up that nobody has done since.
	givenUp []failure

	parsed map[string]slots.Schedule
	// schedules are the texts of grants, in the order in which they came, without what they replaced
	// before, and returns counts how often one came back.
	schedules []string
	returns   int
	// odd are the schedules of which a slot was found that they don't have.
	odd []string
}

func newSlotted() slotted { return slotted{parsed: map[string]slots.Schedule{}} }

// grant looks at a grant that workers obey.
func (s *slotted) grant(v *Verifier, r store.Record, extends bool) {
	s.jobs = r.Attempt > 0
	if r.Triggered() { // Its slot is none of a schedule.
		s.take(v, r, extends)
		return
	}
	s.mixed(r)
	s.elsewhere(v, r)
	newest, slot := s.gaps.Newest, r.SlotStart.Before(r.SlotEnd)
	same := newest.SlotStart.Equal(r.SlotStart) && newest.SlotEnd.Equal(r.SlotEnd)
	outside := gap.Late(r) && !extends || gap.OutsideSlot(r) && extends && same // It is late, or its slot was too short.
	if slot && !outside && (r.WindowStart.Before(r.SlotStart) || r.WindowEnd.After(r.SlotEnd)) {
		v.find(OutsideSlot, r, "Its window, from %s to %s, is not within its slot, from %s to %s.",
			store.Format(r.WindowStart), store.Format(r.WindowEnd), store.Format(r.SlotStart), store.Format(r.SlotEnd))
	}
	if slot && !extends && same && r.Attempt <= newest.Attempt && !s.held.Before(r.SlotEnd) {
		v.find(SlotTwice, r, "The slot that starts at %s was granted to its end by record %d.", store.Format(r.SlotStart), newest.Seq)
	}
	if newest.Seq != 0 {
		s.missed(v, r, r.SlotStart)
	}
	s.take(v, r, extends)
}

// take takes in a grant, of whose attempt something is to be said.
func (s *slotted) take(v *Verifier, r store.Record, extends bool) {
	s.gaps.Take(r)
	s.held = later(s.held, r.WindowEnd)
	if n := len(s.unsaid); extends && n > 0 && s.unsaid[n-1].Claim == r.Claim {
		s.unsaid = s.unsaid[:n-1]
	}
	s.led = store.Record{}
	switch {
	case r.Group != "":
		return
	case r.Attempt == 0:
		if r.WindowEnd.Before(r.SlotEnd) {
			s.led = r
		}
		return
	}
	if len(s.unsaid) == mostUnsaid {
		s.died(v, s.unsaid[0])
		s.unsaid = s.unsaid[1:]
	}
	s.unsaid = append(s.unsaid, r)
}

// frees takes in that slots are free from the time of a release or an override on. After an override
// they are missed, too, if nobody claims them.
func (s *slotted) frees(r store.Record) {
	if of := s.gaps.Newest; r.Kind == store.KindRelease && r.Claim == of.Claim && r.Attempt < of.Attempt {
		s.held = of.SlotStart // Nothing was begun under it. All its window may be after its slot.
	}
	if r.WindowStart.Before(s.held) {
		s.held = r.WindowStart
	}
	s.gaps.Take(r)
}

// missed counts the slots before a time that nobody claimed, by the schedule of a record. Those that begin
// within the slot before are of a schedule that was changed since.
func (s *slotted) missed(v *Verifier, by store.Record, until time.Time) {
	schedule := s.scheduleOf(by)
	if schedule == nil {
		return
	}
	n, paused, skipped, drained := 0, 0, 0, false
	var first, firstPaused, firstSkipped slots.Slot
	var run gap.Run
	more := ""
	for slot := range s.gaps.Unclaimed(schedule, until) {
		if v.report.Missed+v.report.Skipped+n+paused+skipped >= maxMissed && n+paused+skipped > 0 {
			v.report.MissedMore, more = true, " or more"
			break
		}
		switch {
		case slot.Run != nil:
			if skipped++; skipped == 1 {
				firstSkipped, run = slot.Slot, *slot.Run
			}
		case slot.Pause != nil:
			if paused++; paused == 1 {
				firstPaused = slot.Slot
			}
		default:
			drained = drained || slot.Drain != nil
			if n++; n == 1 {
				first = slot.Slot
			}
		}
	}
	v.report.Missed += n + paused
	v.report.Skipped += skipped
	if n > 0 {
		also := ""
		if drained {
			also = ", and hosts were drained then"
		}
		f := v.finding(MissedSlots, by, "Nobody claimed %s%s from %s on%s.", counted(n), more, store.Format(first.Start), also)
		if by.Attempt > 0 {
			f.Remedy = missedByJob
		}
		v.found.add(f)
	}
	if paused > 0 {
		f := v.finding(MissedSlots, by, "Nobody claimed %s%s from %s on, in a pause.", counted(paused), more, store.Format(firstPaused.Start))
		f.Severity, f.Remedy = Note, "leasectl inspect slots shows who ordered it, and why."
		v.found.add(f)
	}
	if skipped > 0 {
		f := v.finding(SkippedSlots, by, "Nobody began %s%s from %s on: %s ran that of %s since %s.", counted(skipped), more,
			store.Format(firstSkipped.Start), run.Grant.InstanceID, store.Format(run.Grant.SlotStart), store.Format(run.Since()))
		if skipped == 1 {
			f.Severity = Note
		}
		v.found.add(f)
	}
}

func counted(n int) string {
	if n == 1 {
		return "1 slot"
	}
	return fmt.Sprintf("%d slots", n)
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

// elsewhere finds a grant for a slot that its schedule doesn't have here, the first of each schedule.
func (s *slotted) elsewhere(v *Verifier, r store.Record) {
	schedule := s.scheduleOf(r)
	if schedule == nil || slices.Contains(s.odd, r.Schedule) {
		return
	}
	if ours, differs := machine.OtherSlot(schedule, r); differs {
		if len(s.odd) == mostSchedules {
			s.odd = s.odd[1:]
		}
		s.odd = append(s.odd, r.Schedule)
		v.find(SlotNotInSchedule, r, "The slot from %s to %s isn't one of its schedule, %q, which has that from %s to %s by the tz database of this program: that of %s differs.",
			store.Format(r.SlotStart), store.Format(r.SlotEnd), r.Schedule, store.Format(ours.Start), store.Format(ours.End), r.InstanceID)
	}
}

// mixed counts how often grants return to a schedule that was replaced. One that has the grant's slot, too,
// is the same, whatever its text.
func (s *slotted) mixed(r store.Record) {
	if n := len(s.schedules); r.Schedule == "" || n > 0 && s.schedules[n-1] == r.Schedule {
		return
	} else if n > 0 {
		if newest := s.scheduleOf(store.Record{Schedule: s.schedules[n-1]}); newest != nil {
			_, differs := machine.OtherSlot(newest, r)
			if own := s.scheduleOf(r); !differs && own != nil && own.At(r.SlotStart) == newest.At(r.SlotStart) {
				return
			}
		}
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
	if s.gaps.Newest.Seq != 0 {
		s.missed(v, s.gaps.Newest, v.o.Now)
	}
	s.tellFailed(v)
	s.silent(v)
	if n := len(s.schedules); s.returns >= mostReturns {
		v.find(MixedSchedules, s.gaps.Newest, "Grants changed %d times to a schedule that others had replaced, at last from %q to %q.",
			s.returns, s.schedules[n-2], s.schedules[n-1])
	}
}
