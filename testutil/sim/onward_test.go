package sim_test

import (
	"maps"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/testutil/sim"
	"github.com/slotlease/slotlease/workerlease"
	"github.com/slotlease/slotlease/workerlease/event"
)

// life is when a process ran, by true time from the beginning of the run.
type life struct {
	p          *sim.Process
	born, died time.Duration
}

// onward is a run in a quiet world whose workers go on from slot to slot, each with a
// priority of its own, and what was seen of it.
type onward struct {
	*sim.Result
	o        sim.Options
	interval time.Duration
	lives    []*life
	changes  int // the most that one process heard of
	probes   int // how often all were asked for the holder
}

// goOn runs a seed. In the middle of each slot it asks all processes for the holder.
func goOn(t *testing.T, seed int64, interval time.Duration, set func(*sim.Faults), worker func(*workerlease.Options)) *onward {
	t.Helper()
	x := &onward{o: quiet(seed, interval), interval: interval}
	f := &x.o.Faults
	f.Latency, f.Skew = 10*time.Millisecond, 10*time.Millisecond
	set(f)
	inner := x.o.Worker
	x.o.Worker = func(n int) workerlease.Options {
		w := inner(n)
		w.Continuous, w.Priority = true, n
		worker(&w)
		return w
	}
	var mu sync.Mutex
	var origin time.Time
	x.o.Client = func(l store.Ledger, c workerlease.ClientOptions) *workerlease.Client {
		observer, changes := c.Observer, 0
		c.Observer = event.ObserverFunc(func(e event.Event) {
			if _, ok := e.(event.HolderChanged); ok {
				mu.Lock()
				changes++
				x.changes = max(x.changes, changes)
				mu.Unlock()
			}
			observer.Observe(e)
		})
		return workerlease.NewClient(l, c)
	}
	x.o.Callbacks = func(p *sim.Process) workerlease.Callbacks {
		mu.Lock()
		defer mu.Unlock()
		if origin.IsZero() {
			// True time, in here, and a run begins at a whole minute.
			origin = time.Now().Truncate(time.Minute)
			go x.probe(t, &mu, origin)
		}
		now := time.Since(origin)
		x.lives = append(x.lives, &life{p, now, x.o.Length})
		return sim.DefaultCallbacks(p)
	}
	x.Result = sim.Run(t, x.o)
	x.Check(t)
	return x
}

// probe looks at all processes each second, and in the middle of each slot asks them.
func (x *onward) probe(t *testing.T, mu *sync.Mutex, origin time.Time) {
	middle := x.interval / 2
	for now := time.Since(origin); now < x.o.Length-x.interval; now = time.Since(origin) {
		time.Sleep(time.Second - now%time.Second)
		mu.Lock()
		holders, told := 0, map[int64]int{}
		for _, l := range x.lives {
			w := l.p.Leasing()
			if w == nil || l.died < x.o.Length {
				continue
			}
			if gone(l.p) {
				l.died = time.Since(origin)
				continue
			}
			if w.IsHolder() {
				holders++
			}
			if h, ok := w.Holder(); ok && h.InstanceID != "" && h.From.Before(h.Until) {
				told[h.Token]++
			}
		}
		if holders > 1 {
			t.Errorf("seed %d: %d are holders at %v", x.o.Seed, holders, time.Since(origin))
		}
		if now := time.Since(origin); now%x.interval == middle && len(told) > 0 {
			x.probes++
			// Only a holder that came in this slot may be unknown to processes that looked before.
			newest := slices.Sorted(maps.Keys(told))[len(told)-1]
			if len(told) > 1 && newest < origin.Add(now-middle).UnixMilli() {
				t.Errorf("seed %d: at %v, %v are told to have the lease", x.o.Seed, now, told)
			}
		}
		mu.Unlock()
	}
}

// uncertainty bounds half the width of a worker's interval of store time: the bounds of the
// members' clocks, the way there and back, a millisecond of the stamp, and a thousandth, each
// way, of the age that a sample has by a boundary (a lead, the second to the next look, and
// the reading's own drift).
func (x *onward) uncertainty() time.Duration {
	f := x.o.Faults
	return f.Skew + f.Latency + time.Millisecond + 2*(lead(x.interval)+time.Second)/1000
}

// gap bounds the time in which no holder works when one follows another at a boundary. The old
// one stops when the end may have come, a margin before; the new one begins when the start
// must have come. Each of the two may know the time to two half widths, and timers go by a
// millisecond.
func (x *onward) gap() time.Duration {
	margin := max(min(x.interval/100, 250*time.Millisecond), 10*time.Millisecond)
	return margin + 4*x.uncertainty() + 2*time.Millisecond
}

// handovers calls f for each two holders that follow each other at a boundary.
func (x *onward) handovers(t *testing.T, f func(old, next *sim.Lease)) {
	t.Helper()
	for i, next := range x.Leases {
		if i == 0 {
			continue
		}
		old := x.Leases[i-1]
		if next.Began < old.Ended {
			t.Errorf("seed %d: %v begins before the end of %v", x.o.Seed, next, old)
		}
		if next.Start != old.End || old.Crashed || old.Why != workerlease.WindowEnded {
			continue // There was nobody for a while.
		}
		if gap := next.Began - old.Ended; gap > x.gap() {
			t.Errorf("seed %d: nobody works for %v between %v and %v, want %v at most", x.o.Seed, gap, old, next, x.gap())
		}
		f(old, next)
	}
}

func TestTheWinnerOfSuccessiveSlotsGoesOnWithoutAnEnd(t *testing.T) {
	skipUnderRace(t)
	each(t, 2, func(t *testing.T, seed int64, interval time.Duration) {
		x := goOn(t, seed, interval, func(*sim.Faults) {}, func(*workerlease.Options) {})
		// All start within a minute, so the first holder may be of any priority.
		x.handovers(t, func(old, next *sim.Lease) {
			if next.Worker >= old.Worker {
				t.Errorf("%v gives way to %v, of no higher priority", old, next)
			}
		})
		if n := len(x.Leases); n == 0 || n > x.o.Workers {
			t.Fatalf("%d leases, want one, or one more for each higher priority that came later", n)
		}
		last := x.Leases[len(x.Leases)-1]
		if want := int((x.o.Length-last.Start)/interval) - 1; last.Extensions < want {
			t.Errorf("%v was extended %d times, want at least %d", last, last.Extensions, want)
		}
		if last.Why != workerlease.Stopped {
			t.Errorf("%v ends, want it to go on to the end of the run", last)
		}
		// The change by the release of the last lease comes at the end.
		if x.changes > len(x.Leases)+1 {
			t.Errorf("a process was told %d times that the holder had changed, and it had %d times", x.changes, len(x.Leases))
		}
		if want := int(x.o.Length/interval) - 12; x.probes < min(want, 20) {
			t.Errorf("somebody held the lease in the middle of %d slots, want %d", x.probes, want)
		}
	})
}

func TestAHigherPriorityThatReturnsTakesOverAtABoundary(t *testing.T) {
	skipUnderRace(t)
	var mu sync.Mutex
	returns, longest := 0, 0.0
	t.Run("all", func(t *testing.T) {
		each(t, 2, func(t *testing.T, seed int64, interval time.Duration) {
			x := goOn(t, seed, interval, func(f *sim.Faults) { f.Restarts = 10 * time.Minute }, func(*workerlease.Options) {})
			x.handovers(t, func(old, next *sim.Lease) {
				if next.Worker > old.Worker {
					t.Errorf("seed %d: %v gives way to %v, of a lower priority", seed, old, next)
				}
				if next.Start%interval != 0 {
					t.Errorf("seed %d: %v takes over in the middle of a slot", seed, next)
				}
				mu.Lock()
				defer mu.Unlock()
				returns++
				longest = max(longest, float64(next.Began-old.Ended)/float64(x.gap()))
			})
			for _, l := range x.Leases {
				for at := l.Start - l.Start%interval + interval; at+time.Second < l.Ended; at += interval {
					if i := x.higher(l, at); i >= 0 {
						t.Errorf("seed %d: %v goes on over %v, although %v was there", seed, l, at, x.lives[i].p)
					}
				}
			}
		})
	})
	t.Logf("a higher priority returned %d times; nobody worked for %.2f × the bound, at most", returns, longest)
	if returns < 15 {
		t.Errorf("a higher priority returned %d times, want at least 15", returns)
	}
}

// higher finds a process of a higher priority than a holder's that was surely there for the
// whole time in which the slot from a boundary on could be claimed.
func (x *onward) higher(l *sim.Lease, at time.Duration) int {
	return slices.IndexFunc(x.lives, func(y *life) bool {
		return y.p.Worker < l.Worker && y.born < at-lead(x.interval)-5*time.Second && y.died > at+2*time.Second
	})
}

func TestWithNoFailbackTheHolderGoesOnForAsLongAsItLives(t *testing.T) {
	skipUnderRace(t)
	var mu sync.Mutex
	deaths, passed := 0, 0
	t.Run("all", func(t *testing.T) {
		each(t, 2, func(t *testing.T, seed int64, interval time.Duration) {
			x := goOn(t, seed, interval, func(f *sim.Faults) { f.Restarts = 20 * time.Minute },
				func(o *workerlease.Options) { o.NoFailback = true })
			mu.Lock()
			defer mu.Unlock()
			for _, l := range x.Leases {
				if !l.Crashed && l.Why != workerlease.Stopped {
					t.Errorf("seed %d: %v ends, and its process lives", seed, l)
				}
				deaths++
				for at := l.Start - l.Start%interval + interval; at+time.Second < l.Ended; at += interval {
					if x.higher(l, at) >= 0 {
						passed++
					}
				}
			}
			x.handovers(t, func(old, next *sim.Lease) {
				t.Errorf("seed %d: %v gives way to %v", seed, old, next)
			})
		})
	})
	if deaths < 20 || passed < 20 {
		t.Errorf("%d holders died, and at %d boundaries one went on beside a higher priority: want 20 of both", deaths, passed)
	}
}
