package workerlease

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/slotlease/slotlease/store/memory"
	"github.com/slotlease/slotlease/workerlease/internal/machine"
)

// A lease may end before the goroutine that calls LeaseAllocated has come so far.
func TestLeaseExpiredWaitsForTheBeginningOfLeaseAllocated(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var called []string
		w := &WorkerLease{
			client: NewClient(memory.New(memory.Options{}), ClientOptions{}), base: context.WithoutCancel(t.Context()),
			callbacks: Callbacks{LeaseExpired: func(Lease, Reason) { called = append(called, "expired") }},
		}
		w.inbox.closed = true // Nobody takes in that they have returned.
		h := w.newActiveLease(machine.Term{})
		w.active.Store(h)
		w.expire(machine.WindowEnded)
		time.Sleep(time.Minute)
		synctest.Wait()
		called = append(called, "allocated")
		close(h.began)
		close(h.returned)
		synctest.Wait()
		if want := []string{"allocated", "expired"}; !slices.Equal(called, want) {
			t.Errorf("callbacks: %v, want %v", called, want)
		}
	})
}
