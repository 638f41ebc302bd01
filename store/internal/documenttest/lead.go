package documenttest

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/workerlease"
)

// leadTime bounds how long workers may take for two slots.
const leadTime = 2 * time.Minute

// shift is the work of a worker in a slot, by the clock of this machine, which is the server's.
type shift struct {
	worker   string
	lease    workerlease.Lease
	from, to time.Time
}

// Lead lets two workers, with a ledger of open's each, work for two slots: inside them, and one at a time. The clock of
// the ledgers' server must be this machine's. It returns how uncertain of the time the workers were.
func Lead(t *testing.T, slot time.Duration, open func() store.Ledger) time.Duration {
	t.Helper()
	var mu sync.Mutex
	var shifts []shift
	var uncertain time.Duration
	enough := make(chan struct{}, 100)
	for i := range 2 {
		name := fmt.Sprint("worker-", i)
		var w *workerlease.WorkerLease
		var err error
		began := make(chan struct{})
		w, err = workerlease.StartLeasing(t.Context(), open(),
			workerlease.Options{WorkerType: "job", InstanceID: name, LeaseInterval: slot},
			workerlease.Callbacks{LeaseAllocated: func(ctx context.Context, l workerlease.Lease) {
				<-began
				s := shift{worker: name, lease: l, from: time.Now()}
				for ctx.Err() == nil {
					if now := time.Now(); l.Valid() {
						s.to = now
					}
					time.Sleep(5 * time.Millisecond)
				}
				mu.Lock()
				defer mu.Unlock()
				shifts = append(shifts, s)
				uncertain = max(uncertain, w.Status().Uncertainty)
				enough <- struct{}{}
			}})
		Must(t, "StartLeasing()", err)
		close(began)
		t.Cleanup(func() { _ = w.StopLeasing(context.WithoutCancel(t.Context())) })
	}
	ctx := Within(t, leadTime)
	for range 2 {
		select {
		case <-enough:
		case <-ctx.Done():
			t.Fatalf("no two slots within %v", leadTime)
		}
	}
	mu.Lock()
	defer mu.Unlock()
	for i, s := range shifts {
		if s.from.Before(s.lease.Slot.Start) || s.to.After(s.lease.Slot.End) {
			t.Errorf("%s worked %v … %v, want it inside its slot, %v … %v", s.worker, s.from.UTC(), s.to.UTC(), s.lease.Slot.Start, s.lease.Slot.End)
		}
		if i > 0 && s.from.Before(shifts[i-1].to) {
			t.Errorf("%s worked from %v, while %s did until %v", s.worker, s.from, shifts[i-1].worker, shifts[i-1].to)
		}
		t.Logf("%s worked %v of %v", s.worker, s.to.Sub(s.from).Round(time.Millisecond), slot)
	}
	t.Logf("store time was known within ±%v", uncertain)
	return uncertain
}
