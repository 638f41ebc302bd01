package machine

import (
	"time"

	"github.com/slotlease/slotlease/store"
)

// This file is what a worker tells while its code runs on after a stop or an order: first that this is nobody's failure, so that who
// takes over doesn't count it, and in the end what the run has come to.

// earlyAfter is how long code has to end after a stop or an order, before this is told while it runs on: most ends sooner, and what stops
// a worker may kill it after 10 s.
const earlyAfter = time.Second

// ordered takes in that a stop or an order has ended the lease of work. While its code runs on, that is told: who takes over then knows
// that it counts for nothing, whatever becomes of this worker.
func (x *step) ordered(why Reason) {
	h, cause := x.s.Hold.Held, store.Ordered
	switch why {
	case Stopping:
		cause = store.Stopped
	case Paused, Drained, Ordered:
	default:
		return
	}
	ends := why == Stopping && x.m.Single && x.m.Trigger.IsZero() // Who has claimed once ends that itself, and says why.
	if ends || !x.m.Once || !h.Own || x.s.Report.reported(h, h.Slot) {
		return
	}
	x.report(h, h.Slot, true, true, Work{Cause: cause})
	x.s.Report.Early = true
	left := h.End.Sub(x.at.Now.Latest)
	x.s.Report.After = x.at.Local + min(earlyAfter, max(left/2, time.Millisecond))
	x.s.Report.Until = x.at.Local + max(left, closeLate)
}

// meanwhile reports that something is told while the code still runs.
func (f facts) meanwhile(r *Report) bool { return r.Early && f.m.awaits(f.s, Releasing) }

// quick reports that the store is so quick that what is told meanwhile holds up no release.
func (f facts) quick() bool {
	left := f.s.Hold.Left.End.Sub(f.at.Now.Latest)
	return left <= 0 || 4*(f.s.Trips.Reads.took()+f.s.Trips.Appends.took()) < left
}

// lookMeanwhile reads the head for that, in a worker that stops.
func (x *step) lookMeanwhile() {
	if r := &x.s.Report; x.s.Bid.Stage == Aiming && x.meanwhile(r) && x.tellable() == r {
		x.look(r)
	}
}

// lookedMeanwhile takes in that head, unless it was read before the stop.
func (x *step) lookedMeanwhile(head store.Record, below []store.Record, obeyed bool) {
	x.s.Bid.Stage = Aiming
	if r := x.telling; r != nil && r.Early && obeyed {
		x.observeRecord(head)
		x.tell(r, head, below)
	}
}

// turns has the last word be told in place of the first one.
func (r *Report) turns() { r.Metadata, r.Last, r.Tries = r.Last, "", 0 }

// ended takes in that the work of a term has come to its end all the same.
func (r *Report) ended(t Term) {
	if r.Early && r.reported(t, t.Slot) {
		r.told()
	}
}

// sparesOwn reports that a record says already that the attempt which the worker reports counts for nothing.
func (f facts) sparesOwn(r store.Record) bool {
	of, _ := store.Record{Kind: store.KindOutcome, Metadata: f.s.Report.Metadata}.Outcome()
	o, tells := r.Outcome()
	return tells && f.m.Rules.Spares(o) && o.InstanceID == of.InstanceID && o.Attempt == of.Attempt && o.SlotStart.Equal(of.SlotStart)
}

// lastWord begins the one try of a worker that stops to tell what has failed, unless it has tried before, and
// reports whether it does.
func (x *step) lastWord() bool {
	for _, r := range []*Report{&x.s.Report, &x.s.Death.Report} {
		if r.Metadata != "" && r.Tries == 0 && (r.After == 0 || r.Early) && !x.backingOff() {
			x.look(r)
			return true
		}
	}
	return false
}

// untold gives up what a worker that stops has tried to tell: it tries once, and after that nothing of others.
func (x *step) untold() {
	s := x.s
	if s.Stopping {
		s.Death.told()
	}
	switch r := &s.Report; {
	case !s.Stopping || r.Tries == 0 || x.meanwhile(r) || r.Early && (x.left() || x.closing()):
	case r.Last != "":
		r.turns()
	default:
		r.told()
	}
}
