package workerlease_test

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/benbjohnson/clock"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/memory"
	"github.com/slotlease/slotlease/testutil/faultstore"
	"github.com/slotlease/slotlease/workerlease"
	"github.com/slotlease/slotlease/workerlease/event"
)

// vague is a ledger whose servers' clocks may be apart by so much, for all that is known;
// and that which answers is, by off.
func vague(l store.Ledger, skew, off time.Duration) store.Ledger {
	return &hooked{Ledger: l, stamp: func(s *store.Stamp, _ time.Time) { s.Time, s.Skew = s.Time.Add(off), skew }}
}

func TestWindowsTooShortForTheUncertaintyAreReportedOnce(t *testing.T) {
	const ms = time.Millisecond
	for name, test := range map[string]struct {
		slot, d, skew time.Duration
		works         bool
		text          []string // nil: nothing is reported
	}{
		"parts of the least length":   {time.Second, 80 * ms, 100 * ms, false, []string{"FailoverWithin is 80ms", "uncertain by ±100ms", "8 × that and 4 × Margin (848ms)"}},
		"parts of the uncertainty":    {time.Second, 200 * ms, 100 * ms, false, []string{"FailoverWithin is 200ms", "uncertain by ±100ms", "8 × that and 4 × Margin (848ms)"}},
		"parts for work, not for all": {time.Second, 500 * ms, 100 * ms, true, []string{"FailoverWithin is 500ms", "(848ms)"}},
		"parts that do":               {5 * time.Second, 850 * ms, 80 * ms, true, nil},
		"slots":                       {time.Second, 0, 600 * ms, false, []string{"the shortest slot is 1s", "uncertain by ±600ms", "2 × that and Margin (1.212s)"}},
		"slots that do":               {time.Second, 0, 400 * ms, true, nil},
	} {
		bubble(t, name, func(t *testing.T) {
			o := slotted("me", 0, test.slot, test.d)
			w := start(t, setup{ledger: vague(memory.New(memory.Options{}), test.skew, 0), Options: o})
			at(time.Minute)
			if n := len(w.history()); (n > 0) != test.works {
				t.Errorf("%d leases, want some: %v", n, test.works)
			}
			e := observed[event.TooUncertain](w)
			if test.text == nil {
				if len(e) != 0 || w.Status().LastError != nil {
					t.Errorf("observed %v, LastError %v, want nothing", e, w.Status().LastError)
				}
				return
			}
			if len(e) != 1 || len(w.errs) != 1 || w.errs[0] != e[0].Err || w.Status().LastError != e[0].Err {
				t.Fatalf("observed %v, Callbacks.Error of %v, LastError %v, want the same once", e, w.errs, w.Status().LastError)
			}
			if d := e[0].Uncertainty - test.skew; d < 0 || d > 5*ms {
				t.Errorf("Uncertainty = %v, want %v", e[0].Uncertainty, test.skew)
			}
			for _, want := range test.text {
				if text := e[0].Err.Error(); !strings.Contains(text, want) || strings.Contains(text, "\n") {
					t.Errorf("the error has no %q: %s", want, text)
				}
			}
		})
	}
}

// The clock of a store is the Date of HTTP replies. With the least that it admits the worker doesn't complain, though its first samples are only as good as a Date.
func TestWhatTheFloorOfAStoreAdmitsIsNotCalledTooLittle(t *testing.T) {
	const ms = time.Millisecond
	for name, of := range map[string]struct{ age, floor, least time.Duration }{
		"etcd": {0, 5200 * ms, 6300 * ms},
		"S3":   {time.Second, 9200 * ms, 11 * time.Second},
	} {
		for off := time.Duration(0); off < time.Second; off += 100 * ms {
			bubble(t, fmt.Sprint(name, "/", off), func(t *testing.T) {
				time.Sleep(off)
				o := slotted("me", 0, time.Minute, of.least)
				w := start(t, setup{Options: o, ledger: described{&hooked{Ledger: memory.New(memory.Options{}), stamp: func(s *store.Stamp, _ time.Time) {
					s.Time, s.Granularity, s.MaxAge, s.Skew = s.Time.Truncate(time.Second), time.Second, of.age, 250*ms
				}}, store.Description{FailoverFloor: of.floor}}})
				at(20 * time.Minute)
				if e := observed[event.TooUncertain](w); len(e) != 0 {
					t.Errorf("observed %v", e[0].Err)
				}
				if n := len(w.history()); n < 19 {
					t.Errorf("%d leases in 20 min, want one in each slot", n)
				}
			})
		}
	}
}

func TestOneAnswerThatComesLateIsNoUncertainty(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ledger := faulty(t, once(faultstore.OpNow, 1, faultstore.Fault{After: 4 * time.Second}))
		w := start(t, setup{ledger: ledger, Options: parted("me", 0, 10*time.Second)})
		at(11 * time.Minute)
		if s := observed[event.ClockSample](w)[0]; s.Uncertainty < 2*time.Second {
			t.Fatalf("the first sample's uncertainty is %v, want 2 s", s.Uncertainty)
		}
		if e := observed[event.TooUncertain](w); len(e) != 0 {
			t.Errorf("observed %v", e[0].Err)
		}
	})
}

// The rule that TooUncertain reports is enough.
func TestAStandbyTakesOverWithTheLeastFailoverWithinForTheUncertainty(t *testing.T) {
	const d, skew, slot = 900 * time.Millisecond, 100 * time.Millisecond, 10 * time.Second
	for dies := slot + 100*time.Millisecond; dies < 2*slot-3*d; dies += 470 * time.Millisecond {
		synctest.Test(t, func(t *testing.T) {
			inner, link := cut(t)
			o := parted("first", 0, d)
			o.LeaseInterval, o.Margin = slot, 10*time.Millisecond
			first := start(t, setup{ledger: vague(link, skew, 0), Options: o})
			o.InstanceID, o.Priority = "second", 1
			second := start(t, setup{ledger: vague(inner.Handle(), skew, 0), Options: o})
			at(dies)
			link.Break(faultstore.Down())
			at(2*slot + slot/2)
			const turn = 2 * (skew + 10*time.Millisecond)
			if u := second.turn(t, 0); u.allocated > dies+d+4*skew+turn {
				t.Errorf("dead at %v: allocated at %v, want by %v", dies, u.allocated, dies+d+4*skew+turn)
			}
			if e := observed[event.TooUncertain](second); len(e) != 0 {
				t.Errorf("observed %v", e[0].Err)
			}
			apart(t, first, second)
		})
	}
}

// misstamped is a ledger of which one Tail has a wrong stamp: that which is asked for first when a reading of the
// bubble's clock has come.
type misstamped struct {
	store.Ledger

	from, by time.Duration
	struck   bool
}

func (l *misstamped) Tail(ctx context.Context, workerType string, limit int) ([]store.Record, store.Stamp, error) {
	records, stamp, err := l.Ledger.Tail(ctx, workerType, limit)
	if !l.struck && time.Since(t0) >= l.from {
		l.struck, stamp.Time = true, stamp.Time.Add(l.by)
	}
	return records, stamp, err
}

// The look that shows that another worker has the slot turns the bid to the next one, by a time whose middle is
// far ahead until more samples have come.
func TestAWrongStampAsTheSlotIsLostBenchesNobody(t *testing.T) {
	for _, by := range []time.Duration{7 * time.Minute, 90 * time.Minute, -90 * time.Minute, 26 * time.Hour, 30 * 365 * 24 * time.Hour} {
		bubble(t, fmt.Sprint(by), func(t *testing.T) {
			m := memory.New(memory.Options{})
			favourite := start(t, setup{ledger: m, Options: workerlease.Options{InstanceID: "favourite"}})
			other := start(t, setup{ledger: &misstamped{Ledger: m.Handle(), from: 9 * time.Minute, by: by}, Options: workerlease.Options{InstanceID: "other", Priority: 1}})
			at(12 * time.Minute)
			if e := observed[event.ClockJump](other); len(e) != 2 || e[1].Verdict != event.AnswerDropped {
				t.Fatalf("ClockJump events = %+v, want one in question, and that the answer was wrong", e)
			}
			favourite.stop(t)
			at(26 * time.Minute)
			equal(t, "slots of the other", other.starts(), minutes(15, 20, 25)...)
		})
	}
}

// What it has won by a clock that is gone lies a day ahead by the one that is wrong, and it waits for that.
func TestAWrongClockThatIsPutRightKeepsNobodyFromContending(t *testing.T) {
	for _, by := range []time.Duration{-26 * time.Hour, -3 * time.Hour, -40 * time.Minute, 40 * time.Minute, 26 * time.Hour} {
		for _, workers := range []int{1, 3} {
			bubble(t, fmt.Sprintf("%v, %d workers", by, workers), func(t *testing.T) {
				ledger := faulty(t, nil)
				var all []*worker
				for i := range workers {
					all = append(all, start(t, setup{ledger: ledger, Options: workerlease.Options{InstanceID: fmt.Sprint("w", i)}}))
				}
				at(31 * time.Minute)
				ledger.Shift(by, "")
				at(42 * time.Minute)
				ledger.Shift(0, "")
				at(2 * time.Hour)
				turns := turnsOf(all...)
				if last := turns[len(turns)-1].allocated; last < 2*time.Hour-10*time.Minute {
					t.Errorf("the last lease began at %v, want one of the newest slots", last)
				}
				for _, w := range all {
					if s := w.Status(); s.SampleAge > 10*time.Minute {
						t.Errorf("%s: the newest sample is %v old, want that it looks at each slot", w.Status().InstanceID, s.SampleAge)
					}
				}
			})
		}
	}
}

// A client's worker of another type learns that a server's clock is 3 s off. The running
// lease must end that much sooner, because another worker may reach only that server.
func TestAWiderSkewEndsLeasesOfOtherWorkersInTime(t *testing.T) {
	for _, boot := range []bool{false, true} {
		for _, when := range []time.Duration{12 * time.Second, 16850 * time.Millisecond, 16920 * time.Millisecond} {
			bubble(t, fmt.Sprint("boot time ", boot, ", learnt at ", when), func(t *testing.T) {
				inner := memory.New(memory.Options{})
				var skew atomic.Int64
				skew.Store(int64(100 * time.Millisecond))
				first := &hooked{Ledger: inner, stamp: func(s *store.Stamp, _ time.Time) {
					s.Skew, s.Server, s.Clock = time.Duration(skew.Load()), "p", "p"
				}}
				ahead := &hooked{Ledger: inner.Handle(), stamp: func(s *store.Stamp, _ time.Time) {
					s.Time, s.Skew, s.Server, s.Clock = s.Time.Add(2900*time.Millisecond), 100*time.Millisecond, "q", "q"
				}}
				c := clock.New()
				if boot {
					c = bootTime{c}
				}
				o := slotted("a", 1, 10*time.Second, 0)
				at(10*time.Second + 700*time.Millisecond)
				a := start(t, setup{ledger: first, clock: c, joins: true, Options: o})
				at(11 * time.Second)
				o = named("b", 0)
				o.LeaseInterval = 10 * time.Second
				b := start(t, setup{ledger: ahead, Options: o})
				at(when)
				skew.Store(int64(3 * time.Second))
				start(t, setup{client: a.Client(), joins: true, Options: workerlease.Options{WorkerType: "other", LeaseInterval: time.Hour, Lead: 10 * time.Millisecond}})
				at(19900 * time.Millisecond)
				older, newer := a.turn(t, 0), b.turn(t, 0)
				if older.ended == 0 || older.ended > newer.allocated {
					t.Errorf("a works until %v (0: it works on), b from %v: both at once", older.ended, newer.allocated)
				}
			})
		}
	}
}

// Another worker of the client gets a stamp by which the skew is wider. Measurements fluctuate, so a lease that has just begun goes on.
// If a part of a slot ends 2.9 s sooner by that, its holder is to extend it so much sooner.
func TestAWiderSkewEndsNoLeaseThatHasJustBegunOrCanBeExtended(t *testing.T) {
	const ms = time.Millisecond
	for _, c := range []struct {
		within, learnt time.Duration // FailoverWithin, and how long after the boundary
		from, to       time.Duration
		boot           bool
	}{
		{0, 16 * ms, 5 * ms, 20 * ms, false},
		{0, 16 * ms, 5 * ms, 60 * ms, false},
		{0, 16 * ms, 5 * ms, 110 * ms, false},
		{12 * time.Second, 4 * time.Second, 100 * ms, 3 * time.Second, false},
		{12 * time.Second, 4 * time.Second, 100 * ms, 3 * time.Second, true},
	} {
		bubble(t, fmt.Sprint(c.to, ", boot time ", c.boot), func(t *testing.T) {
			var skew atomic.Int64
			skew.Store(int64(c.from))
			l := &hooked{Ledger: memory.New(memory.Options{}), stamp: func(s *store.Stamp, _ time.Time) {
				s.Skew, s.Clock = time.Duration(skew.Load()), "p"
			}}
			local := clock.New()
			if c.boot {
				local = bootTime{local}
			}
			w := start(t, setup{ledger: l, clock: local, Options: parted("a", 0, c.within)})
			at(5*time.Minute + c.learnt)
			skew.Store(int64(c.to))
			start(t, setup{client: w.Client(), joins: true, Options: workerlease.Options{WorkerType: "other", LeaseInterval: time.Hour, Lead: 10 * ms}})
			at(6 * time.Minute)
			if got := w.turn(t, 0); got.ended != 0 {
				t.Errorf("the lease ended at %v: %v", got.ended, got.why)
			}
		})
	}
}
