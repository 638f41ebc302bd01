package sim

import (
	"fmt"

	"github.com/slotlease/slotlease/store"
)

// auditOutcome checks what a record says of the work of a slot, and that a record which is only for that changes
// nothing. The caller holds world.mu.
func (w *world) auditOutcome(p *Process, l *ledger, r, before store.Record) {
	o, tells := r.Outcome()
	switch r.Kind {
	case store.KindDone:
		// The slot was done by who says so, unless another one says so again.
		if r.WorkerType == p.options.WorkerType && r.DoneUntil.After(before.DoneUntil) &&
			(!tells || o.Result != store.Succeeded || o.InstanceID != p.options.InstanceID || !o.SlotEnd.Equal(r.DoneUntil)) {
			w.violate("seq %d of %v says that a slot is done, and of its work %q", r.Seq, p, r.Metadata)
		}
	case store.KindRelease:
		if !tells && r.Metadata != "" {
			w.violate("seq %d of %v releases, and says %q", r.Seq, p, r.Metadata)
		}
	case store.KindOutcome:
		if !tells || o.InstanceID != p.options.InstanceID || before.Kind == store.KindRelease || !r.DoneUntil.Equal(before.DoneUntil) {
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
	w.demands.Told++
	// A millisecond may see two failures, and a name may be used twice.
	key := fmt.Sprint(p.number, " ", r.Metadata)
	if l.told == nil {
		l.told = map[string]int64{}
	}
	if seq := l.told[key]; seq != 0 && (r.Kind == store.KindOutcome || r.Kind == store.KindRelease) {
		w.violate("seq %d of %v says what seq %d has said: %s", r.Seq, p, seq, r.Metadata)
	}
	l.told[key] = r.Seq
}
