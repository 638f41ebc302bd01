package workerlease_test

import (
	"cmp"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/memory"
	"github.com/slotlease/slotlease/workerlease"
)

// stamps is a ledger whose stamps are changed on the way, each by the number that it has
// among all stamps; and that counts its reads.
func stamps(change func(n int, s *store.Stamp)) (_ *hooked, reads *atomic.Int64) {
	n, reads := 0, new(atomic.Int64)
	var mu sync.Mutex // Several workers may call at once.
	h := &hooked{Ledger: memory.New(memory.Options{})}
	h.stamp = func(s *store.Stamp, _ time.Time) {
		mu.Lock()
		defer mu.Unlock()
		change(n, s)
		n++
	}
	h.before = func() error { reads.Add(1); return nil }
	return h, reads
}

// A single wrong stamp costs one slot at most, however wrong it is, of the workers that
// run and of those that start soon after.
func TestALoneWrongStampCostsOneSlotAtMost(t *testing.T) {
	for _, off := range []time.Duration{-time.Second, -time.Hour, -24 * time.Hour, -25 * 365 * 24 * time.Hour, time.Second, time.Hour, 24 * time.Hour} {
		bubble(t, fmt.Sprint(off), func(t *testing.T) {
			var wrong atomic.Bool
			h, _ := stamps(func(_ int, s *store.Stamp) {
				if wrong.CompareAndSwap(true, false) {
					s.Time = s.Time.Add(off)
				}
			})
			all := &worker{}
			client := newClient(all, setup{ledger: h})
			w := start(t, setup{client: client, ledger: h})
			at(31 * time.Minute)
			wrong.Store(true) // It comes when claims for 35m open.
			at(36 * time.Minute)
			late := start(t, setup{client: client, ledger: h, Options: workerlease.Options{WorkerType: "late"}})
			at(51 * time.Minute)
			missed := 0
			for _, m := range observed[workerlease.Missed](all) {
				if since(m.Slot.Start) >= 30*time.Minute {
					missed++
				}
			}
			if starts := w.starts(); missed > 1 || starts[len(starts)-1] != 50*time.Minute {
				t.Errorf("slots %v, %d of them missed; want one missed at most, and that of 50m", starts, missed)
			}
			equal(t, "slots of a worker that starts after it", late.starts(), minutes(40, 45, 50)...)
			e := observed[workerlease.ClockJump](all)
			if len(e) == 0 || e[0].Verdict != workerlease.ClockInQuestion || e[len(e)-1].Verdict != workerlease.AnswerDropped {
				t.Errorf("ClockJump events = %+v, want the contradiction, and that it was dropped", e)
			}
		})
	}
}

// A client whose very first stamp is wrong neither works at a wrong time nor claims.
func TestAWrongFirstStampIsNotActedOn(t *testing.T) {
	for _, off := range []time.Duration{-24 * time.Hour, -3 * time.Minute, 3 * time.Minute, time.Hour, 24 * time.Hour} {
		bubble(t, fmt.Sprint(off), func(t *testing.T) {
			h, _ := stamps(func(n int, s *store.Stamp) {
				if n == 0 {
					s.Time = s.Time.Add(off)
				}
			})
			at(time.Minute)
			w := start(t, setup{ledger: h, Options: workerlease.Options{JoinMidSlot: true}})
			at(11 * time.Minute)
			equal(t, "slots", w.starts(), minutes(0, 5, 10)...)
			if began := w.turn(t, 0).allocated; began > 70*time.Second {
				t.Errorf("began at %v, want it within 10 s of its start", began)
			}
		})
	}
}

// The store's clock is wrong for a while, or from then on. The fleet leads again within a
// slot and five minutes: of the beginning if it stays so, else of the end.
func TestAFleetLeadsAgainWithinASlotAndFiveMinutesOfAWrongClock(t *testing.T) {
	const from = 31 * time.Minute
	for _, c := range []struct{ off, lasts time.Duration }{
		{-30 * time.Second, 30 * time.Minute},
		{-8 * time.Minute, 30 * time.Minute},
		{-2 * time.Hour, 30 * time.Minute},
		{-24 * time.Hour, 30 * time.Minute},
		{8 * time.Minute, 30 * time.Minute},
		{24 * time.Hour, 30 * time.Minute},
		{-8 * time.Minute, 0},
		{-12 * time.Minute, 0},
		{-time.Hour, 0},
		{-2 * time.Hour, 0},
		{-26 * time.Hour, 0},
		{2 * time.Hour, 0},
	} {
		bubble(t, fmt.Sprintf("%v for %v", c.off, c.lasts), func(t *testing.T) {
			h, reads := stamps(func(_ int, s *store.Stamp) {
				if now := time.Since(t0); now > from && (c.lasts == 0 || now < from+c.lasts) {
					s.Time = s.Time.Add(c.off)
				}
			})
			fleet := []*worker{start(t, setup{ledger: h}), start(t, setup{ledger: h})}
			end := from + c.lasts
			at(from)
			reads.Store(0)
			if c.lasts == 0 {
				end += 4 * time.Minute // Claims for 35m open: it is noticed.
			}
			at(end + time.Minute)
			if s := fleet[0].Status(); c.lasts == 0 && c.off < 0 && (s.Healthy() || s.Blocked == "") {
				t.Errorf("status %v, want it blocked", s)
			}
			at(end + 15*time.Minute)
			if s := fleet[0].Status(); !s.Healthy() {
				t.Errorf("status %v, want it healthy again", s)
			}
			newest := time.Duration(0)
			for _, w := range fleet {
				for _, u := range w.history() {
					newest = max(newest, u.allocated)
				}
			}
			if newest < end {
				t.Errorf("the newest lease began at %v; want one after %v", newest, end)
			}
			if most := int(2*(end+15*time.Minute-from).Seconds()) * len(fleet); int(reads.Load()) > most {
				t.Errorf("%d operations, want %d at most", reads.Load(), most)
			}
		})
	}
}

// Servers that answer in turn, and whose clocks agree as far as they say, are one clock.
// Those that contradict one another leave the time as uncertain as they are apart.
func TestServersThatAnswerInTurnCostNoSlot(t *testing.T) {
	for _, apart := range []time.Duration{0, 20 * time.Millisecond, 300 * time.Millisecond, -time.Second} {
		bubble(t, fmt.Sprint(apart), func(t *testing.T) {
			h, reads := stamps(func(n int, s *store.Stamp) {
				s.Skew, s.Server = 10*time.Millisecond, fmt.Sprint("server ", n%2)
				s.Time = s.Time.Add(time.Duration(n%2) * apart)
			})
			w := start(t, setup{ledger: h})
			at(61 * time.Minute)
			if starts := w.starts(); len(starts) < 12 {
				t.Errorf("slots %v, want all 12 of an hour", starts)
			}
			if reads.Load() > 100 {
				t.Errorf("%d operations in an hour, want no more than usual", reads.Load())
			}
			if got, most := w.Status().Uncertainty, 150*time.Millisecond+apart.Abs(); got > most {
				t.Errorf("uncertainty = %v, want at most %v", got, most)
			}
		})
	}
}

// The store's clock steps. A holder that doesn't know it yet goes on by the old clock, and
// extends its lease by that. A standby that knows works only when that is over.
func TestNobodyWorksBesideAHolderThatHasNotNoticedAStepOfTheStoresClock(t *testing.T) {
	for from := 6 * time.Minute; from < 7*time.Minute+30*time.Second; from += 3 * time.Second {
		bubble(t, fmt.Sprint(from), func(t *testing.T) {
			h, _ := stamps(func(_ int, s *store.Stamp) {
				if time.Since(t0) > from {
					s.Time = s.Time.Add(13*time.Minute + 30*time.Second)
				}
			})
			var fleet []*worker
			for i, name := range []string{"a", "b", "c"} {
				o := named(name, i)
				o.FailoverWithin, o.Continuous = 20*time.Second, true
				fleet = append(fleet, start(t, setup{ledger: h, Options: o}))
			}
			at(20 * time.Minute)
			var all []turn
			for _, w := range fleet {
				all = append(all, w.history()...)
			}
			slices.SortFunc(all, func(a, b turn) int { return cmp.Compare(a.allocated, b.allocated) })
			for i := 1; i < len(all); i++ {
				if a, b := all[i-1], all[i]; a.ended == 0 || b.allocated < a.ended {
					t.Errorf("%s works from %v on, and %s up to %v", b.lease.InstanceID, b.allocated, a.lease.InstanceID, a.ended)
				}
			}
			if len(all) < 2 {
				t.Errorf("%d leases, want one after the step", len(all))
			}
		})
	}
}
