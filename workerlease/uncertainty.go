package workerlease

import (
	"fmt"
	"time"

	"github.com/slotlease/slotlease/workerlease/event"
	"github.com/slotlease/slotlease/workerlease/internal/machine"
)

// tooUncertain is an error if windows are too short for an uncertainty of store time.
func (w *WorkerLease) tooUncertain(uncertainty time.Duration) error {
	o := w.options
	if least := machine.MinUsefulFailover(uncertainty, o.Margin); o.FailoverWithin > 0 && o.FailoverWithin < least {
		return fmt.Errorf("%s: FailoverWithin is %v, and store time is uncertain by ±%v: it should be at least 8 × that and 4 × Margin (%v), because work in a part of a slot begins that late and ends that early: parts of slots are lost, or all of them",
			o.WorkerType, o.FailoverWithin, round(uncertainty), round(least))
	}
	if least := machine.MinWindow(uncertainty, o.Margin); w.machine.Shortest < least {
		return fmt.Errorf("%s: the shortest slot is %v, and store time is uncertain by ±%v: it should be longer than 2 × that and Margin (%v), because work in a slot begins that late and ends that early: slots are lost",
			o.WorkerType, w.machine.Shortest, round(uncertainty), round(least))
	}
	return nil
}

func round(d time.Duration) time.Duration { return d.Round(100 * time.Microsecond) }

// coarseFor is how long a store may show a coarser time than its clock is good for: a time in whole seconds, as the Date
// of HTTP replies, is known better after some of them.
const coarseFor = time.Minute

// noteUncertainty reports, once, that store time is too uncertain: when it was so twice in
// a row, since a single answer of the store may just have come late.
func (w *WorkerLease) noteUncertainty(uncertainty time.Duration) {
	const enough = 2
	if w.uncertainSamples >= enough {
		return
	}
	err := w.tooUncertain(uncertainty)
	now := w.client.local()
	switch {
	case err == nil:
		w.uncertainSamples = 0
		return
	case w.uncertainSamples == 0:
		w.uncertainFrom = now
	case w.client.described.FailoverFloor > 0 && now-w.uncertainFrom < coarseFor:
		return
	}
	if w.uncertainSamples++; w.uncertainSamples == enough {
		w.report(err)
		w.emit(event.TooUncertain{Worker: w.label(), Uncertainty: uncertainty, Err: err})
	}
}
