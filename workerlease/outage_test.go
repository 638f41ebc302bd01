package workerlease_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/slotlease/slotlease/slots"
	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/memory"
	"github.com/slotlease/slotlease/testutil/faultstore"
	"github.com/slotlease/slotlease/workerlease"
	"github.com/slotlease/slotlease/workerlease/event"
)

// early is how many leases have ended before their slots.
func early(w *worker) (n int) {
	for _, e := range observed[event.Expired](w) {
		if e.Early {
			n++
		}
	}
	return n
}

// electing is a store that takes no appends in some time, as while its servers elect a primary;
// if dark, it answers nothing.
func electing(t *testing.T, from, length time.Duration, dark bool) *faultstore.Ledger {
	t.Helper()
	if dark {
		return faulty(t, during(from, from+length, faultstore.Failure()))
	}
	return faulty(t, during(from, from+length, faultstore.Failure(), faultstore.OpAppend))
}

// advised matches the value that would have held a lease.
var advised = regexp.MustCompile(` is \S+, and (\S+) would have held it: `)

func TestALeaseThatLapsesInAnElectionIsToldWithWhatWouldHaveHeldIt(t *testing.T) {
	for name, c := range map[string]struct {
		o            workerlease.Options
		from, length time.Duration
		set          func(o *workerlease.Options, value time.Duration) // sets what is advised
		task         workerlease.Task
		none         bool // no value holds it
	}{
		"FailoverWithin": {
			o:    workerlease.Options{LeaseInterval: 5 * time.Minute, FailoverWithin: 8 * time.Second},
			from: 6 * time.Minute, length: 12 * time.Second,
			set: func(o *workerlease.Options, d time.Duration) { o.FailoverWithin = d },
		},
		"FailoverWithin, in a run that goes on into later slots": {
			o:    workerlease.Options{LeaseInterval: 5 * time.Minute, FailoverWithin: 8 * time.Second, Job: &workerlease.Job{}},
			from: 11 * time.Minute, length: 12 * time.Second,
			set:  func(o *workerlease.Options, d time.Duration) { o.FailoverWithin = d },
			task: func(ctx context.Context, _ workerlease.Lease) error { <-ctx.Done(); return context.Cause(ctx) },
		},
		"FailoverWithin, and slots that are too short for more": {
			o:    workerlease.Options{LeaseInterval: 20 * time.Second, FailoverWithin: 4 * time.Second},
			from: 66 * time.Second, length: 8 * time.Second, none: true,
		},
		"Continuous": {
			o:    workerlease.Options{LeaseInterval: 2 * time.Minute, Continuous: true},
			from: 6*time.Minute - 11*time.Second, length: 15 * time.Second,
			set: func(o *workerlease.Options, d time.Duration) { o.Lead = d },
		},
	} {
		for _, dark := range []bool{false, true} {
			bubble(t, name+map[bool]string{true: ", dark"}[dark], func(t *testing.T) {
				o := named("a", 0)
				o.LeaseInterval, o.FailoverWithin, o.Continuous, o.Job = c.o.LeaseInterval, c.o.FailoverWithin, c.o.Continuous, c.o.Job
				w := start(t, setup{ledger: electing(t, c.from, c.length, dark), Options: o, task: c.task})
				at(c.from + c.length + 6*time.Minute)
				e := observed[event.Lapsed](w)
				if len(e) != 1 || c.task == nil && !w.reported(e[0].Err) {
					t.Fatalf("Lapsed = %+v, want it once, and reported to Error", e)
				}
				if n := early(w); (n == 1) != (c.o.FailoverWithin > 0) {
					t.Errorf("%d leases ended before their slots", n)
				}
				if got := e[0].Outage; got < c.length-6*time.Second || got > c.length+6*time.Second {
					t.Errorf("Lapsed after an outage of about %v, want %v", got, c.length)
				}
				m := advised.FindStringSubmatch(e[0].Err.Error())
				if (m == nil) != c.none {
					t.Fatalf("Lapsed: %v: names a value: %v, want %v", e[0].Err, m != nil, !c.none)
				}
				if c.none {
					return
				}
				value, err := time.ParseDuration(m[1])
				must(t, err)
				c.set(&o, value)
				w.stop(t)
				// With that value, no outage of that length ends a lease, whenever it comes.
				begun := since(time.Now())
				for shift := range 12 {
					from := begun + 10*time.Minute + time.Duration(shift)*c.o.LeaseInterval/10
					if rest := c.o.LeaseInterval - from%c.o.LeaseInterval; c.task != nil && rest < e[0].Outage+time.Minute {
						continue // A run is held over a boundary by Lead, too.
					}
					again := start(t, setup{ledger: electing(t, from, e[0].Outage, dark), Options: o, task: c.task})
					at(from + e[0].Outage + time.Minute)
					if e := observed[event.Lapsed](again); len(e) != 0 {
						t.Errorf("with %v, an outage at %v ended a lease: %v", value, from, e[0].Err)
					}
					again.stop(t)
					begun = since(time.Now())
				}
			})
		}
	}
}

func TestALeaseThatEndsForOtherReasonsIsNoLapse(t *testing.T) {
	whole := workerlease.Options{LeaseInterval: time.Minute}
	parts := workerlease.Options{LeaseInterval: time.Minute, FailoverWithin: 20 * time.Second}
	for name, c := range map[string]struct {
		o     workerlease.Options
		fault faultstore.Fault
		from  time.Duration
		until time.Duration
	}{
		"a slot that is over":         {whole, faultstore.Failure(), 110 * time.Second, 130 * time.Second},
		"a short outage":              {parts, faultstore.Failure(), 85 * time.Second, 88 * time.Second},
		"no outage":                   {parts, faultstore.Fault{}, 0, time.Hour},
		"rights that were taken away": {parts, faultstore.Fault{Effect: faultstore.Dropped, Err: store.ErrDenied}, 85 * time.Second, 110 * time.Second},
	} {
		bubble(t, name, func(t *testing.T) {
			ledger := faulty(t, during(c.from, c.until, c.fault, faultstore.OpAppend))
			o := named("a", 0)
			o.Schedule, o.FailoverWithin = slots.Must(slots.Every(c.o.LeaseInterval)), c.o.FailoverWithin
			w := start(t, setup{ledger: ledger, Options: o})
			at(5 * time.Minute)
			if e := observed[event.Lapsed](w); len(e) != 0 {
				t.Errorf("Lapsed = %v, want none", e[0].Err)
			}
			if n := early(w); n > 0 && c.fault.Err != store.ErrDenied {
				t.Errorf("%d leases ended before their slots", n)
			}
			if len(w.starts()) == 0 {
				t.Error("no lease at all")
			}
		})
	}
}

// The reply to an extension is lost, and nothing else: the store was not down when another worker of a
// higher priority takes the next slot.
func TestALeaseThatAnotherTakesOverHasNotLapsed(t *testing.T) {
	bubble(t, "", func(t *testing.T) {
		inner := memory.New(memory.Options{})
		lost := false
		l := struck(t, inner.Handle(), func(c faultstore.Call) faultstore.Fault {
			if c.Op != faultstore.OpAppend || lost || since(time.Now()) < 15*time.Minute {
				return faultstore.Fault{}
			}
			lost = true
			return faultstore.LostReply()
		})
		o := named("a", 1)
		o.LeaseInterval, o.Continuous = 10*time.Minute, true
		w := start(t, setup{ledger: l, Options: o})
		at(21 * time.Minute)
		o.InstanceID, o.Priority = "b", 0
		rival := start(t, setup{ledger: inner.Handle(), Options: o})
		at(45 * time.Minute)
		rival.stop(t)
		at(80 * time.Minute)
		if e := observed[event.Lapsed](w); len(e) > 0 || !lost {
			t.Errorf("Lapsed = %+v, reply lost: %t, want none, and that it was", e, lost)
		}
	})
}

// denied is a refusal to append of which the store knows that it did nothing.
var denied = faultstore.Fault{Effect: faultstore.Dropped, Err: fmt.Errorf("%w: insert (%w)", store.ErrDenied, store.ErrNotStored)}

func TestAnAppendThatIsSurelyNotStoredIsNoUnknownOutcome(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		granted := 16 * time.Minute
		ledger := faultstore.NewCounter(faulty(t, during(0, granted, denied, faultstore.OpAppend)))
		w := start(t, setup{ledger: ledger})
		at(granted)
		if n := len(observed[event.Unknown](w)); n != 0 {
			t.Errorf("%d Unknown events, want none", n)
		}
		failed := observed[event.StoreFailed](w)
		if len(failed) == 0 || failed[0].Operation != "append" || !w.reported(store.ErrDenied) {
			t.Errorf("StoreFailed = %+v, want the append, also reported to Error", failed)
		}
		for _, e := range ledger.Log() {
			if e.Op == faultstore.OpGet {
				t.Errorf("a record was read back at %v, although nothing was stored", since(e.Began))
			}
		}
		missed := observed[event.Missed](w)
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
		bubble(t, name, func(t *testing.T) {
			fault := faultstore.Fault{Effect: faultstore.Dropped, Err: c.err}
			w := start(t, setup{ledger: faulty(t, during(6*time.Minute, 16*time.Minute, fault, c.op))})
			at(21 * time.Minute)
			missed := observed[event.Missed](w)
			if len(missed) == 0 {
				t.Error("no slot missed")
			}
			for _, e := range missed {
				if e.Why != c.why {
					t.Errorf("slot %v missed: %s, want %s", e.Slot, e.Why, c.why)
				}
			}
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
		if n := len(observed[event.Unknown](w)); n != 2 {
			t.Errorf("%d Unknown events, want one for the append and one for its repetition", n)
		}
		equal(t, "holders", holders(t, ledger), "a", "a", "a")
	})
}

// starved is an error of a store whose pool has no connection.
type starved struct{ error }

func (starved) Starved() bool { return true }

// Longer leases don't help a worker whose application keeps all connections.
func TestALeaseThatEndsForWantOfAConnectionIsNoMatterOfOptions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		full := faultstore.Fault{Effect: faultstore.Dropped, Err: fmt.Errorf("%w: append (%w)", starved{errors.New("its MaxConns is 1, and all are in use")}, store.ErrNotStored)}
		o := slotted("a", 0, time.Minute, 20*time.Second)
		w := start(t, setup{ledger: faulty(t, during(85*time.Second, 110*time.Second, full, faultstore.OpAppend)), Options: o})
		at(5 * time.Minute)
		told := observed[event.Lapsed](w)
		if len(told) != 1 || !strings.Contains(told[0].Err.Error(), "its MaxConns is 1") || strings.Contains(told[0].Err.Error(), "FailoverWithin") {
			t.Errorf("Lapsed = %+v, want one that names the pool, and no option", told)
		}
	})
}
