package doctor

import (
	"context"
	"fmt"
	"time"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/workerlease"
)

// sample is a reading of the store's clock between two of this machine's, which have both its time of day and
// its monotonic clock.
type sample struct {
	sent, received time.Time
	stamp          store.Stamp
}

// readClock reads the store's clock several times.
func readClock(ctx context.Context, l store.Ledger) (all []sample, err error) {
	for range samples {
		s := sample{sent: time.Now()}
		if s.stamp, err = l.Now(ctx); err != nil {
			return all, err
		}
		s.received = time.Now()
		all = append(all, s)
	}
	return all, nil
}

// bounds are between what this machine's time of day less store time is, by a sample. The stamp was made at sent,
// less MaxAge, at the earliest, and when it was received at the latest; and it is truncated.
func (s sample) bounds() (low, high time.Duration) {
	wall := s.received.Round(0)
	trip := s.received.Sub(s.sent)
	high = wall.Sub(s.stamp.Time)
	return high - s.stamp.Granularity - s.stamp.MaxAge - trip - s.stamp.Skew, high + s.stamp.Skew
}

// offset is how far this machine's time of day is ahead of store time, by all samples, and how uncertain that
// is. It is not steady if the samples contradict each other.
func offset(all []sample) (ahead, uncertainty time.Duration, steady bool) {
	low, high := all[0].bounds()
	for _, s := range all[1:] {
		l, h := s.bounds()
		low, high = max(low, l), min(high, h)
	}
	if low > high {
		low, high = all[0].bounds()
		return low + (high-low)/2, (high - low) / 2, false
	}
	return low + (high-low)/2, (high - low) / 2, true
}

// wrong is from how far on a time of day is called wrong, beyond what is uncertain. No lease depends on it.
const wrong = time.Second

// defaultSlot is the slot of a worker without options.
const defaultSlot = 5 * time.Minute

// judgeClock says how far this machine's clock is from the store's, and whether a worker here could lead slots
// of a length. Such a worker measures the same.
func judgeClock(all []sample, err error, slot time.Duration) store.Finding {
	if len(all) == 0 {
		return unread(checkClock, err)
	}
	ahead, uncertainty, steady := offset(all)
	margin, least := leastSlot(slot, uncertainty)
	text := fmt.Sprintf("this machine's time of day is %s store time, as known to ±%v", way(ahead), brief(uncertainty))
	switch {
	case !steady:
		return warn(checkClock, "see server-clocks and ntp; workers claim nothing until the times agree again", "store time, or this machine's, jumped between two readings")
	case slot <= least:
		f := warn(checkClock, "bring this machine nearer to the store, or make the slots longer", "%s: too uncertain to lead slots of %v, which must be longer than %v (2 × that, and the margin of %v)", text, slot, brief(least), margin)
		f.Level = store.LevelFail
		return f
	case ahead.Abs() > uncertainty+wrong:
		return warn(checkClock, "set the clock that is wrong, here or at the store: slots begin by the store's", "%s; no lease depends on it, but slots begin and logs are written at other times than they seem to", text)
	}
	return ok(checkClock, "%s: fit to lead slots of %v", text, slot)
}

// leastSlot is what a slot must be longer than for a worker with default options to lead it, and the margin.
func leastSlot(slot, uncertainty time.Duration) (margin, least time.Duration) {
	t, err := (workerlease.Options{WorkerType: "doctor", LeaseInterval: slot}).Timing()
	if err != nil {
		t, _ = (workerlease.Options{WorkerType: "doctor"}).Timing() // no slot that a worker could have
	}
	margin = t.Options.Margin
	return margin, 2*uncertainty + margin + 2*time.Millisecond
}

// way is how far a clock is ahead of another.
func way(ahead time.Duration) string {
	if ahead < 0 {
		return brief(-ahead) + " behind"
	}
	return brief(ahead) + " ahead of"
}

// brief is a duration to as many digits as matter.
func brief(d time.Duration) string {
	switch {
	case d < 10*time.Millisecond:
		return d.Round(10 * time.Microsecond).String()
	case d < time.Second:
		return d.Round(time.Millisecond).String()
	case d < time.Minute:
		return d.Round(100 * time.Millisecond).String()
	}
	return d.Round(time.Second).String()
}
