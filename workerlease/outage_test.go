package workerlease_test

import (
	"regexp"
	"testing"
	"time"

	"github.com/slotlease/slotlease/slots"
	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/memory"
	"github.com/slotlease/slotlease/testutil/faultstore"
	"github.com/slotlease/slotlease/workerlease"
)

// electing is a store that takes no appends in some time, as while its servers elect a primary;
// if dark, it answers nothing.
func electing(t *testing.T, from, length time.Duration, dark bool) *faultstore.Ledger {
	t.Helper()
	return faulty(t, func(c faultstore.Call) faultstore.Fault {
		now := since(time.Now())
		if now < from || now >= from+length || !dark && c.Op != faultstore.OpAppend {
			return faultstore.Fault{}
		}
		return faultstore.Failure()
	})
}

// advised matches the value that would have held a lease.
var advised = regexp.MustCompile(` is \S+, and (\S+) would have held it: `)

func TestALeaseThatLapsesInAnElectionIsToldWithWhatWouldHaveHeldIt(t *testing.T) {
	for name, c := range map[string]struct {
		o            workerlease.Options
		from, length time.Duration
		set          func(o *workerlease.Options, value time.Duration) // sets what is advised
		none         bool                                              // no value holds it
	}{
		"FailoverWithin": {
			o:    workerlease.Options{LeaseInterval: 5 * time.Minute, FailoverWithin: 8 * time.Second},
			from: 6 * time.Minute, length: 12 * time.Second,
			set: func(o *workerlease.Options, d time.Duration) { o.FailoverWithin = d },
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
				o.LeaseInterval, o.FailoverWithin, o.Continuous = c.o.LeaseInterval, c.o.FailoverWithin, c.o.Continuous
				w := start(t, setup{ledger: electing(t, c.from, c.length, dark), Options: o})
				at(c.from + c.length + 6*time.Minute)
				e := observed[workerlease.Lapsed](w)
				if len(e) != 1 || !w.reported(e[0].Err) {
					t.Fatalf("Lapsed = %+v, want it once, and reported to Error", e)
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
				if err != nil {
					t.Fatal(err)
				}
				c.set(&o, value)
				w.stop(t)
				// With that value, no outage of that length ends a lease, whenever it comes.
				begun := since(time.Now())
				for shift := range 12 {
					from := begun + 10*time.Minute + time.Duration(shift)*c.o.LeaseInterval/10
					again := start(t, setup{ledger: electing(t, from, e[0].Outage, dark), Options: o})
					at(from + e[0].Outage + time.Minute)
					if e := observed[workerlease.Lapsed](again); len(e) != 0 {
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
			ledger := faulty(t, func(call faultstore.Call) faultstore.Fault {
				if now := since(time.Now()); now >= c.from && now < c.until && call.Op == faultstore.OpAppend {
					return c.fault
				}
				return faultstore.Fault{}
			})
			o := named("a", 0)
			o.Schedule, o.FailoverWithin = slots.Must(slots.Every(c.o.LeaseInterval)), c.o.FailoverWithin
			w := start(t, setup{ledger: ledger, Options: o})
			at(5 * time.Minute)
			if e := observed[workerlease.Lapsed](w); len(e) != 0 {
				t.Errorf("Lapsed = %v, want none", e[0].Err)
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
		if e := observed[workerlease.Lapsed](w); len(e) > 0 || !lost {
			t.Errorf("Lapsed = %+v, reply lost: %t, want none, and that it was", e, lost)
		}
	})
}
