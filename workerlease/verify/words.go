package verify

import (
	"fmt"
	"slices"
	"time"

	"github.com/slotlease/slotlease/slots"
	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/workerlease/internal/gap"
)

// This file is what workers say of their attempts at slots, and what of them has ended without a word.

// said takes in what a record says of an attempt at a slot.
func (s *slotted) said(v *Verifier, r store.Record) {
	o, ok := r.Outcome()
	s.saidOfLed(r)
	s.unsaid = slices.DeleteFunc(slices.Clone(s.unsaid), func(of store.Record) bool {
		own := ok && o.InstanceID == of.InstanceID && o.Attempt == of.Attempt && o.SlotStart.Equal(of.SlotStart)
		return own || of.Claim == r.Claim && (r.Kind == store.KindDone || r.Kind == store.KindRelease) || r.Kind == store.KindOverride
	})
	lives := func(dead failure) bool {
		return slices.ContainsFunc(s.words, func(of store.Record) bool { return says(of, dead.outcome) })
	}
	if r.Kind == store.KindRelease { // It was taken for dead, and lives: unless it is the release of who has said so, under a claim of its own.
		s.dead = slices.DeleteFunc(slices.Clone(s.dead), func(dead failure) bool {
			return dead.record.Claim == r.Claim && dead.record.Attempt == dead.outcome.Attempt && dead.outcome.InstanceID == r.InstanceID
		})
	}
	switch died := ok && o.Cause == store.WorkerDied; {
	case died && !lives(failure{r, o}):
		if len(s.dead) == mostUnsaid {
			s.failed(v, s.dead[0])
			s.dead = s.dead[1:]
		}
		s.dead = append(slices.Clone(s.dead), failure{r, o})
	case !died && (ok || r.Kind == store.KindDone):
		s.words = append(slices.Clone(s.words[max(0, len(s.words)+1-mostUnsaid):]), r)
		s.dead = slices.DeleteFunc(slices.Clone(s.dead), lives)
		s.failed(v, failure{r, o})
		s.madeGood(v, r)
	}
}

// saidOfLed takes in what ends the newest lease of a leader in order, or may have been said before the store lost it.
func (s *slotted) saidOfLed(r store.Record) {
	o, told := r.Outcome()
	_, lost := r.Lost()
	ended := r.Kind == store.KindRelease || r.Kind == store.KindOverride || r.Kind == store.KindReset
	if lost || ended || told && o.InstanceID == s.led.InstanceID {
		s.led = store.Record{}
	}
}

// says reports that a record says what came of the attempt of which another says that its worker has died.
func says(r store.Record, dead store.Outcome) bool {
	o, ok := r.Outcome()
	if !ok { // All that it says is of the head.
		done, _ := store.ParseDone(r.Done)
		o = store.Outcome{InstanceID: r.InstanceID, Attempt: r.Attempt, SlotStart: done.Start}
	}
	return o.InstanceID == dead.InstanceID && o.Attempt == dead.Attempt && o.SlotStart.Equal(dead.SlotStart)
}

// failure is what a record says of an attempt that failed.
type failure struct {
	record  store.Record
	outcome store.Outcome
}

// failed takes in what a record says of an attempt, if that failed. That its slot was given up with it waits: it may be done later.
func (s *slotted) failed(v *Verifier, f failure) {
	if !f.outcome.GivenUp {
		f.tell(v)
		return
	}
	if len(s.givenUp) == mostUnsaid {
		s.givenUp[0].tell(v)
		s.givenUp = s.givenUp[1:]
	}
	s.givenUp = append(slices.Clone(s.givenUp), f)
}

// madeGood takes in that the slot of which a record says that it is done isn't given up any more: somebody ran it once more.
func (s *slotted) madeGood(v *Verifier, r store.Record) {
	start := doneIn(r)
	open := s.givenUp
	s.dead, s.givenUp = slices.Clone(s.dead), nil
	for i, f := range s.dead {
		s.dead[i].outcome.GivenUp = f.outcome.GivenUp && !f.outcome.SlotStart.Equal(start)
	}
	for _, f := range open {
		f.outcome.GivenUp = !f.outcome.SlotStart.Equal(start)
		s.failed(v, f)
	}
}

// doneIn is the start of the slot of which a record says that it is done; zero if it says that of none.
func doneIn(r store.Record) time.Time {
	o, told := r.Outcome()
	switch {
	case told && o.Result == store.Succeeded:
		return o.SlotStart
	case r.Kind != store.KindDone:
		return time.Time{}
	}
	done, _ := store.ParseDone(r.Done)
	return done.Start
}

// tell notes an attempt that failed.
func (f failure) tell(v *Verifier) {
	r, o := f.record, f.outcome
	if o.Cause != "" && o.Cause != store.Stopped && o.Cause != store.Ordered {
		cut := v.finding(RunCut, r, "%s the slot that starts at %s, by %s, failed: %s.", triedAt(o.Attempt), store.Format(o.SlotStart), o.InstanceID, o.Cause)
		if o.GivenUp {
			cut.Remedy = lookAtSlots + " Its work may be half done, and no attempt follows."
		}
		v.found.add(cut)
	}
	if o.GivenUp {
		v.find(GivenUp, r, "The slot that starts at %s was given up after attempt %d.", store.Format(o.SlotStart), o.Attempt)
	}
}

// tellFailed notes the attempts whose workers have died, as others say, and the slots that were given up.
func (s *slotted) tellFailed(v *Verifier) {
	for _, f := range s.dead {
		s.failed(v, f)
	}
	for _, f := range s.givenUp {
		f.tell(v)
	}
}

// silent notes what has ended without a word.
func (s *slotted) silent(v *Verifier) {
	by := v.o.Now.Add(-v.slack())
	for _, r := range s.unsaid {
		if !by.Before(gap.SaidBy(slots.Slot{Start: r.SlotStart, End: r.SlotEnd}, r.WindowEnd)) {
			s.died(v, r)
		}
	}
	if r := s.led; r.Seq != 0 && !by.Before(r.WindowEnd) {
		f := v.finding(RunCut, r, "The lease of %s in the slot that starts at %s ended early, at %s, without a word of its worker.", r.InstanceID, store.Format(r.SlotStart), store.Format(r.WindowEnd))
		f.Remedy = "It died, stood still, or couldn't reach the store: leasectl why says what is known of it."
		v.found.add(f)
	}
}

// died notes an attempt whose lease has ended without a word.
func (s *slotted) died(v *Verifier, r store.Record) {
	v.find(RunCut, r, "%s the slot that starts at %s, by %s, failed: %s.", triedAt(r.Attempt), store.Format(r.SlotStart), r.InstanceID, store.WorkerDied)
}

// triedAt begins a sentence about an attempt; 0: it was none of a job.
func triedAt(attempt int) string {
	if attempt == 0 {
		return "The work of"
	}
	return fmt.Sprintf("Attempt %d at", attempt)
}
