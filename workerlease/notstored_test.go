package workerlease_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/testutil/faultstore"
	"github.com/slotlease/slotlease/workerlease"
)

// denied is a refusal to append of which the store knows that it did nothing.
var denied = faultstore.Fault{Effect: faultstore.Dropped, Err: fmt.Errorf("%w: insert (%w)", store.ErrDenied, store.ErrNotStored)}

func TestAnAppendThatIsSurelyNotStoredIsNoUnknownOutcome(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		granted := 16 * time.Minute
		ledger := faultstore.NewCounter(faulty(t, func(c faultstore.Call) faultstore.Fault {
			if c.Op == faultstore.OpAppend && since(time.Now()) < granted {
				return denied
			}
			return faultstore.Fault{}
		}))
		w := start(t, setup{ledger: ledger})
		at(granted)
		if n := len(observed[workerlease.Unknown](w)); n != 0 {
			t.Errorf("%d Unknown events, want none", n)
		}
		failed := observed[workerlease.StoreFailed](w)
		if len(failed) == 0 || failed[0].Operation != "append" || !w.reported(store.ErrDenied) {
			t.Errorf("StoreFailed = %+v, want the append, also reported to Error", failed)
		}
		for _, e := range ledger.Log() {
			if e.Op == faultstore.OpGet {
				t.Errorf("a record was read back at %v, although nothing was stored", since(e.Began))
			}
		}
		missed := observed[workerlease.Missed](w)
		if len(missed) != 2 {
			t.Errorf("%d slots missed, want 2", len(missed))
		}
		for _, e := range missed {
			if e.Why != workerlease.Denied {
				t.Errorf("slot %v missed: %s, want %s", e.Slot, e.Why, workerlease.Denied)
			}
		}
		if w.Status().Healthy() {
			t.Error("a worker that may not append looks healthy")
		}
		at(26 * time.Minute)
		equal(t, "slots once the right is granted", w.starts(), minutes(15, 20, 25)...)
	})
}

// A slot that passes while the store answers isn't reported as missed because it was unreachable.
func TestASlotIsMissedForWhatTheStoreAnswers(t *testing.T) {
	for name, c := range map[string]struct {
		op  faultstore.Op
		err error
		why workerlease.Reason
	}{
		"a validator keeps records out":        {faultstore.OpAppend, fmt.Errorf("%w (%w)", store.ErrRefused, store.ErrNotStored), workerlease.Refused},
		"refused, and maybe stored":            {faultstore.OpAppend, store.ErrRefused, workerlease.Refused},
		"nothing was stored, for some reason":  {faultstore.OpAppend, store.ErrNotStored, workerlease.Refused},
		"no connection to append":              {faultstore.OpAppend, fmt.Errorf("%w (%w)", &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}, store.ErrNotStored), workerlease.Unreachable},
		"no host to append to":                 {faultstore.OpAppend, fmt.Errorf("%w (%w)", &net.DNSError{Err: "no such host"}, store.ErrNotStored), workerlease.Unreachable},
		"no time to connect for an append":     {faultstore.OpAppend, fmt.Errorf("%w (%w)", context.DeadlineExceeded, store.ErrNotStored), workerlease.Unreachable},
		"a connection ends before an append":   {faultstore.OpAppend, fmt.Errorf("%w (%w)", io.EOF, store.ErrNotStored), workerlease.Unreachable},
		"no connection to ask for the time":    {faultstore.OpNow, fmt.Errorf("%w (%w)", io.EOF, store.ErrNotStored), workerlease.Unreachable},
		"no connection to read":                {faultstore.OpTail, fmt.Errorf("%w (%w)", io.EOF, store.ErrNotStored), workerlease.Unreachable},
		"reads are refused":                    {faultstore.OpTail, store.ErrRefused, workerlease.Refused},
		"the time is refused":                  {faultstore.OpNow, store.ErrRefused, workerlease.Refused},
		"the ledger isn't there":               {faultstore.OpTail, store.ErrMissing, workerlease.Refused},
		"reads are denied":                     {faultstore.OpTail, store.ErrDenied, workerlease.Denied},
		"the store can't be reached to read":   {faultstore.OpTail, io.EOF, workerlease.Unreachable},
		"the store can't be reached to append": {faultstore.OpAppend, io.EOF, workerlease.Unreachable},
		"the store has too much to do":         {faultstore.OpAppend, store.ErrThrottled, workerlease.Unreachable},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := start(t, setup{ledger: faulty(t, func(f faultstore.Call) faultstore.Fault {
					if f.Op == c.op && since(time.Now()) > 6*time.Minute && since(time.Now()) < 16*time.Minute {
						return faultstore.Fault{Effect: faultstore.Dropped, Err: c.err}
					}
					return faultstore.Fault{}
				})})
				at(21 * time.Minute)
				missed := observed[workerlease.Missed](w)
				if len(missed) == 0 {
					t.Error("no slot missed")
				}
				for _, e := range missed {
					if e.Why != c.why {
						t.Errorf("slot %v missed: %s, want %s", e.Slot, e.Why, c.why)
					}
				}
			})
		})
	}
}

func TestARefusalOfARepeatedAppendSaysNothingOfTheFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		late := faultstore.LandsLate(150 * time.Millisecond)
		ledger := faulty(t, func(c faultstore.Call) faultstore.Fault {
			switch {
			case c.Op == faultstore.OpAppend && c.N == 2:
				return late
			case c.Op == faultstore.OpAppend && c.N == 3:
				return denied
			}
			return faultstore.Fault{}
		})
		w := start(t, setup{ledger: ledger, Options: named("a", 0)})
		at(16 * time.Minute)
		equal(t, "slots", w.starts(), minutes(5, 10, 15)...)
		if n := len(observed[workerlease.Unknown](w)); n != 2 {
			t.Errorf("%d Unknown events, want one for the append and one for its repetition", n)
		}
		equal(t, "holders", holders(t, ledger), "a", "a", "a")
	})
}
