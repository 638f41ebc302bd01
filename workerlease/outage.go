package workerlease

import (
	"errors"
	"fmt"
	"time"

	"github.com/slotlease/slotlease/priority"
	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/workerlease/event"
	"github.com/slotlease/slotlease/workerlease/internal/machine"
)

// outage is the time in which the store answers nothing, or takes no appends, as while its
// servers elect a primary. It is kept beside the machine, which decides nothing by it. Only
// the goroutine that runs the worker uses it.
type outage struct {
	down    bool
	append  bool          // appends fail: only one that succeeds ends the outage
	latest  time.Duration // the local reading at which the newest failure came
	began   time.Duration // the local reading at which the first operation that failed was begun
	lapse   time.Duration // that at which a lease ended which could have been extended; 0: none did
	lapsed  *Lease        // the lease that did
	starved error         // why operations got no connection of the application's pool, in the newest outage; nil: they did
	told    bool
}

// noteReply takes in how an operation of the store ended. When an outage is over in which a
// lease ended, it reports once which option would have held that.
func (w *WorkerLease) noteReply(e machine.Event) {
	w.works(e)
	o := &w.outage
	took, appended, err, ok := reply(e)
	if !ok || o.told || err == nil && !o.down {
		return
	}
	now := w.client.local()
	if !o.down {
		o.starved = nil
	}
	if starved, ok := errors.AsType[interface {
		error
		Starved() bool
	}](err); ok {
		o.starved = starved
	}
	switch {
	case err != nil && o.down:
		o.append, o.latest = o.append || appended, now
	case err != nil:
		o.down, o.append, o.began, o.latest = true, appended, now-took, now
	case appended || !o.append:
		o.down = false
		if o.lapse > o.began {
			// It may have been over since the newest failure, or until now.
			w.reportOutage(min(now-took, o.latest+w.nextTry()) - o.began)
		}
	}
}

// noteLapse takes in that a lease has ended by its window. It ended for an outage only if
// operations have failed until now: else another worker has the slot.
func (w *WorkerLease) noteLapse(l Lease) {
	o, d, now := &w.outage, &w.downtime, w.client.local()
	down := o.down && now-o.latest <= 2*w.nextTry()
	failing := d.failing && now-d.latest <= 2*w.nextTry()
	if !down && !failing {
		return
	}
	if t, err := w.options.Timing(); err != nil || t.ExtendsBefore(l.Slot, l.Expiry) <= 0 {
		return
	}
	if failing {
		d.lapsed++
	}
	if down {
		lease := l // Else each call would allocate one.
		o.lapse, o.lapsed = now, &lease
	}
}

// reply is how long an operation took, whether it was an append, and the error if the store
// failed to answer. A denial is an answer, and so is a pause that the store asks for. ok is
// false of other events.
func reply(e machine.Event) (took time.Duration, appended bool, failure error, ok bool) {
	switch e := e.(type) {
	case machine.Sampled:
		took, failure = e.Took, e.Err
	case machine.HeadRead:
		took, failure = e.Took, e.Err
	case machine.RecordRead:
		took, failure = e.Took, e.Err
	case machine.Appended:
		took, failure, appended = e.Took, e.Err, true
	default:
		return 0, false, nil, false
	}
	for _, answer := range []error{
		store.ErrConflict, store.ErrNotFound, store.ErrInvalid, store.ErrThrottled, store.ErrRefused, store.ErrDenied, store.ErrMissing, store.ErrClosed, store.ErrWentBack,
	} {
		if errors.Is(failure, answer) {
			return took, appended, nil, true
		}
	}
	return took, appended, failure, true
}

// reportOutage reports that a lease ended because the store was down for so long: from
// the first operation that failed to the next try after the last.
func (w *WorkerLease) reportOutage(length time.Duration) {
	w.outage.told = true
	err := fmt.Errorf("%s: the store took no appends for about %v, and the lease of slot %v ended for that: %s",
		w.options.WorkerType, round(length), w.outage.lapsed.Slot, w.holds(length))
	w.report(err)
	w.emit(event.Lapsed{Worker: w.label(), Outage: length, Err: err})
}

// holds says what would have held the lease in an outage: which option, or a pool that isn't exhausted.
func (w *WorkerLease) holds(length time.Duration) string {
	if starved := w.outage.starved; starved != nil {
		return starved.Error()
	}
	o := w.options
	needed := length + w.now().Uncertainty()
	expiry := w.outage.lapsed.Expiry
	slot := w.machine.Schedule.At(expiry.Add(-1)) // A run may have gone on into it.
	if expiry.Before(slot.End) {
		// A quarter of it, less the eighth of that which a try may come late, twice: a read that finds the
		// store back, and the append after it. The margin grows with FailoverWithin by default.
		needed = up((needed + max(o.Margin, min(w.machine.Shortest/100, maxMargin))) * 16 / 3)
		return advice("FailoverWithin", o.FailoverWithin, needed, min(w.machine.Shortest/2, 8*machine.MaxFailoverMargin), "a lease is extended a quarter of that before its part of a slot ends")
	}
	t, _ := o.Timing() // They are resolved.
	lead := t.LeadAfter(slot.Length())
	needed = up(needed + 2*w.nextTry() + o.Margin + lead - t.ExtendsBefore(slot, expiry))
	most := min(w.machine.Shortest/2, priority.MaxLead)
	if o.FailoverWithin > 0 {
		most = min(most, o.FailoverWithin/2)
	}
	return advice("Lead", lead, needed, most, "a lease goes on into the next slot when claims for that open")
}

// nextTry is how long after a failure the next try comes, at most.
func (w *WorkerLease) nextTry() time.Duration { return min(w.options.MaxBackoff, w.machine.Shortest/8) }

// advice names the value of an option that holds a lease, if it may have that.
func advice(option string, value, needed, most time.Duration, why string) string {
	if needed > most {
		return fmt.Sprintf("%s is %v, and would have to be %v to hold it, but may be %v at most: %s", option, value, needed, most, why)
	}
	return fmt.Sprintf("%s is %v, and %v would have held it: %s", option, value, needed, why)
}

// up rounds up to a tenth of a second or, from ten seconds on, to a whole one.
func up(d time.Duration) time.Duration {
	unit := 100 * time.Millisecond
	if d > 10*time.Second {
		unit = time.Second
	}
	return (d + unit - 1).Truncate(unit)
}
