package machine

import (
	"time"

	"github.com/slotlease/slotlease/workerlease/internal/timeline"
)

// Inside reports whether store time is surely inside a window, with margin to
// spare at its end: the condition for working. The interval that contains store time
// begins after the window does and ends before its last moment. So two holders never
// work at one time under windows that don't overlap, whatever their clocks say.
func (r *Rules) Inside(now timeline.Interval, start, end time.Time, margin time.Duration) bool {
	return now.Known() && r.begun(now, start) && !r.over(now, end, margin)
}

// begun reports that a window may be worked under, as far as its start goes.
func (r *Rules) begun(now timeline.Interval, start time.Time) bool {
	return !now.At(r.BeginBy).Before(start)
}

// over reports that a worker may not, or not any more, work in a window.
func (r *Rules) over(now timeline.Interval, end time.Time, margin time.Duration) bool {
	return !now.At(r.EndBy).Before(r.Last(end, margin))
}

// Look reports that the time is to be checked on an occasion.
func (r *Rules) Look(on Looks) bool { return r.Looks&on != 0 }

// Remaining is how long, by the local clock, store time stays surely inside a
// window that ends at end.
func (r *Rules) Remaining(now timeline.Interval, end time.Time, margin time.Duration) time.Duration {
	return now.Until(r.Last(end, margin), r.EndBy)
}

// last leaves the margin, for work that was begun before the end was noticed. The extra
// millisecond is the shortest wait: no timer is set for less.
func last(end time.Time, margin time.Duration) time.Time {
	return end.Add(-margin - time.Millisecond)
}

// jumped holds nothing over a contradiction: either the earlier interval was wrong, under
// which the lease was taken, or the present one is.
func jumped(seen, now int) bool { return now > seen }

// settled keeps the interval from before a jump until every worker that began by the old
// clock has come to the new one. Such a worker holds nothing that ends after the head
// that was read since; so it is enough that this has ended by all clocks, and is the head then.
// If the old
// clock is far behind, or the head was granted by a clock far ahead, that would take long:
// it is also enough that so much time has passed as the longest window takes.
func settled(at Moment, c Clock) bool {
	return !c.SettleAt.IsZero() && (!at.Now.Earliest.Before(c.SettleAt) || at.Local >= c.SettleBy)
}

// ceil rounds up to a whole millisecond, as windows are.
func ceil(t time.Time) time.Time {
	if f := t.Truncate(time.Millisecond); f.Before(t) {
		return f.Add(time.Millisecond)
	}
	return t
}

// later returns the later of two times.
func later(a, b time.Time) time.Time {
	if a.Before(b) {
		return b
	}
	return a
}
