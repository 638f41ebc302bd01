package machine

import (
	"time"

	"github.com/slotlease/slotlease/priority"
)

// A worker may have a place among others that its client finds by what the workers say of themselves. That
// may be lost, old or a lie: it decides about the order of claims only.

// Rank is the place of a worker among others.
type Rank struct {
	Known    bool
	Priority int  // in place of the worker's own
	First    bool // with priority.Spread: this worker is to have the slots
}

// ranked is the priority by which the worker has its turn for the bid's slot, and whether it goes first
// among equals, as the holder of the slot before does.
func (f facts) ranked(held bool) (int, bool) {
	rank := f.m.Rules.Rank(f.s.Rank, f.m.Priority)
	first := held
	if rank.Known && f.m.TieBreak == priority.Spread {
		first = rank.First
	}
	switch name := f.preference(); {
	case f.m.StepsBack(f.s):
		return priority.Lowest, false
	case name != "":
		return f.m.Rules.Precedence(name == f.m.InstanceID, rank.Priority, first, priority.Lowest)
	default:
		return rank.Priority, first
	}
}

// turnIn is how long after the opening of claims the worker has its turn for the bid's slot; held reports
// that it had what comes before. Who lets others go first comes at the end of the lowest priority's turn:
// others may have that priority.
func (f facts) turnIn(turns priority.Turns, held bool) time.Duration {
	if f.m.StepsBack(f.s) {
		return f.lastTurn(turns)
	}
	p, held := f.ranked(held)
	return f.m.Rules.Turn(turns, p, f.m.TieBreak, held, f.turnDraw())
}

// lastTurn is the end of the lowest priority's turn, after all places in it.
func (f facts) lastTurn(turns priority.Turns) time.Duration {
	const last = 0xfc << 56 // of 64 parts
	return f.m.Rules.Turn(turns, priority.Lowest, priority.Random, false, f.turnDraw()|last) + turns.Step/4
}

// Effective is the priority by which the worker claims the bid's slot.
func (m *Machine) Effective(s *State) int {
	p, _ := facts{m: m, s: s}.ranked(false) // as of the beginning of time: with any preference
	return p
}

// bounded is a rank by which a worker may claim: its own priority, where nothing else is known.
func bounded(r Rank, own int) Rank {
	if !r.Known {
		return Rank{Priority: own}
	}
	r.Priority = min(max(r.Priority, priority.Highest), priority.Lowest)
	return r
}

// replan gives the bid's turn another time, if the worker waits for that and for nothing else.
func (x *step) replan() {
	b := &x.s.Bid
	if b.Stage == Aiming && b.Role == Claimant && b.Awaited == 0 && !b.Slot.IsZero() && x.at.Now.Known() {
		x.again()
	}
}

// remembered takes in what another process said of itself that the worker takes the place of. One that
// has ended without a word has failed, if it held a lease, had failed before, or had not come through one slot.
func (x *step) remembered(e Remembered) {
	t := &x.s.Trouble
	if t.Worked || x.s.Hold.holding() && t.Began.Before(x.s.Hold.Held.Slot.Start) || !x.at.Now.Known() {
		return
	}
	before, now := x.m.Rules.Recall(e.Trouble), x.m.Schedule.At(x.at.Now.Mid())
	if furthest := x.m.skip(now, mostLost*x.m.Rules.StepBack(before.Slots)+1); before.Until.After(furthest) {
		before.Until = furthest // Whatever is said there.
	}
	if t.Slots > 0 { // It has failed itself meanwhile, which goes on with what was before.
		x.failsOn(before)
		return
	}
	first := x.m.Schedule.Next(e.Since) // that it can have had
	*t = before
	if e.Died && (e.Held || before.Slots > 0 || e.Seen.Before(first.End)) {
		t.Began = now.Start // It has come through no slot since it failed.
		x.troubled(now, CodeFailed)
	} else if before.Until.After(now.Start) {
		x.note(Note{What: SteppedBack, Slot: now, Until: before.Until, Count: before.Slots})
	}
	x.replan()
}

// failsOn adds what was before to the failures of the worker itself.
func (x *step) failsOn(before Trouble) {
	t := &x.s.Trouble
	t.Slots += before.Slots
	slot := x.m.Schedule.At(t.Slot)
	if back := x.m.Rules.StepBack(t.Slots); back > 0 {
		if until := x.m.skip(slot, back); until.After(t.Until) {
			t.Until = until
			x.note(Note{What: SteppedBack, Slot: slot, Until: t.Until, Count: t.Slots})
		}
	}
	x.replan()
}

// recall keeps what is remembered.
func recall(t Trouble) Trouble { return t }

// StepsBack reports that the worker lets others go first in the bid's slot.
func (m *Machine) StepsBack(s *State) bool { return s.Trouble.Until.After(s.Bid.Slot.Start) }
