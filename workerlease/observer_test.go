package workerlease_test

import (
	"errors"
	"fmt"
	"log/slog"
	"reflect"
	"strings"
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

// names are the types of the events that a worker's observer got since d, but for Operated, which
// comes with each operation.
func (w *worker) names(d time.Duration) []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	var out []string
	for _, e := range w.events {
		if _, operated := e.Event.(event.Operated); e.at >= d && !operated {
			out = append(out, reflect.TypeOf(e.Event).Name())
		}
	}
	return out
}

func TestTheEventsOfASlotComeInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ledger := memory.New(memory.Options{})
		winner := start(t, setup{ledger: ledger, Options: named("winner", 0)})
		loser := start(t, setup{ledger: ledger, Options: named("loser", 1)})
		at(11 * time.Minute)
		equal(t, "events of the winner", winner.names(6*time.Minute),
			"ClockSample", "ClockSample", "Claimed", "Expired", "Returned", "Allocated")
		equal(t, "events of the loser", loser.names(6*time.Minute), "ClockSample", "ClockSample", "Lost")
		winner.stop(t)
		equal(t, "events of stopping", winner.names(11*time.Minute), "Expired", "Returned", "ClockSample", "HolderChanged", "Released")

		c := observed[event.Claimed](winner)[1]
		if c.Seq != 2 || c.Joined || since(c.Slot.Start) != 10*time.Minute || c.Token != t0.Add(10*time.Minute).UnixMilli() {
			t.Errorf("Claimed = %+v", c)
		}
		if c.Early > lead+time.Microsecond || c.Early < lead-1100*time.Microsecond {
			t.Errorf("claimed %v early, want %v less 1 ms at most", c.Early, lead)
		}
		a := observed[event.Allocated](winner)[1]
		near(t, "allocated late", a.Late, begin(10*time.Minute)-10*time.Minute)
		if u := winner.turn(t, 1).lease; a.Lease.Slot != u.Slot || a.Lease.Token != u.Token || !a.Lease.Expiry.Equal(u.Expiry) || a.Lease.InstanceID != u.InstanceID {
			t.Errorf("Allocated has %+v, want %+v", a.Lease, u)
		}
		l := observed[event.Lost](loser)[1]
		if l.Holder.InstanceID != "winner" || l.Inversion || since(l.Slot.Start) != 10*time.Minute {
			t.Errorf("Lost = %+v", l)
		}
		if e := observed[event.Expired](winner); len(e) != 2 || e[0].Why != workerlease.WindowEnded || e[1].Why != workerlease.Stopped {
			t.Errorf("Expired = %+v", e)
		}
		s := observed[event.ClockSample](winner)[0]
		if s.Server != "memory" || s.Uncertainty > time.Microsecond || s.RoundTrip != 0 || s.StoreTime.Sub(t0).Abs() > time.Microsecond {
			t.Errorf("ClockSample = %+v", s)
		}
		if s := loser.Status(); s.Lost != 2 || s.Allocated != 0 || !s.Healthy() {
			t.Errorf("loser: Lost %d, Allocated %d, healthy %v", s.Lost, s.Allocated, s.Healthy())
		}
	})
}

func TestALowerPriorityThatWonIsAnInversion(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ledger := memory.New(memory.Options{})
		start(t, setup{ledger: ledger, Options: named("low", 2)})
		at(4*time.Minute + 58*time.Second)
		high := start(t, setup{ledger: ledger, Options: named("high", 0)})
		at(6 * time.Minute)
		if e := observed[event.Lost](high); len(e) != 1 || !e[0].Inversion {
			t.Errorf("Lost = %+v, want one inversion", e)
		}
	})
}

func TestStatusShowsThePhase(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := start(t, setup{Options: named("me", 0)})
		phase := func(d time.Duration, holding bool, lease, won, contending time.Duration, text string) {
			t.Helper()
			at(d)
			s := w.Status()
			start := func(slot slots.Slot) time.Duration {
				if slot.IsZero() {
					return -1
				}
				return since(slot.Start)
			}
			if s.Holding != holding || s.Running != holding || start(s.Lease.Slot) != lease || start(s.Won) != won || start(s.Contending) != contending {
				t.Errorf("at %v: %+v, want holding %v of %v, won %v, contending for %v", d, s, holding, lease, won, contending)
			}
			if !s.Healthy() || s.WorkerType != "job" || s.InstanceID != "me" || !strings.HasPrefix(s.String(), "job: me: "+text) {
				t.Errorf("at %v: healthy %v, %q; want %q", d, s.Healthy(), s, text)
			}
			if off := s.StoreTime.Sub(time.Now()).Abs(); off > s.Uncertainty {
				t.Errorf("at %v: store time is off by %v, uncertainty %v", d, off, s.Uncertainty)
			}
		}
		const none, five, ten, fifteen = -1, 5 * time.Minute, 10 * time.Minute, 15 * time.Minute
		phase(time.Second, false, none, none, five, "waiting for [2000-01-01T00:05:00Z")
		if age := w.Status().SampleAge; age != time.Second {
			t.Errorf("SampleAge = %v, want 1s", age)
		}
		phase(5*time.Minute-time.Second, false, none, five, ten, "waiting")
		phase(6*time.Minute, true, five, none, ten, "holding [2000-01-01T00:05:00Z")
		phase(10*time.Minute-time.Second, true, five, ten, fifteen, "holding")
		phase(10*time.Minute-100*time.Millisecond, false, none, ten, fifteen, "waiting")
		phase(11*time.Minute, true, ten, none, fifteen, "holding")
		w.stop(t)
		if s := w.Status(); !s.Stopped || s.Holding || !s.Won.IsZero() || s.String() != "job: me: stopped" {
			t.Errorf("after StopLeasing: %+v, %q", s, s)
		}
	})
}

func TestATroubleOfTheStoreReachesErrorTheObserverAndTheLogger(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var logs lines
		down := errors.New("no route")
		ledger := faulty(t, nil)
		w := start(t, setup{ledger: ledger, logger: slog.New(slog.NewTextHandler(&logs, &slog.HandlerOptions{Level: slog.LevelWarn}))})
		at(6 * time.Minute)
		if w.reported(down) || logs.String() != "" {
			t.Fatalf("before the trouble: %v, %v", w.errs, &logs)
		}
		ledger.Break(faultstore.Fault{Effect: faultstore.Dropped, Err: down})
		at(11 * time.Minute)
		if !w.reported(down) || !errors.Is(w.Status().LastError, down) {
			t.Errorf("Callbacks.Error got %v, LastError is %v, want %v", w.errs, w.Status().LastError, down)
		}
		if e := observed[event.StoreFailed](w); len(e) == 0 || !errors.Is(e[0].Err, down) {
			t.Errorf("StoreFailed = %v, want one of %v", e, down)
		}
		if !strings.Contains(logs.String(), "store failed") {
			t.Errorf("the log has no line of it: %v", &logs)
		}
		ledger.Mend()
	})
}

// described is a ledger that describes itself.
type described struct {
	store.Ledger
	is store.Description
}

func (d described) Describe() store.Description { return d.is }

// The clock of one server is corrected, and later another server's clock is wrong.
func TestEachShortcomingOfTheStoreIsReportedOnce(t *testing.T) {
	bubble(t, "", func(t *testing.T) {
		begin := time.Now()
		l := described{memory.New(memory.Options{}), store.Description{Warning: func() string {
			since := time.Since(begin)
			switch int(since.Hours()) {
			case 0, 5:
				return fmt.Sprintf("the clock of db2.5m:27017 is %v ahead", 150*time.Millisecond+since/1000)
			case 2, 3:
				return "the clock of db3:27017 is 3s ahead"
			case 9:
				return fmt.Sprintf("the clock of server %d is wrong", since/time.Minute)
			}
			return ""
		}}}
		w := start(t, setup{ledger: l, Options: parted("me", 0, 0)})
		at(8 * time.Hour)
		e := observed[event.StoreWarning](w)
		if len(e) != 2 || !strings.Contains(e[0].Text, "db2.5m:27017 is 150ms") || !strings.Contains(e[1].Text, "db3:27017 is 3s") {
			t.Errorf("%d events: %v, want one for each clock that was wrong", len(e), e)
		}
		at(11 * time.Hour)
		if got := len(observed[event.StoreWarning](w)); got != 10 {
			t.Errorf("%d events after ever new ones, want 10 at most", got)
		}
	})
}

func TestWhatTheStoreAddsToItsTimeIsTold(t *testing.T) {
	bubble(t, "", func(t *testing.T) {
		w := start(t, setup{ledger: described{memory.New(memory.Options{}), store.Description{Note: func() string { return "no clock can be asked for of b" }}}, Options: parted("me", 0, 0)})
		at(time.Minute)
		samples := observed[event.ClockSample](w)
		if len(samples) == 0 {
			t.Fatal("no sample")
		}
		if note, warning := samples[0].Note, w.Status().Warning; note != "no clock can be asked for of b" || warning != "" {
			t.Errorf("its note is %q, and the warning %q, want the store's note and none", note, warning)
		}
	})
}

func TestAShortcomingOfTheStoreIsReportedOnceAndShownWhileItLasts(t *testing.T) {
	bubble(t, "", func(t *testing.T) {
		l := described{memory.New(memory.Options{}), store.Description{Warning: func() string {
			if d := time.Since(t0); d >= 10*time.Minute && d < 20*time.Minute {
				return "its clock seems wrong"
			}
			return ""
		}}}
		w := start(t, setup{ledger: l, Options: parted("me", 0, 0)})
		for _, c := range []struct {
			at     time.Duration
			shown  string
			events int
		}{{9 * time.Minute, "", 0}, {19 * time.Minute, "its clock seems wrong", 1}, {30 * time.Minute, "", 1}} {
			at(c.at)
			e := observed[event.StoreWarning](w)
			w.mu.Lock()
			errs := w.errs
			w.mu.Unlock()
			if s := w.Status(); s.Warning != c.shown || !s.Healthy() || len(e) != c.events || len(errs) != c.events {
				t.Errorf("after %v: Warning %q, healthy %v, %d events, errors %v, want %q and %d events", c.at, s.Warning, s.Healthy(), len(e), errs, c.shown, c.events)
			}
		}
	})
}
