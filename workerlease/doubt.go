package workerlease

import (
	"fmt"
	"time"
)

// leastWindow is the shortest window that leaves time to work, at an uncertainty of
// store time: that begins when all of the interval has reached its start, and ends a
// margin before any of it has reached its end. The 2 ms are what waits are rounded by.
func leastWindow(uncertainty, margin time.Duration) time.Duration {
	return 2*uncertainty + margin + 2*time.Millisecond
}

// leastFailover is the least FailoverWithin at an uncertainty of store time: the
// shortest window of a take-over is a quarter of it.
func leastFailover(uncertainty, margin time.Duration) time.Duration {
	return 4 * leastWindow(uncertainty, margin)
}

// tooUncertain says that windows are too short for an uncertainty of store time.
func (w *WorkerLease) tooUncertain(uncertainty time.Duration) error {
	o := w.options
	if least := leastFailover(uncertainty, o.Margin); o.FailoverWithin > 0 && o.FailoverWithin < least {
		return fmt.Errorf("%s: FailoverWithin is %v, and store time is uncertain by ±%v: it should be at least 8 × that and 4 × Margin (%v), as work in a part of a slot begins that late and ends that early: parts of slots are lost, or all of them",
			o.WorkerType, o.FailoverWithin, round(uncertainty), round(least))
	}
	if least := leastWindow(uncertainty, o.Margin); w.shortest < least {
		return fmt.Errorf("%s: the shortest slot is %v, and store time is uncertain by ±%v: it should be longer than 2 × that and Margin (%v), as work in a slot begins that late and ends that early: slots are lost",
			o.WorkerType, w.shortest, round(uncertainty), round(least))
	}
	return nil
}

func round(d time.Duration) time.Duration { return d.Round(100 * time.Microsecond) }

// doubt is told how uncertain store time is, and tells once if that is too much: when it
// was so twice in a row, since one answer of the store may just have come late.
func (w *WorkerLease) doubt(uncertainty time.Duration) {
	const enough = 2
	if w.doubts >= enough {
		return
	}
	err := w.tooUncertain(uncertainty)
	if err == nil {
		w.doubts = 0
		return
	}
	if w.doubts++; w.doubts == enough {
		w.report(err)
		w.tell(TooUncertain{Worker: w.label(), Uncertainty: uncertainty, Err: err})
	}
}
