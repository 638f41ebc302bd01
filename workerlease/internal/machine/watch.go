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
	records, reader := append([]store.Record{head}, below...), x.ledger()
	alone := below != nil && reader.Stuck(records)
	stays := head.Seq >= store.MaxSeq || s.Bid.Role == Joiner || alone || s.Clock.unsettled()
	if seen := &s.View.Seen; seen.Seq == head.Seq {
		w.From = min(w.From, seen.From)
	} else if after := reader.YoungerThan(below); !stays && !after.IsZero() && reader.Timeless(records) && x.maySight() {
		*seen = Seen{Seq: head.Seq, Asked: x.at.Local, From: w.From, After: after}
		x.ask(Sighting, Sight{Poison: head, Since: w.Since, Why: why.Error()})
		return
	}
	w.Over = max(w.Over, w.From+drifted(reader.Watched(records, s.Bid.Slot.Length())))
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

// drifted is a time by the store's clock as one's own may count it, at the most.
func drifted(d time.Duration) time.Duration { return d + time.Duration(float64(d)*timeline.MaxDrift) }
