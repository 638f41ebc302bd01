package workerlease_test

import (
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/benbjohnson/clock"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/memory"
	"github.com/slotlease/slotlease/workerlease"
)

// A client's worker of another type learns that a server's clock is 3 s off. The running
// lease must end that much sooner, because another worker may reach only that server.
func TestAWiderSkewEndsLeasesOfOtherWorkersInTime(t *testing.T) {
	for _, boot := range []bool{false, true} {
		for _, when := range []time.Duration{12 * time.Second, 16850 * time.Millisecond, 16920 * time.Millisecond} {
			bubble(t, fmt.Sprint("boot time ", boot, ", learnt at ", when), func(t *testing.T) {
				inner := memory.New(memory.Options{})
				var skew atomic.Int64
				skew.Store(int64(100 * time.Millisecond))
				first := &hooked{Ledger: inner, stamp: func(s *store.Stamp, _ time.Time) {
					s.Skew, s.Server, s.Clock = time.Duration(skew.Load()), "p", "p"
				}}
				ahead := &hooked{Ledger: inner.Handle(), stamp: func(s *store.Stamp, _ time.Time) {
					s.Time, s.Skew, s.Server, s.Clock = s.Time.Add(2900*time.Millisecond), 100*time.Millisecond, "q", "q"
				}}
				c := clock.New()
				if boot {
					c = bootTime{c}
				}
				o := named("a", 1)
				o.LeaseInterval, o.JoinMidSlot = 10*time.Second, true
				at(10*time.Second + 700*time.Millisecond)
				a := start(t, setup{ledger: first, clock: c, Options: o})
				at(11 * time.Second)
				o = named("b", 0)
				o.LeaseInterval = 10 * time.Second
				b := start(t, setup{ledger: ahead, Options: o})
				at(when)
				skew.Store(int64(3 * time.Second))
				start(t, setup{client: a.Client(), Options: workerlease.Options{WorkerType: "other", LeaseInterval: time.Hour, JoinMidSlot: true}})
				at(19900 * time.Millisecond)
				older, newer := a.turn(t, 0), b.turn(t, 0)
				if older.ended == 0 || older.ended > newer.allocated {
					t.Errorf("a works until %v (0: it works on), b from %v: both at once", older.ended, newer.allocated)
				}
			})
		}
	}
}

// Measurements fluctuate. A lease that has just begun goes on when the skew is measured wider.
func TestASkewThatFluctuatesEndsNoLease(t *testing.T) {
	for _, to := range []time.Duration{20 * time.Millisecond, 60 * time.Millisecond, 110 * time.Millisecond} {
		bubble(t, to.String(), func(t *testing.T) {
			var skew atomic.Int64
			skew.Store(int64(5 * time.Millisecond))
			l := &hooked{Ledger: memory.New(memory.Options{}), stamp: func(s *store.Stamp, _ time.Time) {
				s.Skew, s.Clock = time.Duration(skew.Load()), "p"
			}}
			w := start(t, setup{ledger: l})
			at(5*time.Minute + 16*time.Millisecond)
			skew.Store(int64(to))
			start(t, setup{client: w.Client(), Options: workerlease.Options{WorkerType: "other", LeaseInterval: time.Hour, JoinMidSlot: true}})
			at(6 * time.Minute)
			if got := w.turn(t, 0); got.ended != 0 {
				t.Errorf("the lease ended at %v: %v", got.ended, got.why)
			}
		})
	}
}

// By a stamp that another worker of the client gets, a part of a slot ends 2.9 s sooner, and so much sooner
// its holder is to extend it.
func TestAWiderSkewLetsLeasesBeExtendedInTime(t *testing.T) {
	for _, boot := range []bool{false, true} {
		bubble(t, fmt.Sprint("boot time ", boot), func(t *testing.T) {
			var skew atomic.Int64
			skew.Store(int64(100 * time.Millisecond))
			l := &hooked{Ledger: memory.New(memory.Options{}), stamp: func(s *store.Stamp, _ time.Time) {
				s.Skew, s.Clock = time.Duration(skew.Load()), "p"
			}}
			c := clock.New()
			if boot {
				c = bootTime{c}
			}
			w := start(t, setup{ledger: l, clock: c, Options: workerlease.Options{LeaseInterval: 5 * time.Minute, FailoverWithin: 12 * time.Second}})
			at(5*time.Minute + 4*time.Second)
			skew.Store(int64(3 * time.Second))
			start(t, setup{client: w.Client(), Options: workerlease.Options{WorkerType: "other", LeaseInterval: time.Hour, JoinMidSlot: true}})
			at(6 * time.Minute)
			if got := w.turn(t, 0); got.ended != 0 {
				t.Errorf("the lease ended at %v: %v", got.ended, got.why)
			}
		})
	}
}
