package machine_test

import (
	"testing"
	"time"

	"github.com/slotlease/slotlease/workerlease/internal/machine"
)

// resting is a worker that has held the lease since a minute, and will go on with it.
func resting(t *testing.T) *world {
	t.Helper()
	w := newWorld(plain())
	w.m.Continuous = true
	if calls := w.tell(t, 6*time.Minute, 0).again; len(calls) > 0 || !w.live {
		t.Fatalf("before its code has rested: called again at %v, live %v", calls, w.live)
	}
	return w
}

func TestCodeThatRestsIsCalledAgainOnceWhenTheNextSlotBegins(t *testing.T) {
	w := resting(t)
	slot := w.local.Truncate(5 * time.Minute)
	must(t, w.event(machine.Rested{}))
	calls := w.tell(t, slot+12*time.Minute, 0).again
	if len(calls) != 1 || calls[0] < slot+5*time.Minute || calls[0] > slot+5*time.Minute+10*time.Millisecond {
		t.Errorf("called again at %v, want once, at %v", calls, slot+5*time.Minute)
	}
}

// The code returned at the very end of its lease, and the next one begins anew: it is
// called for that, and not again as well.
func TestCodeThatRestsWhenItsLeaseHasEndedIsNotCalledAgain(t *testing.T) {
	w := resting(t)
	w.local = w.local.Truncate(5*time.Minute) + 5*time.Minute // Nothing was extended meanwhile.
	must(t, w.event(machine.Wake{}))
	if w.live {
		t.Fatal("the lease is held after its end")
	}
	must(t, w.event(machine.Rested{}))
	if calls := w.tell(t, w.local+20*time.Minute, 0).again; len(calls) > 0 || !w.live {
		t.Errorf("called again at %v, want never; live %v, want a new lease", calls, w.live)
	}
}
