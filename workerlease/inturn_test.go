package workerlease_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/slotlease/slotlease/internal/race"
	"github.com/slotlease/slotlease/internal/suites"
	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/memory"
	"github.com/slotlease/slotlease/workerlease"
	"github.com/slotlease/slotlease/workerlease/event"
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

// inTurn is a ledger so many of whose stamps in a row come from one server and as many from another
// whose clock is off, from a time on and for so long.
func inTurn(l store.Ledger, from, lasts, off time.Duration, each int64) *hooked {
	var n atomic.Int64
	return &hooked{Ledger: l, stamp: func(s *store.Stamp, _ time.Time) {
		if d := since(time.Now()) - from; d >= 0 && d < lasts && n.Add(1)/each%2 == 1 {
			s.Time = s.Time.Add(off)
		}
	}}
}

// For 30 s, two servers whose clocks are apart answer in turn; then one only, again. That costs
// no more than 5 min of a long slot.
func TestServersThatAnswerInTurnForSecondsCostNoSlot(t *testing.T) {
	suites.Prove(t, "it simulates for long")
	suites.SameGoroutines(t)
	for _, within := range []time.Duration{0, time.Minute} {
		for _, off := range []time.Duration{300 * time.Millisecond, -300 * time.Millisecond, 3 * time.Second} {
			for _, each := range []int64{1, 2} { // answers in a row
				bubble(t, fmt.Sprint(within, "/", off, "/", each), func(t *testing.T) {
					const slot = 12 * time.Hour
					const from = 2*slot + 10*time.Minute
					h := inTurn(memory.New(memory.Options{}), from, 30*time.Second, off, each)
					o := slotted("a", 0, slot, within)
					w := start(t, setup{ledger: h, Options: o})
					if within == 0 {
						at(from - 10*time.Second)
						besides(t, w, h, from+20*time.Second)
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

// A worker starts while the servers of a client that is there already contradict each other. It
// leads as soon as one that was there would.
func TestAWorkerThatStartsWhileServersAnswerInTurnLeads(t *testing.T) {
	for _, off := range []time.Duration{30 * time.Second, time.Minute, 2 * time.Minute} {
		for _, from := range []time.Duration{time.Minute, 10 * time.Minute} {
			bubble(t, fmt.Sprint(off, "/", from), func(t *testing.T) {
				const lasts = 30 * time.Second
				h := inTurn(memory.New(memory.Options{}), from, lasts, off, 1)
				client := newClient(&worker{}, setup{ledger: h})
				start(t, setup{ledger: h, client: client, Options: workerlease.Options{WorkerType: "other", LeaseInterval: 3 * time.Second}})
				at(from + 10*time.Second)
				o := slotted("a", 0, 12*time.Hour, time.Minute)
				w := start(t, setup{ledger: h, client: client, joins: true, Options: o})
				at(from + lasts + 5*time.Minute)
				if n := len(w.history()); n == 0 {
					t.Error("no lease 5 min after that")
				}
			})
		}
	}
}

// The same in slots of 12 h, in which no slot begins soon that could be tried next. Who doesn't lead
// is not healthy.
func TestServersThatAreAPartApartAreLivedWithOrToldInLongSlots(t *testing.T) {
	suites.Prove(t, "it simulates for long")
	if race.Enabled {
		t.Skip("takes long under the race detector, which sees the same code in shorter slots")
	}
	for _, c := range []struct {
		within, off time.Duration
		leads       bool // in any case
	}{
		{time.Minute, 24 * time.Second, true},
		{time.Minute, 40 * time.Second, true},
		{5 * time.Minute, 200 * time.Second, true},
		{20 * time.Second, 15 * time.Second, false},
		{time.Minute, time.Minute, false},
	} {
		bubble(t, fmt.Sprint(c.within, "/", c.off), func(t *testing.T) {
			const slot = 12 * time.Hour
			const from, till = 2*slot + time.Minute, 4 * slot
			var reads atomic.Int64
			h := inTurn(memory.New(memory.Options{}), from, 100*slot, c.off, 1)
			h.before = func() error { reads.Add(1); return nil }
			o := slotted("a", 0, slot, c.within)
			w := start(t, setup{ledger: h, Options: o})
			healthy, looks := 0, 0
			for d := from + 10*time.Minute; d < till; d += 10 * time.Minute {
				at(d)
				looks++
				if w.Status().Healthy() {
					healthy++
				}
			}
			led, well := float64(held(w, from, till))/float64(till-from), float64(healthy)/float64(looks)
			rate := float64(reads.Load()) / (till - from).Minutes()
			if led < 0.9 && (c.leads || well > 0.1) {
				t.Errorf("led %.3f of the time, and healthy for %.3f of it; want 0.9 led or, if it can't lead, not healthy", led, well)
			}
			if blocked := w.Status().Blocked; led < 0.9 && !strings.Contains(blocked, "contradict") {
				t.Errorf("blocked: %q, want it to say that answers contradict each other", blocked)
			}
			if rate > 120 {
				t.Errorf("%.0f operations a minute, want 120 at most", rate)
			}
		})
	}
}

// Servers that are apart answer in turn for good. Who has lost a slot to another worker looks at it
// once, as always.
func TestALostSlotIsLookedAtOnceAlsoWhileServersAnswerInTurn(t *testing.T) {
	for _, within := range []time.Duration{0, 10 * time.Minute} {
		for _, off := range []time.Duration{time.Second, 10 * time.Second, 2 * time.Minute} {
			bubble(t, fmt.Sprint(within, "/", off), func(t *testing.T) {
				const slot = time.Hour
				const from, till = 2*slot + 10*time.Minute, 6 * slot
				inner := memory.New(memory.Options{})
				var fleet []*worker
				var operations atomic.Int64
				for i, name := range []string{"a", "b"} {
					h := inTurn(inner.Handle(), from, 100*slot, off, 1)
					h.before = func() error { operations.Add(1); return nil }
					o := slotted(name, i, slot, within)
					fleet = append(fleet, start(t, setup{ledger: h, Options: o}))
				}
				at(from)
				operations.Store(0)
				at(till)
				most := 100 // for both
				if within > 0 {
					most += 2 * int((till-from)/(2*time.Minute))
				}
				if n := int(operations.Load()); n > most {
					t.Errorf("%d operations in %v, want %d at most", n, till-from, most)
				}
				for _, w := range fleet {
					if s := w.Status(); s.Lost > int(till/slot)+1 {
						t.Errorf("%s lost %d slots of %d", s.InstanceID, s.Lost, till/slot)
					}
				}
			})
		}
	}
}

// besides runs another worker of a client up to a time, with short slots, which notices each change of
// the store's clock soon.
func besides(t *testing.T, w *worker, h *hooked, until time.Duration) {
	t.Helper()
	other := start(t, setup{ledger: h, client: w.Client(), Options: workerlease.Options{WorkerType: "other", LeaseInterval: 5 * time.Second}})
	at(until)
	must(t, other.StopLeasing(t.Context()))
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
			o := slotted("a", 0, slot, time.Minute)
			w := start(t, setup{ledger: h, Options: o})
			at(from - 10*time.Second)
			besides(t, w, h, end+20*time.Second)
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
				h := stepped(memory.New(memory.Options{}), from, from+lasts, off)
				o := slotted("a", 0, slot, 0)
				w := start(t, setup{ledger: h, Options: o})
				at(from - 10*time.Second)
				besides(t, w, h, from+lasts+20*time.Second)
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
			h := stepped(memory.New(memory.Options{}), from, from+lasts, -2*time.Hour)
			o := slotted("a", 0, time.Hour, 0)
			w := start(t, setup{ledger: h, Options: o})
			at(from - 20*time.Second)
			besides(t, w, h, from+10*time.Minute)
			at(7*time.Hour + 30*time.Minute)
			won := slices.ContainsFunc(observed[event.Claimed](w), func(e event.Claimed) bool { return since(e.Slot.Start) == 2*time.Hour })
			had := slices.ContainsFunc(w.history(), func(u turn) bool { return since(u.lease.Slot.Start) == 2*time.Hour })
			missed := slices.ContainsFunc(observed[event.Missed](w), func(e event.Missed) bool {
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
				must(t, c.Release(t.Context()))
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
		h := stepped(memory.New(memory.Options{}), from, ever, 300*time.Millisecond)
		o := slotted("a", 0, time.Hour, 0)
		w := start(t, setup{ledger: h, Options: o})
		start(t, setup{ledger: h, client: w.Client(), Options: workerlease.Options{WorkerType: "other", LeaseInterval: 5 * time.Second}})
		for d := from; len(observed[event.ClockJump](w)) == 0; d += 5 * time.Millisecond {
			at(d)
		}
		must(t, w.StopLeasing(t.Context()))
		if all := records(t, h); all[len(all)-1].Kind != store.KindRelease {
			t.Errorf("the newest record is %+v, want a release", all[len(all)-1])
		}
	})
}
