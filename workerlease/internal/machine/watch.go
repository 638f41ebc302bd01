package machine

import (
	"time"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/workerlease/internal/timeline"
)

// This file is how poison is watched, and for how long.

// watch reports poison, and supersedes it when it has stood for so long that no worker
// can still have a claim to it. It is never treated as free. Since when it has stood is
// recorded, because the worker may end before that.
func (x *step) watch(head store.Record, below []store.Record, why error) {
	s := x.s
	w := &s.View.Watch
	if w.Seq != head.Seq {
		*w = Watch{Seq: head.Seq, Since: x.at.Newest.Latest, From: x.at.Local}
		x.note(Note{What: Poison, Slot: s.Bid.Slot, Record: head, Err: why})
	}
	// If no record that can be obeyed is left below it, nobody knows which term is in force.
	alone := below != nil && head.Seq > 1 && !x.hasValidBase(below)
	stays := head.Seq >= store.MaxSeq || s.Bid.Role == Joiner || alone || s.Clock.unsettled()
	if seen := &s.View.Seen; seen.Seq == head.Seq {
		w.From = min(w.From, seen.From)
	} else if after := x.youngerThan(below); !stays && !after.IsZero() && x.timeless(head, below) && x.maySight() {
		*seen = Seen{Seq: head.Seq, Asked: x.at.Local, From: w.From, After: after}
		x.ask(Sighting, Sight{Poison: head, Since: w.Since, Why: why.Error()})
		return
	}
	w.Over = max(w.Over, w.From+x.patience(head, below))
	if stays && x.at.Local >= w.Over {
		w.Over = x.at.Local + x.m.Rules.Patience
	}
	if x.at.Local < w.Over {
		x.standStill()
		return
	}
	if below == nil && head.Seq > 1 {
		// The head came from a read-back. Read it with what is below it.
		x.readHead()
		return
	}
	s.Bid.send(x.reset(head, below, why), head)
}

// sighted takes in since when some worker has seen the poison that is watched. The head is read
// again, to go on from there.
func (x *step) sighted(e Sighted) {
	s := x.s
	if e.Err != nil {
		x.failed(Sighting, e.Err) // It is watched for as long as this worker lives.
	} else if seen := &s.View.Seen; !s.Clock.unsettled() {
		age := x.at.Now.Earliest.Sub(later(e.Since, seen.After))
		seen.From = min(seen.From, x.at.Local-age)
	}
	s.View.Watch.Over = 0
	x.reread()
}

// maySight bounds the sightings of a worker that can't obey what others append, and can't know that:
// what it sees goes away by itself, again and again.
func (f facts) maySight() bool {
	seen := &f.s.View.Seen
	return seen.Seq == 0 || f.at.Local-seen.Asked >= f.m.Rules.Patience
}

// youngerThan is the reading of the head for the newest record below poison that can be obeyed. The
// poison was appended later, whatever a sighting says. Zero: it isn't known; then a sighting could
// be of a ledger that was deleted since.
func (f facts) youngerThan(below []store.Record) time.Time {
	for i, r := range below {
		if !f.impossible(below[i:]) {
			return r.ReadAt
		}
	}
	return time.Time{}
}

// standStill claims nothing before the watch is over, and perhaps the rest of the slot then.
func (x *step) standStill() {
	s := x.s
	over := x.at.Now.Mid().Add(s.View.Watch.Over - x.at.Local)
	switch {
	case s.Bid.Claim.ID == "":
		s.Bid.Stage = Aiming // The head was read for another reason.
		return
	case s.Bid.Role == Claimant && !x.m.Single && over.Before(x.m.abandoned(s.Bid.Slot)):
		s.Bid.wait(later(over, s.Bid.Slot.Start).Add(x.turn(s.Hold.had(s.Bid.Slot, x.m.Once))), timeline.Mid)
		s.Bid.MissReason = Poisoned // should the slot be missed yet
		return
	}
	s.Bid.MissReason = Poisoned
	x.miss(s.Bid.Slot.End)
	x.next()
}

// timeless reports that poison, head and what is poison right below it, is so whatever the
// time is. Other poison is too far ahead of store time, which this worker may know wrongly, and
// the next one, too: so its sightings count for nothing.
func (f facts) timeless(head store.Record, below []store.Record) bool {
	f.at.Newest.Latest = time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC)
	records := append([]store.Record{head}, below...)
	for i := range records {
		if !f.impossible(records[i:]) {
			return i > 0
		}
	}
	return true
}

// patience is how long poison is watched, by the local clock: head, and the records right
// below it that are poison, too.
func (f facts) patience(head store.Record, below []store.Record) time.Duration {
	poison := []store.Record{head}
	for i, r := range below {
		if !f.impossible(below[i:]) {
			break
		}
		poison = append(poison, r)
	}
	return f.outlasting(poison, longestSpan)
}

// outlasting is how long it takes, by the local clock, until no worker can still act on
// records: until the longest of their windows, or of one's own slots, would be over. Slots
// count for longestSlot at most.
func (f facts) outlasting(records []store.Record, longestSlot time.Duration) time.Duration {
	d := max(min(f.s.Bid.Slot.Length(), longestSlot), f.m.Rules.Span(records)) + f.m.Rules.Patience
	return d + time.Duration(float64(d)*timeline.MaxDrift)
}
