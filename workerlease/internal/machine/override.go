package machine

import (
	"fmt"
	"time"

	"github.com/slotlease/slotlease/internal/ledger"
	"github.com/slotlease/slotlease/store"
)

// This file is how workers take an override: a record by which an operator ends whatever is
// in force below it. No worker writes one.

// superseded forgets the end of the newest window that was won, if a record ends that sooner: by a clock that is gone it
// may lie a day ahead. The worker then contends like those that have won nothing.
func (x *step) superseded(head store.Record, below []store.Record) {
	h := &x.s.Hold
	if x.m.Rules.Reaims && h.Held.IsZero() && h.Next.IsZero() {
		for _, r := range append([]store.Record{head}, below...) {
			if ledger.Supersedes(r) && r.Seq > h.WonSeq && r.WindowStart.Before(h.WonEnd) {
				h.WonEnd = r.WindowStart
				x.s.Bid.Recheck = x.at.Local + time.Millisecond
			}
		}
	}
}

// overridden ends what this worker has by a term that an operator has overridden, and
// reports whether there is one. The records are the newest, or the one that was found where
// one's own was to go. Until it reads one of these, the worker goes on: that is the risk that
// the operator takes.
func (x *step) overridden(records []store.Record) (was bool) {
	h, last := &x.s.Hold, &x.s.View.LastGrant
	for i, r := range records {
		if r.Kind != store.KindOverride || x.ledger().Impossible(records[i:]) {
			continue
		}
		ends := func(t Term) bool { return !t.IsZero() && t.Seq < r.Seq && r.WindowStart.Before(t.End) }
		why := fmt.Errorf("%s has overridden it by seq %d", r.InstanceID, r.Seq)
		if ends(h.Held) {
			was = true
			x.note(Note{What: Vanished, Slot: h.Held.Slot, Err: why, Record: h.Held.record(x.m.WorkerType, x.m.InstanceID)})
			x.expire(RecordVanished)
		}
		if ends(h.Next) {
			was = true
			x.note(Note{What: Vanished, Slot: h.Next.Slot, Err: why, Record: h.Next.record(x.m.WorkerType, x.m.InstanceID)})
			x.note(Note{What: Missed, Slot: h.Next.Slot, Until: h.Next.Slot.End, Why: RecordVanished})
			x.s.Bid.VoidClaim, h.Next = h.Next.Claim, Term{}
		}
		if last.Seq < r.Seq && r.WindowStart.Before(last.End) {
			*last = Grant{} // What is granted since may begin within it.
		}
	}
	return was
}
