package verify

import (
	"fmt"
	"slices"

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
	lives := func(dead store.Record) bool {
		return slices.ContainsFunc(s.words, func(of store.Record) bool { return says(of, dead) })
	}
	if r.Kind == store.KindRelease { // It was taken for dead, and lives: unless it is the release of who has said so, under a claim of its own.
		s.dead = slices.DeleteFunc(slices.Clone(s.dead), func(dead store.Record) bool {
			of, _ := dead.Outcome()
			return dead.Claim == r.Claim && dead.Attempt == of.Attempt && of.InstanceID == r.InstanceID
		})
	}
	switch died := ok && o.Cause == store.WorkerDied; {
	case died && !lives(r):
		if len(s.dead) == mostUnsaid {
			s.failed(v, s.dead[0])
			s.dead = s.dead[1:]
		}
		s.dead = append(slices.Clone(s.dead), r)
	case !died && (ok || r.Kind == store.KindDone):
		s.words = append(slices.Clone(s.words[max(0, len(s.words)+1-mostUnsaid):]), r)
		s.dead = slices.DeleteFunc(slices.Clone(s.dead), lives)
		s.failed(v, r)
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
func says(r, dead store.Record) bool {
	of, _ := dead.Outcome()
	o, ok := r.Outcome()
	if !ok { // All that it says is of the head.
		done, _ := store.ParseDone(r.Done)
		o = store.Outcome{InstanceID: r.InstanceID, Attempt: r.Attempt, SlotStart: done.Start}
	}
	return o.InstanceID == of.InstanceID && o.Attempt == of.Attempt && o.SlotStart.Equal(of.SlotStart)
}

// failed notes what a record says of an attempt, if that failed.
func (s *slotted) failed(v *Verifier, r store.Record) {
	o, _ := r.Outcome()
	if o.Cause != "" && o.Cause != store.Stopped && o.Cause != store.Ordered {
		f := v.finding(RunCut, r, "%s the slot that starts at %s, by %s, failed: %s.", triedAt(o.Attempt), store.Format(o.SlotStart), o.InstanceID, o.Cause)
		if o.GivenUp {
			f.Remedy = lookAtSlots + " Its work may be half done, and no attempt follows."
		}
		v.found.add(f)
	}
	if o.GivenUp {
		v.find(GivenUp, r, "The slot that starts at %s was given up after attempt %d.", store.Format(o.SlotStart), o.Attempt)
	}
}

// tellDead notes the attempts whose workers have died, as others say.
func (s *slotted) tellDead(v *Verifier) {
	for _, r := range s.dead {
		s.failed(v, r)
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
