package workerlease_test

import (
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/slotlease/slotlease/internal/race"
	"github.com/slotlease/slotlease/internal/suites"
	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/memory"
	"github.com/slotlease/slotlease/workerlease"
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

// inTurn is a ledger each second of whose stamps comes from a server whose clock is off, from a time
// on and for so long.
func inTurn(l store.Ledger, from, lasts, off time.Duration) *hooked {
	var n atomic.Int64
	return &hooked{Ledger: l, stamp: func(s *store.Stamp, _ time.Time) {
		if d := since(time.Now()) - from; d >= 0 && d < lasts && n.Add(1)%2 == 1 {
			s.Time = s.Time.Add(off)
		}
	}}
}

// For 30 s, two servers whose clocks are apart answer in turn; then one only, again. That costs
// no more than 5 min of a long slot.
func TestServersThatAnswerInTurnForSecondsCostNoSlot(t *testing.T) {
	suites.SameGoroutines(t)
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

// The same, of clocks that are further apart than the worker can decide by, and for longer than its
// lease had to go.
func TestServersThatAreFarApartInTurnCostMinutesAtMost(t *testing.T) {
	parts := []time.Duration{0, 13 * time.Second, 26 * time.Second, 39 * time.Second} // of the slot
	if race.Enabled {
		parts = parts[:1]
	}
	for _, off := range []time.Duration{24 * time.Second, time.Minute} {
		for _, lasts := range []time.Duration{45 * time.Second, 2 * time.Minute, 6 * time.Minute} {
			for _, into := range parts {
				bubble(t, fmt.Sprint(off, "/", lasts, "/", into), func(t *testing.T) {
					const slot = 12 * time.Hour
					from := 2*slot + 10*time.Minute + into
					o := named("a", 0)
					o.LeaseInterval, o.FailoverWithin = slot, time.Minute
					w := start(t, setup{ledger: inTurn(memory.New(memory.Options{}), from, lasts, off), Options: o})
					end := from + lasts
					at(end + time.Hour)
					if idle := time.Hour - held(w, end, end+time.Hour); idle > 5*time.Minute {
						t.Errorf("no lease for %v of the hour after that, want 5 min at most", idle)
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
				h := inTurn(memory.New(memory.Options{}), from, lasts, off)
				client := newClient(&worker{}, setup{ledger: h})
				start(t, setup{ledger: h, client: client, Options: workerlease.Options{WorkerType: "other", LeaseInterval: 3 * time.Second}})
				at(from + 10*time.Second)
				o := named("a", 0)
				o.LeaseInterval, o.FailoverWithin, o.JoinMidSlot = 12*time.Hour, time.Minute, true
				w := start(t, setup{ledger: h, client: client, Options: o})
				at(from + lasts + 5*time.Minute)
				if n := len(w.history()); n == 0 {
					t.Error("no lease 5 min after that")
				}
			})
		}
	}
}

// Servers that are half a part of a slot apart, or more, answer in turn for good. Workers still
// lead most of the time, and don't sample without end.
func TestServersThatAreAPartApartAreLivedWith(t *testing.T) {
	suites.SameGoroutines(t)
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

// The same in slots of 12 h, in which no slot begins soon that could be tried next. Who doesn't lead
// is not healthy.
func TestServersThatAreAPartApartAreLivedWithOrToldInLongSlots(t *testing.T) {
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
			h := inTurn(memory.New(memory.Options{}), from, 100*slot, c.off)
			h.before = func() error { reads.Add(1); return nil }
			o := named("a", 0)
			o.LeaseInterval, o.FailoverWithin = slot, c.within
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
					h := inTurn(inner.Handle(), from, 100*slot, off)
					h.before = func() error { operations.Add(1); return nil }
					o := named(name, i)
					o.LeaseInterval, o.FailoverWithin = slot, within
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

// In a fleet of mixed options, who has no FailoverWithin doesn't stand by.
func TestAWorkerThatDoesNotStandByAsksOnceASlotAlsoWhileServersAnswerInTurn(t *testing.T) {
	bubble(t, "", func(t *testing.T) {
		const slot = time.Hour
		const from, till = 2*slot + 2*time.Minute, 8 * slot
		inner := memory.New(memory.Options{})
		var operations [2]atomic.Int64
		for i, within := range []time.Duration{time.Minute, 0} {
			h := inTurn(inner.Handle(), from, 100*slot, time.Second)
			h.before = func() error { operations[i].Add(1); return nil }
			o := named([]string{"a", "b"}[i], i)
			o.LeaseInterval, o.FailoverWithin = slot, within
			start(t, setup{ledger: h, Options: o})
		}
		at(from)
		operations[1].Store(0)
		at(till)
		if n := operations[1].Load(); n > 200 {
			t.Errorf("%d operations in %v of a worker that has lost each slot, want 200 at most", n, till-from)
		}
	})
}
