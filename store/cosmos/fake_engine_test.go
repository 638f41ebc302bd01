package cosmos

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/slotlease/slotlease/workerlease"
)

// length is that of the slots. The Date header has the account's time within some
// 2.5 s, so work surely inside a slot needs slots that are longer.
const length = 5 * time.Second

// shift is one lease, as its worker saw it by the clock of its machine.
type shift struct {
	worker   string
	lease    workerlease.Lease
	from, to time.Time
}

// crew collects the shifts of all workers.
type crew struct {
	mu      sync.Mutex
	shifts  []*shift
	stopped map[string]bool // by name; another may have what is left of its slot
}

// hire starts a worker with its own handle, which the result stops.
func (c *crew) hire(t *testing.T, f *fakeAccount, name string) (stop func()) {
	t.Helper()
	w, err := workerlease.StartLeasing(t.Context(), f.open(t, Options{}),
		workerlease.Options{WorkerType: "job", InstanceID: name, LeaseInterval: length},
		workerlease.Callbacks{LeaseAllocated: func(ctx context.Context, l workerlease.Lease) {
			s := &shift{worker: name, lease: l, from: time.Now()}
			c.mu.Lock()
			c.shifts = append(c.shifts, s)
			c.mu.Unlock()
			for ; ctx.Err() == nil; time.Sleep(5 * time.Millisecond) {
				if l.Valid() {
					s.to = time.Now()
				}
			}
		}})
	if err != nil {
		t.Fatal(err)
	}
	return func() {
		t.Helper()
		if err := w.StopLeasing(within(t, time.Minute)); err != nil {
			t.Errorf("StopLeasing() = %v, want nil", err)
		}
		c.stopped[name] = true
	}
}

// last is the newest of n shifts or more.
func (c *crew) last(t *testing.T, n int) *shift {
	t.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.shifts) < n {
		t.Fatalf("%d slots were led, want %d or more", len(c.shifts), n)
	}
	return c.shifts[len(c.shifts)-1]
}

// check demands that the shifts are apart, in order, and each inside its slot of
// the account's time.
func (c *crew) check(t *testing.T, f *fakeAccount) {
	t.Helper()
	for i, s := range c.shifts {
		slot := s.lease.Slot
		if slot.Start != slot.Start.Truncate(length) || slot.End.Sub(slot.Start) != length {
			t.Errorf("%s had the slot %v … %v, want one of the schedule", s.worker, slot.Start, slot.End)
		}
		if from, to := s.from.Add(f.ahead), s.to.Add(f.ahead); from.Before(slot.Start) || to.After(slot.End) || !to.After(from) {
			t.Errorf("%s worked %v … %v of the account's time, want it inside its slot, %v … %v", s.worker, from, to, slot.Start, slot.End)
		}
		if i == 0 {
			continue
		}
		before := c.shifts[i-1]
		if s.from.Before(before.to) || s.lease.Token <= before.lease.Token {
			t.Errorf("%s worked from %v with token %d, after %s until %v with token %d", s.worker, s.from, s.lease.Token, before.worker, before.to, before.lease.Token)
		}
		if s.lease.Slot.Start.Equal(before.lease.Slot.Start) && !c.stopped[before.worker] {
			t.Errorf("the slot of %v was had by %s and by %s", slot.Start, before.worker, s.worker)
		}
	}
}

// Three workers share the slots, whatever the account's clock says. The one that
// leads stops, and another follows it.
func TestThreeWorkersLeadOneAtATimeInTheSlotsOfTheAccountsTime(t *testing.T) {
	for _, ahead := range []time.Duration{0, -90 * time.Second, 90 * time.Second} {
		t.Run(fmt.Sprint("ahead by ", ahead), inBubble(func(t *testing.T) {
			f := newFake()
			f.ahead, f.timeless = ahead, true
			c := &crew{stopped: map[string]bool{}}
			stop := map[string]func(){}
			for _, name := range []string{"a", "b", "c"} {
				stop[name] = c.hire(t, f, name)
			}
			time.Sleep(4 * length)
			leader := c.last(t, 3).worker
			stop[leader]()
			n := len(c.shifts)
			time.Sleep(4 * length)
			if s := c.last(t, n+3); s.worker == leader {
				t.Errorf("%s leads, but it was stopped", leader)
			}
			for _, stop := range stop {
				stop()
			}
			c.check(t, f)
		}))
	}
}

// An outage ends no lease, since nothing is written between boundaries. A ledger
// that was lost and made anew begins with the first record, but tokens go on growing.
func TestWorkersOutliveAnOutageAndTokensALossOfTheData(t *testing.T) {
	inBubble(func(t *testing.T) {
		f := newFake()
		f.timeless = true
		c := &crew{stopped: map[string]bool{}}
		stop := []func(){c.hire(t, f, "a"), c.hire(t, f, "b")}
		time.Sleep(3*length + length/2)
		f.set(func() { f.hook = func(*fakeRequest) *http.Response { return hangUp } })
		working := c.last(t, 1)
		time.Sleep(100 * time.Millisecond)
		if !working.lease.Valid() {
			t.Error("Valid() of a lease while the account is away = false, want it to go on")
		}
		f.set(func() { f.hook = nil })
		n := len(c.shifts)
		time.Sleep(3 * length)
		c.last(t, n+2)

		// Everybody is between slots when the data goes: as an operator must do it.
		// Otherwise a lease of the lost ledger and one of the new could be in force.
		for _, stop := range stop {
			stop()
		}
		f.set(func() { f.container = nil; clear(f.items) })
		l := f.open(t, Options{})
		if err := l.Init(within(t, time.Minute)); err != nil {
			t.Fatalf("Init() = %v, want nil", err)
		}
		n = len(c.shifts)
		last := c.hire(t, f, "c")
		time.Sleep(3 * length)
		c.last(t, n+1)
		last()
		if first, err := l.Get(within(t, time.Minute), "job", 1); err != nil || first.InstanceID != "c" {
			t.Errorf("Get(job, 1) of the new ledger = %+v, %v, want the first record of c", first, err)
		}
		c.check(t, f)
	})(t)
}
