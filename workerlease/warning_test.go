package workerlease_test

import (
	"fmt"
	"strings"
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

// changing is a ledger whose warning changes with time.
type changing struct {
	store.Ledger

	text func() string
}

func (c changing) Warning() string { return c.text() }

// The clock of one server is corrected, and later another server's clock is wrong.
func TestEachShortcomingOfTheStoreIsReportedOnce(t *testing.T) {
	bubble(t, "", func(t *testing.T) {
		begin := time.Now()
		l := changing{memory.New(memory.Options{}), func() string {
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
		}}
		w := start(t, setup{ledger: l, Options: parted("me", 0, 0)})
		at(8 * time.Hour)
		e := observed[workerlease.StoreWarning](w)
		if len(e) != 2 || !strings.Contains(e[0].Text, "db2.5m:27017 is 150ms") || !strings.Contains(e[1].Text, "db3:27017 is 3s") {
			t.Errorf("%d events: %v, want one for each clock that was wrong", len(e), e)
		}
		at(11 * time.Hour)
		if got := len(observed[workerlease.StoreWarning](w)); got != 10 {
			t.Errorf("%d events after ever new ones, want 10 at most", got)
		}
	})
}

// noting is a ledger with a note on its stamps.
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
