package machine

import (
	"slices"
	"time"

	"github.com/slotlease/slotlease/internal/ledger"
	"github.com/slotlease/slotlease/slots"
	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/workerlease/internal/timeline"
)

// This file is how a worker notices that another one has gone without a word: amid the work of a slot, or while it
// held a lease that it would have extended. Nobody but its successor can say so. What it says is for people: no worker
// decides by it.

// Dead is a term whose worker has gone without a word.
type Dead struct {
	Slot    slots.Slot
	Attempt int    // at the job of the slot; 0: it has none
	Spared  int    // of those before it, don't count
	Holder  string // empty: nobody has died
	Claim   string
	Seq     int64     // of the head that showed it
	Until   time.Time // end of its window, which may reach into a later slot
	Asked   bool      // it ran for a trigger
}

// died reports that the holder of the term which the head shows has gone without a word: nothing is said of its work,
// it has not released the rest, and no operator has ended it.
func died(head store.Record, said bool) bool {
	_, granted := granted(head) // else an operator has ended it, and more was said since
	return granted && !said && !givenBack(head) && !ledger.Supersedes(head)
}

// dead is the term that the head shows, of whatever slot, if it ended without a word, and this worker hasn't reported
// that. Below are the records below the head, as far as they were read.
func (f facts) dead(head store.Record, below []store.Record) (d Dead) {
	c, slot := &f.s.View.Carried, slots.Slot{Start: head.SlotStart, End: head.SlotEnd}
	own := f.s.Hold.knows(head.Claim) || head.Claim == f.s.Bid.VoidClaim || f.s.Bid.sent(head.Claim) != nil // It lives, though it may have been too late.
	// What notes follow may be a release, or a note of what came of the attempt.
	blind := head.Kind != store.KindGrant && !slices.ContainsFunc(below, func(r store.Record) bool { return r.Kind == store.KindGrant })
	if own || blind || head.Group != "" || !slot.Start.Before(slot.End) || f.s.View.Dead == head.Claim || !f.cutOff(head, below) {
		return Dead{}
	}
	said := slices.ContainsFunc(append([]store.Record{head}, below...), func(r store.Record) bool {
		o, tells := r.Outcome()
		return tells && o.SlotStart.Equal(slot.Start) && o.Attempt == c.Attempt && (f.m.Once || o.Cause == store.WorkerDied)
	})
	if !f.m.Rules.Died(head, said) {
		return Dead{}
	}
	return Dead{Slot: slot, Attempt: c.Attempt, Spared: c.Spared, Holder: head.InstanceID, Claim: head.Claim, Seq: head.Seq, Until: head.WindowEnd, Asked: head.Triggered()}
}

// cutOff reports that the worker of a term which is over would have gone on, had it been there: with the job of its
// slot or, without one, to the end of that. Who goes on after that differs, and by more than shows.
func (f facts) cutOff(head store.Record, below []store.Record) bool {
	c := &f.s.View.Carried
	if f.m.Once {
		return c.Attempt > 0 && !f.m.doneIn(*c, head)
	}
	// A note of a later version may stand above a release.
	newest := slices.IndexFunc(below, func(r store.Record) bool { return !notes(r.Kind) })
	granted := head.Kind == store.KindGrant || newest >= 0 && below[newest].Kind == store.KindGrant
	return granted && c.Attempt == 0 && head.WindowEnd.Before(head.SlotEnd)
}

// Death is what is to be told of a worker that has gone without a word.
type Death struct {
	Report
	Seq    int64 // of the head that showed it
	Untold Dead  // it is to be told once its window is over, unless it says anything until then
}

// tellDead reports a worker that has gone without a word, and has it recorded. Its window may not be over yet, if the slot after it
// was claimed ahead: then it is heard out.
func (x *step) tellDead(d Dead) {
	if d.Holder == "" {
		return
	}
	x.s.View.Dead = d.Claim
	x.s.Death = Death{Seq: d.Seq, Untold: d, Report: x.reportOf(d.Claim, d.Slot, store.Outcome{
		Result: store.Failed, Cause: store.WorkerDied, InstanceID: d.Holder, Attempt: d.Attempt, GivenUp: x.m.LastAttempt(d.Attempt - d.Spared),
		SlotStart: d.Slot.Start, SlotEnd: d.Slot.End,
	})}
	if now := x.at.Now; now.Earliest.Before(d.Until) {
		x.s.Death.After = x.at.Local + now.Until(d.Until, timeline.Earliest)
		return
	}
	x.tellUntold()
}

// tellUntold reports it.
func (x *step) tellUntold() {
	d := x.s.Death.Untold
	x.s.Death.Untold = Dead{}
	x.note(Note{What: WorkerDied, Slot: d.Slot, Count: d.Attempt, Record: store.Record{InstanceID: d.Holder, Spared: d.Spared}})
	x.keptBack(d)
	if x.m.LastAttempt(d.Attempt - d.Spared) {
		x.giveUp(d.Slot, d.Attempt-d.Spared)
	}
}

// hearWord takes in whether a worker that is to be told dead has said anything, by the newest records.
func (x *step) hearWord(head store.Record, below []store.Record) {
	d := &x.s.Death
	switch {
	case d.lives(head), slices.ContainsFunc(below, d.lives):
		d.told()
		d.Untold = Dead{}
	case d.Untold.Holder != "" && !x.at.Now.Earliest.Before(d.Untold.Until):
		x.tellUntold()
	}
}

// hearsOut waits as long again as a window lasts for the word on the last attempt, and reports whether it does: its claim may have
// landed too late for its worker, which takes the attempt back then, and it costs nothing, since nobody may try again anyway. A single
// claim answers at once.
func (x *step) hearsOut(d Dead) bool {
	until := d.Until.Add(x.m.Failover)
	return !x.m.Single && x.at.Now.Earliest.Before(until) && x.standBy(until)
}

// lives reports that a record shows that the worker which is to be told dead lives: it has extended or released its term, or said
// what came of its work, meanwhile.
func (d *Death) lives(by store.Record) bool {
	if d.Metadata == "" || by.Seq <= d.Seq {
		return false
	}
	of, _ := store.Record{Kind: store.KindOutcome, Metadata: d.Metadata}.Outcome()
	o, tells := by.Outcome()
	said := tells && o.InstanceID == of.InstanceID && o.Attempt == of.Attempt && o.SlotStart.Equal(of.SlotStart)
	return said || by.Claim == d.Claim && (by.Kind == store.KindRelease || by.Kind == store.KindGrant)
}

// keptBack reports the slot in which the window of a dead run ended, if nobody could begin it after that: those before it
// were skipped, which the run's worker has said.
func (x *step) keptBack(d Dead) {
	slot := x.m.Schedule.At(d.Until.Add(-1))
	if !x.m.Once || x.m.Single || !slot.Start.After(d.Slot.Start) {
		return
	}
	late := !d.Asked && !x.m.Rules.MayStart(x.at.Now.Earliest, x.m.startBy(slot)) // After a trigger's run it may yet begin.
	if late || x.s.Bid.Slot.Start.After(slot.Start) {
		x.passOver(slot, slot.End, Overrunning)
	}
}

// LastAttempt reports that no attempt at a slot follows the nth that counts.
func (c *Config) LastAttempt(n int) bool { return c.Once && c.MaxAttempts > 0 && n >= c.MaxAttempts }

// saidBefore takes in that a slot had been given up before the worker came: those that were there have reported that.
func (x *step) saidBefore(head store.Record, below []store.Record) {
	v := &x.s.View
	if v.Judged || x.m.Single {
		return
	}
	v.Judged = true
	for _, r := range append([]store.Record{head}, below...) {
		if o, tells := r.Outcome(); tells && o.GivenUp && r.ReadAt.Before(x.s.Bid.Came) {
			v.GivenUp = later(v.GivenUp, o.SlotStart)
		}
	}
}

// giveUp reports a slot that has used up its attempts, of which so many count, once.
func (x *step) giveUp(slot slots.Slot, attempts int) {
	if v := &x.s.View; !v.GivenUp.Equal(slot.Start) {
		v.GivenUp = slot.Start
		x.note(Note{What: Exhausted, Slot: slot, Count: attempts})
	}
}
