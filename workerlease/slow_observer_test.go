package workerlease_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/slotlease/slotlease/store/memory"
	"github.com/slotlease/slotlease/testutil/faultstore"
	"github.com/slotlease/slotlease/workerlease"
)

// Found by the simulation: claims were sent that had been decided on long before.
func TestASlowObserverDoesNotDelayWhatWasDecided(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		inner := memory.New(memory.Options{})
		other := planted(1, 0, 5*time.Minute)
		other.Schedule = "every 1m" // It is reported in the step in which the claim is made.
		inner.Put(other)
		ledger := faultstore.NewCounter(inner)
		observer := workerlease.ObserverFunc(func(e workerlease.Event) {
			if _, ok := e.(workerlease.ScheduleMismatch); ok {
				time.Sleep(3 * time.Second)
			}
		})
		client := workerlease.NewClient(ledger, workerlease.ClientOptions{Observer: observer})
		start(t, setup{ledger: ledger, client: client})
		at(6 * time.Minute)
		var read, sent time.Time
		for _, e := range ledger.Log() {
			switch e.Op {
			case faultstore.OpTail:
				if sent.IsZero() {
					read = e.Ended
				}
			case faultstore.OpAppend:
				sent = e.Began
			default:
			}
		}
		if read.IsZero() || !sent.Equal(read) {
			t.Errorf("the claim was sent at %v, want it at %v, when the head was read", sent, read)
		}
	})
}
