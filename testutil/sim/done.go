package sim

import (
	"slices"
	"time"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/workerlease"
)

// auditWork checks the work of slots in a record against the record before it.
func (w *world) auditWork(p *Process, r, before store.Record) {
	if r.DoneUntil.Before(before.DoneUntil) {
		w.violate("seq %d of %v, of kind %s, forgets that slots are done until %v", r.Seq, p, r.Kind, w.time(before.DoneUntil))
	}
	if p.options.Job == nil || r.Kind != store.KindGrant || r.Claim == before.Claim {
		return
	}
	if !before.DoneUntil.IsZero() && !r.SlotEnd.After(before.DoneUntil) {
		w.violate("seq %d of %v is for a slot that is done, until %v", r.Seq, p, w.time(before.DoneUntil))
	}
	attempt := 1
	if r.SlotStart.Equal(before.SlotStart) {
		attempt += before.Attempt
	}
	if most := p.options.Job.MaxAttempts; r.Attempt != attempt || most > 0 && attempt > most {
		w.violate("seq %d of %v is attempt %d of at most %d, and says %d", r.Seq, p, attempt, most, r.Attempt)
	}
}

// jobs is the history of the once-per-slot work of a worker type.
type jobs struct {
	done  []doneBy            // what is done by the ledger, in the order of its records
	calls map[time.Time]int   // of a task in its own slot, by the slot's start
	late  map[time.Time]int64 // the token under which a missed slot was made up for
}

// doneBy is until when slots are done, and the first record that says so.
type doneBy struct {
	until time.Time
	order int
	at    time.Duration
}

// noteDone notes the done slots of a record that has just landed.
func (l *ledger) noteDone(r store.Record, at time.Duration) {
	if n := len(l.jobs.done); n == 0 || r.DoneUntil.After(l.jobs.done[n-1].until) {
		l.jobs.done = append(l.jobs.done, doneBy{r.DoneUntil, l.order, at})
	}
}

// auditCall checks a call of a task that runs once per slot. It is no fault if another worker
// says after this one's grant that the slot is done: that worker did the slot earlier, and
// reported it late. Where intervals differ, slots can't be compared.
func (w *world) auditCall(p *Process, l workerlease.Lease, grant *landed) {
	if p.options.Job == nil || w.beyond || w.mixed() || grant == nil {
		return
	}
	jobs := &w.ledger(l.WorkerType).jobs
	if jobs.calls == nil {
		jobs.calls, jobs.late = map[time.Time]int{}, map[time.Time]int64{}
	}
	if l.Missed {
		if token, again := jobs.late[l.Slot.Start]; again {
			w.violate("%v makes up for the slot from %v under token %d, and it was made up for under %d", p, w.time(l.Slot.Start), l.Token, token)
		}
		jobs.late[l.Slot.Start] = l.Token
	} else if jobs.calls[l.Slot.Start]++; p.options.Job.MaxAttempts > 0 && jobs.calls[l.Slot.Start] > p.options.Job.MaxAttempts {
		w.violate("%v calls the task for the slot from %v the %d. time, and MaxAttempts is %d", p, w.time(l.Slot.Start), jobs.calls[l.Slot.Start], p.options.Job.MaxAttempts)
	}
	for _, d := range jobs.done {
		// It reads the head once more right before it begins what was tried before.
		if read := time.Duration(p.readAt.Load()); !d.until.Before(l.Slot.End) && !l.Missed && d.at < read && w.o.Faults.Stale == 0 {
			w.violate("%v calls the task for the slot from %v, under token %d, read the ledger at %v, and it was done by %v", p, w.time(l.Slot.Start), l.Token, read, d.at)
			return
		}
		// The grant of the next slot says that a missed slot is not to be done again.
		if !d.until.Before(l.Slot.End) && grant.order != unordered && d.order < grant.order {
			w.violate("%v calls the task for the slot from %v, under token %d, and it was done", p, w.time(l.Slot.Start), l.Token)
			return
		}
	}
}

// mixed reports whether the slots of the workers differ, or may differ.
func (w *world) mixed() bool {
	first := w.hosts[0]
	return slices.ContainsFunc(w.hosts[1:], func(h *host) bool { return !first.plain || !h.plain || h.interval != first.interval })
}
