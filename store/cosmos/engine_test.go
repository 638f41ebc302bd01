package cosmos

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/testutil/cosmospeer"
	"github.com/slotlease/slotlease/workerlease"
)

// length is that of the slots. The Date header has the peer's time within some
// 2.5 s, so that work surely inside a slot needs slots that are longer.
const length = 5 * time.Second

// shift is one lease, as its worker saw it by the clock of this machine. Work was
// allowed at from or before, and at to or later; to is zero if it was over at the
// first look. So a worker that was held up isn't taken for one that works too long.
type shift struct {
	worker   string
	lease    workerlease.Lease
	from, to time.Time
}

// crew collects the shifts of all workers.
type crew struct {
	mu      sync.Mutex
	done    []shift
	stopped map[string]bool // by name
	came    chan shift
}

func newCrew() *crew { return &crew{stopped: map[string]bool{}, came: make(chan shift, 100)} }

// stop stops a worker, after which another may have what is left of its slot.
func (c *crew) stop(t *testing.T, w *workerlease.WorkerLease) {
	t.Helper()
	c.mu.Lock()
	c.stopped[w.Status().InstanceID] = true
	c.mu.Unlock()
	wantErr(t, "StopLeasing()", w.StopLeasing(within(t, patience)), nil)
}

// hire starts a worker with its own handle.
func (c *crew) hire(t *testing.T, l store.Ledger, priority int) *workerlease.WorkerLease {
	t.Helper()
	name := fmt.Sprint("worker-", priority)
	w, err := workerlease.StartLeasing(t.Context(), l,
		workerlease.Options{WorkerType: "job", InstanceID: name, Priority: priority, LeaseInterval: length},
		workerlease.Callbacks{LeaseAllocated: func(ctx context.Context, l workerlease.Lease) {
			s := shift{worker: name, lease: l, from: time.Now()}
			c.came <- s
			for ctx.Err() == nil {
				if now := time.Now(); l.Valid() {
					s.to = now
				}
				time.Sleep(5 * time.Millisecond)
			}
			c.mu.Lock()
			c.done = append(c.done, s)
			c.mu.Unlock()
		}})
	must(t, "StartLeasing()", err)
	t.Cleanup(func() { _ = w.StopLeasing(context.WithoutCancel(t.Context())) })
	return w
}

// await waits for the next shift that a condition holds for.
func (c *crew) await(t *testing.T, what string, ok func(shift) bool) shift {
	t.Helper()
	ctx := within(t, 2*patience)
	for {
		select {
		case s := <-c.came:
			if ok == nil || ok(s) {
				return s
			}
		case <-ctx.Done():
			t.Fatalf("%s: not within %v", what, 2*patience)
		}
	}
}

// check demands that the shifts are apart, in order, and each inside its slot of
// store time, which is offset ahead of this machine's clock.
func (c *crew) check(t *testing.T, offset time.Duration) {
	t.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	slices.SortFunc(c.done, func(a, b shift) int { return a.from.Compare(b.from) })
	for i, s := range c.done {
		slot := s.lease.Slot
		if slot.Start != slot.Start.Truncate(length) || slot.End.Sub(slot.Start) != length {
			t.Errorf("%s had the slot %v … %v, want one of the schedule", s.worker, slot.Start, slot.End)
		}
		if from, to := s.from.Add(offset), s.to.Add(offset); from.Before(slot.Start) || to.After(slot.End) {
			t.Errorf("%s worked %v … %v of store time, want it inside its slot, %v … %v", s.worker, from.UTC(), to.UTC(), slot.Start, slot.End)
		}
		if i == 0 {
			continue
		}
		before := c.done[i-1]
		if s.from.Before(before.to) {
			t.Errorf("%s worked from %v, while %s did until %v", s.worker, s.from, before.worker, before.to)
		}
		if cmp.Compare(s.lease.Token, before.lease.Token) <= 0 {
			t.Errorf("token %d of %s after %d of %s, want it higher", s.lease.Token, s.worker, before.lease.Token, before.worker)
		}
		if s.lease.Slot.Start.Equal(before.lease.Slot.Start) && !c.stopped[before.worker] {
			t.Errorf("the slot of %v was had by %s and by %s", slot.Start, before.worker, s.worker)
		}
	}
}

// Three workers share the slots, whatever the peer's clock says: slots are those
// of its time, and work is inside them. The one that leads stops, and another
// follows it.
func TestThreeWorkersLeadOneAtATimeInTheSlotsOfStoreTime(t *testing.T) {
	if testing.Short() {
		t.Skip("runs for seconds of real time")
	}
	t.Parallel()
	for name, offset := range map[string]time.Duration{
		"with the right clock": 0,
		"90 s late":            -90 * time.Second,
		"90 s ahead":           90 * time.Second,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			peer := cosmospeer.Start(t, cosmospeer.Options{ClockOffset: offset})
			ready(t, Options{URI: peer.URI()})
			c := newCrew()
			workers := make([]*workerlease.WorkerLease, 3)
			for i := range workers {
				workers[i] = c.hire(t, opened(t, Options{URI: peer.URI()}), i)
			}
			// Priority doesn't decide which one leads: slots this short have a lead of
			// 1.25 s, within which the turns are closer than the time is known.
			leader := c.await(t, "a slot", nil).worker
			for _, w := range workers {
				if w.Status().InstanceID == leader {
					c.stop(t, w)
				}
			}
			c.await(t, "a slot of another", func(s shift) bool { return s.worker != leader })
			for _, w := range workers {
				c.stop(t, w)
			}
			c.check(t, offset)
		})
	}
}

// A restart of the server is an outage: who works goes on, since nothing is
// written between boundaries, and the slots after it are led again. A ledger that
// was lost and made anew begins with the first record, but tokens go on growing.
func TestWorkersOutliveARestartOfTheServerAndTokensALossOfItsData(t *testing.T) {
	if testing.Short() {
		t.Skip("runs for seconds of real time")
	}
	t.Parallel()
	peer := cosmospeer.Start(t, cosmospeer.Options{})
	l := ready(t, Options{URI: peer.URI()})
	c := newCrew()
	var workers []*workerlease.WorkerLease
	for i := range 2 {
		workers = append(workers, c.hire(t, opened(t, Options{URI: peer.URI()}), i))
	}
	working := c.await(t, "a slot", nil)
	peer.Kill()
	time.Sleep(100 * time.Millisecond) // A real process, in real time.
	if !working.lease.Valid() {
		t.Error("Valid() of a lease while the server is away = false, want it to go on")
	}
	peer.Restart()
	c.await(t, "a slot after the restart", nil)

	// Everybody is between slots when the data goes: as an operator must do it.
	// Otherwise a lease of the lost ledger and one of the new could be in force.
	for _, w := range workers {
		c.stop(t, w)
	}
	peer.RestartEmpty()
	must(t, "Init()", l.Init(within(t, patience)))
	w := c.hire(t, opened(t, Options{URI: peer.URI()}), 2)
	c.await(t, "a slot of the new ledger", func(s shift) bool { return s.worker == "worker-2" })
	wantErr(t, "StopLeasing()", w.StopLeasing(within(t, patience)), nil)
	if first, err := l.Get(within(t, patience), "job", 1); err != nil || first.InstanceID != "worker-2" {
		t.Errorf("Get(job, 1) of the new ledger = %+v, %v, want the first record of worker-2", first, err)
	}
	c.check(t, 0)
}
