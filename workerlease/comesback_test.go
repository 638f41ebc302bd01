package workerlease_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/slotlease/slotlease/internal/suites"
	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/memory"
	"github.com/slotlease/slotlease/workerlease"
)

// besides runs another worker of a client, with short slots, which notices each change of the
// store's clock soon.
func besides(t *testing.T, w *worker, h *hooked) *worker {
	t.Helper()
	o := workerlease.Options{WorkerType: "other", LeaseInterval: 5 * time.Second}
	return start(t, setup{ledger: h, client: w.Client(), Options: o})
}

// A store's clock is off for seconds, once or twice, or for good. In slots of 12 h that are taken
// over within a minute, the worker leads again within 5 min, and twice what the clock was off.
func TestAClockThatComesBackCostsNoSlot(t *testing.T) {
	for _, c := range []struct {
		name     string
		off, rel time.Duration // how far, and since when after a boundary
		changes  int           // every 20 s
	}{
		{"once, before the slot", -8 * time.Minute, -5 * time.Second, 2},
		{"twice, before the slot", -2 * time.Minute, -time.Minute, 4},
		{"twice, in the slot", -2 * time.Minute, 6 * time.Hour, 4},
		{"twice, and for good, in the slot", -2 * time.Minute, 6 * time.Hour, 3},
		{"for good, before the slot", -time.Minute, -5 * time.Second, 1},
	} {
		bubble(t, c.name, func(t *testing.T) {
			const slot, every = 12 * time.Hour, 20 * time.Second
			from := 2*slot + c.rel
			end := from + time.Duration(c.changes-1)*every
			h := &hooked{Ledger: memory.New(memory.Options{})}
			h.stamp = func(s *store.Stamp, _ time.Time) {
				if d := time.Since(t0) - from; d > 0 && min(int(d/every), c.changes-1)%2 == 0 {
					s.Time = s.Time.Add(c.off)
				}
			}
			o := named("a", 0)
			o.LeaseInterval, o.FailoverWithin = slot, time.Minute
			w := start(t, setup{ledger: h, Options: o})
			at(from - 10*time.Second)
			other := besides(t, w, h)
			at(end + 20*time.Second)
			if err := other.StopLeasing(t.Context()); err != nil {
				t.Fatal(err)
			}
			at(end + slot)
			u := w.history()
			i := slices.IndexFunc(u, func(u turn) bool { return u.allocated >= end || u.ended == 0 || u.ended > end+time.Minute })
			if most := 5*time.Minute + 2*c.off.Abs(); i < 0 || u[i].allocated > end+most {
				t.Errorf("leases %v, want one within %v after %v", u, most, end)
			}
		})
	}
}

// The same in slots without parts. What was granted by one clock is waited for by the other, for a
// slot and 5 min at most. Then the worker leads in the slot whose time it is, not in the one after it.
func TestAClockThatComesBackCostsASlotWithoutPartsAndMinutes(t *testing.T) {
	for _, off := range []time.Duration{-10 * time.Minute, -time.Hour, -4 * time.Hour, time.Hour, 4 * time.Hour} {
		for _, lasts := range []time.Duration{20 * time.Second, 2 * time.Minute} {
			bubble(t, fmt.Sprint(off, "/", lasts), func(t *testing.T) {
				const slot = 12 * time.Hour
				const from = 2*slot + 10*time.Minute
				h := &hooked{Ledger: memory.New(memory.Options{})}
				h.stamp = func(s *store.Stamp, _ time.Time) {
					if d := time.Since(t0) - from; d > 0 && d < lasts {
						s.Time = s.Time.Add(off)
					}
				}
				o := named("a", 0)
				o.LeaseInterval = slot
				w := start(t, setup{ledger: h, Options: o})
				at(from - 10*time.Second)
				other := besides(t, w, h)
				at(from + lasts + 20*time.Second)
				if err := other.StopLeasing(t.Context()); err != nil {
					t.Fatal(err)
				}
				at(6 * slot)
				if idle := 6*slot - from - lasts - held(w, from+lasts, 6*slot); idle > slot+10*time.Minute {
					t.Errorf("no lease for %v after that, want a slot and 10 min at most", idle)
				}
			})
		}
	}
}

// A slot was won, the store's clock jumps back by more than it can be claimed anew in, and nobody
// has the slot: that is reported.
func TestASlotThatWasWonAndIsNotHadIsReported(t *testing.T) {
	for _, lasts := range []time.Duration{30 * time.Second, 100 * time.Hour} {
		bubble(t, fmt.Sprint(lasts), func(t *testing.T) {
			from := 2*time.Hour - 5*time.Second
			h := &hooked{Ledger: memory.New(memory.Options{})}
			h.stamp = func(s *store.Stamp, _ time.Time) {
				if d := time.Since(t0); d > from && d < from+lasts {
					s.Time = s.Time.Add(-2 * time.Hour)
				}
			}
			o := named("a", 0)
			o.LeaseInterval = time.Hour
			w := start(t, setup{ledger: h, Options: o})
			at(from - 20*time.Second)
			other := besides(t, w, h)
			at(from + 10*time.Minute)
			if err := other.StopLeasing(t.Context()); err != nil {
				t.Fatal(err)
			}
			at(7*time.Hour + 30*time.Minute)
			won := slices.ContainsFunc(observed[workerlease.Claimed](w), func(e workerlease.Claimed) bool { return since(e.Slot.Start) == 2*time.Hour })
			had := slices.ContainsFunc(w.history(), func(u turn) bool { return since(u.lease.Slot.Start) == 2*time.Hour })
			missed := slices.ContainsFunc(observed[workerlease.Missed](w), func(e workerlease.Missed) bool {
				return since(e.Slot.Start) <= 2*time.Hour && since(e.Until) > 2*time.Hour
			})
			if !won || had == missed {
				t.Errorf("the slot was won %v, had %v, missed %v; want it won, and either had or missed", won, had, missed)
			}
		})
	}
}

// TryClaim has won the slot, and waits until that has surely begun, when the store's clock jumps.
// Then it returns.
func TestTryClaimReturnsAfterAJump(t *testing.T) {
	suites.SameGoroutines(t)
	for _, by := range []time.Duration{10 * time.Second, -10 * time.Second} {
		bubble(t, fmt.Sprint(by), func(t *testing.T) {
			var jumped atomic.Bool
			h := &hooked{Ledger: memory.New(memory.Options{})}
			h.stamp = func(s *store.Stamp, _ time.Time) {
				if s.Skew = time.Second; jumped.Load() {
					s.Time = s.Time.Add(by)
				}
			}
			client := newClient(&worker{}, setup{ledger: h})
			start(t, setup{ledger: h, client: client, Options: workerlease.Options{WorkerType: "other", LeaseInterval: 3 * time.Second}})
			at(2*time.Hour + time.Minute)
			h.afterAppend = func(r store.Record) { jumped.Store(jumped.Load() || r.WorkerType == "job") }
			ctx, cancel := context.WithTimeout(t.Context(), 3*time.Hour)
			defer cancel()
			c, err := client.TryClaim(ctx, workerlease.Options{WorkerType: "job", LeaseInterval: time.Hour})
			switch {
			case !jumped.Load():
				t.Error("the clock didn't jump")
			case err == nil:
				if err := c.Release(t.Context()); err != nil {
					t.Fatal(err)
				}
			case !errors.Is(err, workerlease.ErrNotClaimed) || ctx.Err() != nil:
				t.Errorf("TryClaim() = %v after %v, want a claim or ErrNotClaimed", err, since(time.Now())-2*time.Hour-time.Minute)
			}
		})
	}
}

// A worker that stops while the clock jumps still releases the slot that it had won.
func TestAWorkerThatStopsInAJumpReleasesWhatItHasWon(t *testing.T) {
	bubble(t, "", func(t *testing.T) {
		from := 2*time.Hour - 5*time.Second
		h := &hooked{Ledger: memory.New(memory.Options{})}
		h.stamp = func(s *store.Stamp, _ time.Time) {
			if time.Since(t0) > from {
				s.Time = s.Time.Add(300 * time.Millisecond)
			}
		}
		o := named("a", 0)
		o.LeaseInterval = time.Hour
		w := start(t, setup{ledger: h, Options: o})
		besides(t, w, h)
		for d := from; len(observed[workerlease.ClockJump](w)) == 0; d += 5 * time.Millisecond {
			at(d)
		}
		if err := w.StopLeasing(t.Context()); err != nil {
			t.Fatal(err)
		}
		if all := records(t, h); all[len(all)-1].Kind != store.KindRelease {
			t.Errorf("the newest record is %+v, want a release", all[len(all)-1])
		}
	})
}
