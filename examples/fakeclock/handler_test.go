package fakeclock

import (
	"context"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/slotlease/slotlease/store/memory"
	"github.com/slotlease/slotlease/testutil/clocks"
	"github.com/slotlease/slotlease/workerlease"
)

func TestPollerPollsOnlyWhileItHoldsTheLease(t *testing.T) {
	noon := time.Date(2026, time.March, 2, 12, 0, 0, 0, time.UTC)
	f := clocks.NewFake(noon)
	ledger := memory.New(memory.Options{Clock: f}) // its time is what counts

	// The code under test writes down when it polls, and with which token.
	var polls record
	p := &Poller{Clock: f, Every: 2 * time.Minute, Poll: func(_ context.Context, token int64) {
		polls.add(f.Now().Format("15:04") + " token " + time.UnixMilli(token).UTC().Format("15:04"))
	}}
	ours := lease(t, f, ledger, workerlease.Options{InstanceID: "ours", Priority: 1}, p.Callbacks())

	f.AdvanceTo(t, noon.Add(4*time.Minute))
	polls.expect(t) // it waits for the boundary

	f.AdvanceTo(t, noon.Add(8*time.Minute))
	polls.expect(t, "12:07 token 12:05") // the win
	if s := ours.Status(); !s.Holding {
		t.Errorf("at 12:08, the status is %q, want one that holds the lease", s)
	}

	// A rival with a higher priority starts in mid-slot. It gets the next one.
	rival := lease(t, f, ledger, workerlease.Options{InstanceID: "rival"}, workerlease.Callbacks{
		LeaseAllocated: func(context.Context, workerlease.Lease) { polls.add("the rival's slot") },
	})
	f.AdvanceTo(t, noon.Add(14*time.Minute))
	polls.expect(t, "12:09 token 12:05", "the rival's slot") // the expiry, and the loss
	if s := ours.Status(); s.Holding || s.Lost != 1 {
		t.Errorf("at 12:14, the status is %q with %d slots lost, want one lost and none held", s, s.Lost)
	}

	// The rival leaves, and the next slot is ours again, with a higher token.
	if err := rival.StopLeasing(t.Context()); err != nil {
		t.Fatal(err)
	}
	f.AdvanceTo(t, noon.Add(18*time.Minute))
	polls.expect(t, "12:17 token 12:15")

	if err := ours.StopLeasing(t.Context()); err != nil {
		t.Fatal(err)
	}
	f.Advance(t, time.Hour)
	polls.expect(t)
}

// lease starts a worker as the program would, but on the fake clock.
func lease(t *testing.T, f *clocks.Fake, ledger *memory.Ledger, o workerlease.Options, cb workerlease.Callbacks) *workerlease.WorkerLease {
	t.Helper()
	o.WorkerType, o.LeaseInterval = "prices", 5*time.Minute
	w, err := f.NewClient(ledger, workerlease.ClientOptions{}).StartLeasing(t.Context(), o, cb)
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// record is what happened since it was last looked at.
type record struct {
	mu      sync.Mutex
	entries []string
}

func (r *record) add(entry string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.entries = append(r.entries, entry)
}

func (r *record) expect(t *testing.T, want ...string) {
	t.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	if !slices.Equal(r.entries, want) {
		t.Errorf("happened %q, want %q", r.entries, want)
	}
	r.entries = nil
}
