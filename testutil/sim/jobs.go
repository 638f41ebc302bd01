package sim

import (
	"fmt"
	"slices"
	"time"

	"github.com/slotlease/slotlease/slots"
	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/workerlease"
)

// auditWork checks the work of slots in a record against the record before it.
func (w *world) auditWork(p *Process, r, before store.Record) {
	if r.DoneUntil.Before(before.DoneUntil) {
		w.violate("seq %d of %v, of kind %s, forgets that slots are done until %v", r.Seq, p, r.Kind, w.time(before.DoneUntil))
	}
	if doneStart(r).Before(doneStart(before)) {
		w.violate("seq %d of %v, of kind %s, forgets that the slot from %v is done", r.Seq, p, r.Kind, w.time(doneStart(before)))
	}
	w.auditSpared(p, r, before)
	if p.options.Job == nil || r.Kind != store.KindGrant || r.Claim == before.Claim {
		return
	}
	if r.Triggered() {
		w.auditTriggered(p, r, before)
	} else if done := doneStart(before); !done.IsZero() && !r.SlotStart.After(done) {
		w.violate("seq %d of %v is for a slot that is done, as that from %v is", r.Seq, p, w.time(done))
	}
	attempt, spared := 1, 0
	if r.SlotStart.Equal(before.SlotStart) {
		attempt, spared = attempt+before.Attempt, before.Spared
	} else if r.Triggered() {
		tried := triedBefore(r, before)
		attempt, spared = attempt+tried.Attempts, tried.Spared
		if r.WindowStart.Before(tried.Again) {
			w.violate("seq %d of %v tries a run again that is to wait until %v", r.Seq, p, w.time(tried.Again))
		}
	}
	if most := mostAttempts(p.options); r.Attempt != attempt || r.Spared != spared || most > 0 && attempt-spared > most {
		w.violate("seq %d of %v is attempt %d of at most %d that count, %d don't, and says %d and %d", r.Seq, p, attempt, most, spared, r.Attempt, r.Spared)
	}
}

// auditSpared checks that an attempt counts for nothing if and only if a record says, once, that its worker was stopped or an operator
// has ended it. The caller holds world.mu.
func (w *world) auditSpared(p *Process, r, before store.Record) {
	if r.WorkerType != p.options.WorkerType || w.beyond || r.Kind != store.KindRelease && r.Kind != store.KindOutcome && r.Kind != store.KindDone && r.Kind != store.KindOrder {
		return
	}
	want := before.Spared
	o, tells := r.Outcome()
	jobs := &w.ledger(r.WorkerType).jobs
	if tells && o.Result == store.Failed && (o.Cause == store.Stopped || o.Cause == store.Ordered) && o.SlotStart.Equal(r.SlotStart) && want < r.Attempt && !jobs.spared[r.SlotStart][o.Attempt] {
		want++
		if jobs.spared == nil {
			jobs.spared = map[time.Time]map[int]bool{}
		}
		if jobs.spared[r.SlotStart] == nil {
			jobs.spared[r.SlotStart] = map[int]bool{}
		}
		jobs.spared[r.SlotStart][o.Attempt] = true
	}
	if r.Spared != want {
		w.violate("seq %d of %v, a %s, says that %d attempts don't count, want %d: %s", r.Seq, p, r.Kind, r.Spared, want, r.Metadata)
	}
}

// mostAttempts is how often a slot may be tried, but for what doesn't count; 0: as often as time allows.
func mostAttempts(o workerlease.Options) int {
	if o.Job != nil && o.Job.MaxAttempts == 0 && o.Job.CatchUp == workerlease.CatchUpAll {
		return workerlease.CatchUpAttempts
	}
	if o.Job == nil {
		return 0
	}
	return o.Job.MaxAttempts
}

// spared is how many attempts before that of an outcome don't count, as far as the record of that says.
func spared(r store.Record, of store.Outcome) int {
	if r.SlotStart.Equal(of.SlotStart) {
		return r.Spared
	}
	return 0
}

// doneStart is when the newest slot that is done by a record starts, zero if none is.
func doneStart(r store.Record) time.Time {
	d, _ := store.ParseDone(r.Done)
	return d.Start
}

// jobs is the history of the once-per-slot work of a worker type.
type jobs struct {
	asked []doneBy          // runs that operators have asked for
	done  []doneBy          // what is done by the ledger, in the order of its records
	calls map[time.Time]int // of a task, by the start of its slot
	begun map[string]bool   // the claims under which a task was called

	spared map[time.Time]map[int]bool // the attempts that don't count, by the start of the slot
}

// doneBy is when the newest slot starts that is done, and the first record that says so.
type doneBy struct {
	start time.Time
	order int
	at    time.Duration
}

// noteDone notes the done slots of a record that has just landed above another.
func (l *ledger) noteDone(r, before store.Record, at time.Duration) {
	l.noteTriggered(r, before, at)
	if n, start := len(l.jobs.done), doneStart(r); n == 0 || start.After(l.jobs.done[n-1].start) {
		l.jobs.done = append(l.jobs.done, doneBy{start, l.order, at})
	}
}

// auditCall checks a call of a task that runs once per slot. It is no fault if another worker
// says after this one's grant that the slot is done: that worker did the slot earlier, and
// reported it late. Where intervals differ, the attempts at a slot can't be counted.
func (w *world) auditCall(p *Process, l workerlease.Lease, grant *landed) {
	if p.options.Job == nil || w.beyond || grant == nil {
		return
	}
	jobs := &w.ledger(l.WorkerType).jobs
	if jobs.calls == nil {
		jobs.calls, jobs.begun = map[time.Time]int{}, map[string]bool{}
	}
	jobs.begun[grant.claim] = true
	most := mostAttempts(p.options)
	if jobs.calls[l.Slot.Start]++; !w.mixed() && most > 0 && jobs.calls[l.Slot.Start]-len(jobs.spared[l.Slot.Start]) > most {
		w.violate("%v calls the task for the slot from %v the %d. time, %d don't count, and MaxAttempts is %d", p, w.time(l.Slot.Start), jobs.calls[l.Slot.Start], len(jobs.spared[l.Slot.Start]), most)
	}
	if l.Triggered {
		w.auditAsked(p, l, grant)
		return
	}
	if by := l.Slot.Start.Add(startWithin(p.options, l.Slot)); l.Attempt == 1 && !l.Missed && l.Start.After(by) {
		w.violate("%v begins the slot from %v too late: its window starts at %v, and it is to begin by %v", p, w.time(l.Slot.Start), w.time(l.Start), w.time(by))
	}
	for _, d := range jobs.done {
		// It reads the head once more right before it begins what was tried before.
		if read := time.Duration(p.readAt.Load()); !d.start.Before(l.Slot.Start) && d.at < read && w.o.Faults.Stale == 0 {
			w.violate("%v calls the task for the slot from %v, under token %d, read the ledger at %v, and it was done by %v", p, w.time(l.Slot.Start), l.Token, read, d.at)
			return
		}
		if !d.start.Before(l.Slot.Start) && grant.order != unordered && d.order < grant.order {
			w.violate("%v calls the task for the slot from %v, under token %d, and it was done", p, w.time(l.Slot.Start), l.Token)
			return
		}
	}
}

// startWithin is how late the first attempt at a slot may begin.
func startWithin(o workerlease.Options, slot slots.Slot) time.Duration {
	if o.Job.StartWithin > 0 {
		return o.Job.StartWithin
	}
	return min(slot.Length()/4, time.Hour)
}

// mixed reports whether the slots of the workers differ, or may differ.
func (w *world) mixed() bool {
	first := w.hosts[0]
	return slices.ContainsFunc(w.hosts[1:], func(h *host) bool { return !first.plain || !h.plain || h.interval != first.interval })
}

// outlasts reports that a done record is about the work of an earlier slot, on which others waited: up to one that
// began within its term, or before another worker began its own, of which the record repeats the slot.
func (w *world) outlasts(slot time.Time, r store.Record) bool {
	own := slot.Equal(r.SlotStart) && doneStart(r).Before(r.WindowEnd)
	return slot.Before(doneStart(r)) && (own || doneStart(r).Before(r.SlotStart))
}

// auditOutcome checks what a record says of the work of a slot, and that a record which is only for that changes
// nothing. The caller holds world.mu.
func (w *world) auditOutcome(p *Process, l *ledger, r, before store.Record) {
	o, tells := r.Outcome()
	dead := "" // the claim of the worker that is said to have died
	switch r.Kind {
	case store.KindDone:
		// The slot was done by who says so, unless another one says so again. Slots that began while its work
		// ran on are done with it.
		if r.WorkerType == p.options.WorkerType && r.Done != before.Done &&
			(!tells || o.Result != store.Succeeded || o.InstanceID != p.options.InstanceID || !o.SlotStart.Equal(doneStart(r)) && !w.outlasts(o.SlotStart, r)) {
			w.violate("seq %d of %v says that a slot is done, and of its work %q", r.Seq, p, r.Metadata)
		}
	case store.KindRelease:
		w.auditTakenBack(p, l, r, before)
		if !tells && r.Metadata != "" {
			w.violate("seq %d of %v releases, and says %q", r.Seq, p, r.Metadata)
		}
	case store.KindOutcome:
		if tells && o.Cause == store.WorkerDied {
			dead = w.auditDeath(p, l, r, o)
		} else if !tells || o.InstanceID != p.options.InstanceID || before.Kind == store.KindRelease || r.Done != before.Done {
			w.violate("seq %d of %v says %q after a %s", r.Seq, p, r.Metadata, before.Kind)
		}
		if r.SlotStart != before.SlotStart || r.SlotEnd != before.SlotEnd || r.Attempt != before.Attempt {
			w.violate("seq %d of %v, of kind %s, forgets the slot of seq %d", r.Seq, p, r.Kind, before.Seq)
		}
	default:
		return
	}
	if !tells {
		return
	}
	if most := mostAttempts(p.options); o.GivenUp && (most == 0 || o.Attempt-spared(r, o) < most) {
		w.violate("seq %d of %v gives up after attempt %d what may be tried again: %s", r.Seq, p, o.Attempt, r.Metadata)
	}
	w.demands.Told++
	key := toldBy(p, dead, r)
	if l.told == nil {
		l.told = map[string]int64{}
	}
	if seq := l.told[key]; seq != 0 && (r.Kind == store.KindOutcome || r.Kind == store.KindRelease) {
		w.violate("seq %d of %v says what seq %d has said: %s", r.Seq, p, seq, r.Metadata)
	}
	l.told[key] = r.Seq
}

// auditTakenBack checks that a release takes an attempt back if and only if nothing was begun. The caller holds world.mu.
func (w *world) auditTakenBack(p *Process, l *ledger, r, before store.Record) {
	begun, takesBack := l.jobs.begun[r.Claim], r.Attempt < before.Attempt
	if p.options.Job != nil && !w.beyond && before.Attempt > 0 && begun == takesBack {
		w.violate("seq %d of %v counts attempt %d after %d: under its claim work was begun: %v", r.Seq, p, r.Attempt, before.Attempt, begun)
	}
}

// succeeded reports that a record says success of the attempt that another outcome is of.
func succeeded(r store.Record, of store.Outcome) bool {
	o, tells := r.Outcome()
	return tells && o.Result == store.Succeeded && o.InstanceID == of.InstanceID && o.Attempt == of.Attempt && o.SlotStart.Equal(of.SlotStart)
}

// auditDeath checks what a record says of another worker that has gone without a word: that has begun the attempt, and has
// released nothing of it, nor said that it succeeded. It returns the claim of the attempt. The caller holds world.mu.
func (w *world) auditDeath(p *Process, l *ledger, r store.Record, o store.Outcome) (claim string) {
	var open []string // Attempts are counted anew after another slot's, so there may be several such ones.
	released := int64(0)
	for _, x := range l.list {
		if x.Seq < r.Seq && succeeded(x, o) {
			w.violate("seq %d of %v says that a worker has died which has said in seq %d that it succeeded: %s", r.Seq, p, x.Seq, r.Metadata)
		}
		at := slices.Index(open, x.Claim)
		switch {
		case x.Seq >= r.Seq || w.planted[x.Claim]:
		case at < 0 && x.Kind == store.KindGrant && x.SlotStart.Equal(o.SlotStart) && x.Attempt == o.Attempt && x.InstanceID == o.InstanceID:
			open = append(open, x.Claim)
		case at >= 0 && x.Kind == store.KindRelease:
			open = slices.Delete(open, at, at+1)
			if x.Attempt == o.Attempt { // else it was given back before it began
				released = x.Seq
			}
		}
	}
	switch {
	case len(open) > 0:
	case released != 0:
		w.violate("seq %d of %v says that a worker has died which has released its slot in seq %d: %s", r.Seq, p, released, r.Metadata)
	case len(l.list) > 0 && l.list[0].Seq == 1:
		w.violate("seq %d of %v says that a worker has died which has not begun: %s", r.Seq, p, r.Metadata)
	}
	for _, claim = range open {
		if l.told[toldBy(p, claim, r)] == 0 {
			break
		}
	}
	return claim
}

// toldBy is what a record says of an attempt: a millisecond may see two failures, a name may be used twice, and so may the number of an
// attempt that was taken back.
func toldBy(p *Process, dead string, r store.Record) string {
	return fmt.Sprint(p.number, " ", dead, r.Metadata)
}
