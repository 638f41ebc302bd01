package workerlease_test

import (
	"testing"
	"time"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/memory"
	"github.com/slotlease/slotlease/workerlease"
)

// warning is a ledger that warns, from some time on, until another.
type warning struct {
	store.Ledger

	from, until time.Time
}

func (w warning) Warning() string {
	if now := time.Now(); now.Before(w.from) || !now.Before(w.until) {
		return ""
	}
	return "its clock seems wrong"
}

// noting is a ledger that has something to say of its stamps.
type noting struct{ store.Ledger }

func (noting) Note() string { return "no clock can be asked for of b" }

func TestWhatTheStoreAddsToItsTimeIsTold(t *testing.T) {
	bubble(t, "", func(t *testing.T) {
		w := start(t, setup{ledger: noting{memory.New(memory.Options{})}, Options: parted("me", 0, 0)})
		at(time.Minute)
		samples := observed[workerlease.ClockSample](w)
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
		begin := time.Now()
		l := warning{memory.New(memory.Options{}), begin.Add(10 * time.Minute), begin.Add(20 * time.Minute)}
		w := start(t, setup{ledger: l, Options: parted("me", 0, 0)})
		for _, c := range []struct {
			at     time.Duration
			shown  string
			events int
		}{{9 * time.Minute, "", 0}, {19 * time.Minute, "its clock seems wrong", 1}, {30 * time.Minute, "", 1}} {
			at(c.at)
			e := observed[workerlease.StoreWarning](w)
			w.mu.Lock()
			errs := w.errs
			w.mu.Unlock()
			if s := w.Status(); s.Warning != c.shown || !s.Healthy() || len(e) != c.events || len(errs) != c.events {
				t.Errorf("after %v: Warning %q, healthy %v, %d events, errors %v, want %q and %d events", c.at, s.Warning, s.Healthy(), len(e), errs, c.shown, c.events)
			}
		}
	})
}
