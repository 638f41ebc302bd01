package workerlease_test

import (
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/memory"
)

// held is how much of a stretch a worker had leases in.
func held(w *worker, from, to time.Duration) (sum time.Duration) {
	for _, u := range w.history() {
		end := u.ended
		if end == 0 {
			end = to
		}
		sum += max(min(end, to)-max(u.allocated, from), 0)
	}
	return sum
}

// For 30 s, two servers whose clocks are apart answer in turn; then one only, again. That costs
// no more than 5 min of a long slot.
func TestServersThatAnswerInTurnForSecondsCostNoSlot(t *testing.T) {
	for _, within := range []time.Duration{0, time.Minute} {
		for _, off := range []time.Duration{300 * time.Millisecond, -300 * time.Millisecond, 3 * time.Second} {
			for _, each := range []int64{1, 2} { // answers in a row
				bubble(t, fmt.Sprint(within, "/", off, "/", each), func(t *testing.T) {
					const slot = 12 * time.Hour
					const from = 2*slot + 10*time.Minute
					var n atomic.Int64
					h := &hooked{Ledger: memory.New(memory.Options{})}
					h.stamp = func(s *store.Stamp, _ time.Time) {
						if d := time.Since(t0) - from; d > 0 && d < 30*time.Second {
							if n.Add(1)/each%2 == 1 {
								s.Time = s.Time.Add(off)
							}
						}
					}
					o := named("a", 0)
					o.LeaseInterval, o.FailoverWithin = slot, within
					w := start(t, setup{ledger: h, Options: o})
					if within == 0 {
						at(from - 10*time.Second)
						other := besides(t, w, h)
						at(from + 20*time.Second)
						if err := other.StopLeasing(t.Context()); err != nil {
							t.Fatal(err)
						}
					}
					at(4 * slot)
					if idle := 4*slot - from - held(w, from, 4*slot); idle > 5*time.Minute {
						t.Errorf("no lease for %v after that, want 5 min at most", idle)
					}
				})
			}
		}
	}
}

// Servers that are half a part of a slot apart, or more, answer in turn for good. Workers still
// lead most of the time, and don't sample without end.
func TestServersThatAreAPartApartAreLivedWith(t *testing.T) {
	for _, c := range []struct {
		within, off time.Duration
		led         float64 // of the time, at least
	}{
		{time.Minute, 30 * time.Second, 0.9}, {5 * time.Minute, 150 * time.Second, 0.8}, {20 * time.Second, 15 * time.Second, 0}, {time.Second, time.Second, 0},
	} {
		bubble(t, fmt.Sprint(c.within, "/", c.off), func(t *testing.T) {
			const slot = time.Hour
			from, till := 2*slot, 8*slot
			var stamps atomic.Int64
			h := &hooked{Ledger: memory.New(memory.Options{})}
			h.stamp = func(s *store.Stamp, _ time.Time) {
				if stamps.Add(1)%2 == 0 && time.Since(t0) > from {
					s.Time = s.Time.Add(c.off)
				}
			}
			o := named("a", 0)
			o.LeaseInterval, o.FailoverWithin = slot, c.within
			w := start(t, setup{ledger: h, Options: o})
			at(from)
			stamps.Store(0)
			at(till)
			led, rate := float64(held(w, from, till))/float64(till-from), float64(stamps.Load())/(till-from).Minutes()
			if led < c.led || rate > 120 {
				t.Errorf("led %.3f of the time, and read %.0f times a minute; want %.1f at least, and 120 at most", led, rate, c.led)
			}
		})
	}
}
