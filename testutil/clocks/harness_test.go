package clocks_test

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/benbjohnson/clock"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/testutil/clocks"
	"github.com/slotlease/slotlease/workerlease"
)

// t0 is a boundary of every schedule used here, and when bubbles begin.
var t0 = time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)

// diary is what a worker's callbacks wrote down, as "what minute:second". It
// has no other synchronisation than its mutex: it is read right after Advance.
type diary struct {
	now     func() time.Time
	mu      sync.Mutex
	entries []string
}

func (d *diary) write(what string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	at := d.now().Sub(t0).Round(time.Second)
	d.entries = append(d.entries, fmt.Sprintf("%s %d:%02d", what, at/time.Minute, at%time.Minute/time.Second))
}

// check compares the entries since the last check.
func (d *diary) check(t *testing.T, want ...string) {
	t.Helper()
	d.mu.Lock()
	defer d.mu.Unlock()
	if !slices.Equal(d.entries, want) {
		t.Errorf("the callbacks wrote %q, want %q", d.entries, want)
	}
	d.entries = nil
}

// blocking are callbacks of which one blocks until the context ends, and the
// other one until the first has returned.
func (d *diary) blocking() workerlease.Callbacks {
	returned := make(chan struct{})
	return workerlease.Callbacks{
		LeaseAllocated: func(ctx context.Context, _ workerlease.Lease) {
			d.write("allocated")
			<-ctx.Done()
			d.write("cancelled")
			returned <- struct{}{}
		},
		LeaseExpired: func(workerlease.Lease, workerlease.Reason) {
			<-returned
			d.write("expired")
		},
	}
}

// starting are callbacks that start work and return, and stop it at expiry.
func (d *diary) starting() workerlease.Callbacks {
	return workerlease.Callbacks{
		LeaseAllocated: func(context.Context, workerlease.Lease) { d.write("allocated") },
		LeaseExpired:   func(workerlease.Lease, workerlease.Reason) { d.write("expired") },
	}
}

func start(t *testing.T, c *workerlease.Client, o workerlease.Options, cb workerlease.Callbacks) *workerlease.WorkerLease {
	t.Helper()
	if o.WorkerType == "" {
		o.WorkerType = "job"
	}
	w, err := c.StartLeasing(context.Background(), o, cb)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := w.StopLeasing(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return w
}

// holders are the instances of the records of "job", oldest first.
func holders(t *testing.T, l store.Ledger) []string {
	t.Helper()
	records, _, err := l.Tail(context.Background(), "job", 1000)
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, r := range slices.Backward(records) {
		if r.Kind == store.KindGrant {
			out = append(out, r.InstanceID)
		}
	}
	return out
}

// failing is a T that takes down its failure.
type failing struct{ text string }

func (f *failing) Helper() {}

func (f *failing) Fatalf(format string, args ...any) {
	f.text = fmt.Sprintf(format, args...)
	runtime.Goexit()
}

// failure is how f fails.
func failure(f func(clocks.T)) string {
	var t failing
	var wg sync.WaitGroup
	wg.Go(func() { f(&t) })
	wg.Wait()
	return t.text
}

// bootClock is a clock with boot time.
type bootClock interface {
	clock.Clock
	Boottime() time.Duration
}
