package sim

import "github.com/slotlease/slotlease/store"

// auditWork checks what a record says of the work of slots against the one before.
func (w *world) auditWork(p *Process, r, before store.Record) {
	if r.DoneUntil.Before(before.DoneUntil) {
		w.violate("seq %d of %v, a %s, forgets that slots are done until %v", r.Seq, p, r.Kind, w.time(before.DoneUntil))
	}
	if !p.options.OncePerSlot || r.Kind != store.KindGrant || r.Claim == before.Claim {
		return
	}
	if !before.DoneUntil.IsZero() && !r.SlotEnd.After(before.DoneUntil) {
		w.violate("seq %d of %v is for a slot that is done, until %v", r.Seq, p, w.time(before.DoneUntil))
	}
	attempt := 1
	if r.SlotStart.Equal(before.SlotStart) {
		attempt += before.Attempt
	}
	if most := p.options.MaxAttempts; r.Attempt != attempt || most > 0 && attempt > most {
		w.violate("seq %d of %v is attempt %d of at most %d, and says %d", r.Seq, p, attempt, most, r.Attempt)
	}
}
