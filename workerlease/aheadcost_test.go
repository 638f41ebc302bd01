package workerlease_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/slotlease/slotlease/slots"
	"github.com/slotlease/slotlease/testutil/faultstore"
	"github.com/slotlease/slotlease/workerlease"
)

// officeHours has slots of 5 min from 9 to 18 o'clock, the last of which lasts until the next morning.
func officeHours(t *testing.T) slots.Schedule {
	t.Helper()
	s, err := slots.Cron("*/5 9-17 * * *", "")
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// A slot that is much longer than the one after it isn't far ahead: nothing is asked of the store in it.
func TestALongSlotBeforeShortOnesCostsNoSamples(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		asked := 0
		ledger := faulty(t, func(c faultstore.Call) faultstore.Fault {
			if since(time.Now()) > 18*time.Hour {
				asked++
			}
			return faultstore.Fault{}
		})
		w := start(t, setup{ledger: ledger, Options: workerlease.Options{Schedule: officeHours(t)}, work: func(_ context.Context, l workerlease.Lease) {
			if l.Slot.Length() > time.Hour {
				panic("it needs a short slot")
			}
		}})
		at(32*time.Hour + 30*time.Minute)
		if u := w.history(); u[len(u)-1].why != workerlease.Panicked {
			t.Fatalf("the last lease: %+v, want that of the night, ended by its code", u[len(u)-1])
		}
		if asked > 0 {
			t.Errorf("the store was called %d times in the night, want not at all", asked)
		}
	})
}
