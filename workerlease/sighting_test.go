package workerlease_test

import (
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/memory"
	"github.com/slotlease/slotlease/testutil/faultstore"
	"github.com/slotlease/slotlease/workerlease"
)

// garbled is a ledger with a record of each worker type, and garbage above it.
func garbled(workerTypes ...string) *memory.Ledger {
	ledger := memory.New(memory.Options{})
	for _, workerType := range workerTypes {
		head := planted(6, -10*time.Minute, -5*time.Minute)
		head.WorkerType = workerType
		ledger.Put(head)
		ledger.Put(garbage(head))
	}
	return ledger
}

// sightingsIn are the sightings in a ledger, newest first.
func sightingsIn(t *testing.T, ledger *memory.Ledger) []store.Record {
	t.Helper()
	all, _, err := ledger.Tail(t.Context(), store.Sightings, 100)
	must(t, err)
	return all
}

// claimedAt is when one of the processes that live for one claim each, one after the other, gets a lease.
func claimedAt(t *testing.T, l store.Ledger, o workerlease.Options, every time.Duration) time.Duration {
	t.Helper()
	for {
		claim, err := workerlease.TryClaim(t.Context(), l, o)
		if err == nil {
			must(t, claim.Release(t.Context()))
			return since(time.Now())
		}
		if since(time.Now()) > 72*time.Hour {
			t.Fatalf("no claim in three days: %v", err)
		}
		time.Sleep(every)
	}
}

// What others do to sightings stops nobody, and shortens nobody's watch.
func TestSightingsBearWhatIsDoneToThem(t *testing.T) {
	far := planted(1, 0, 0)
	far.WorkerType, far.Kind = store.Sightings, store.KindSighting
	for name, spoil := range map[string]func(t *testing.T, l *memory.Ledger) store.Ledger{
		"nothing": func(_ *testing.T, l *memory.Ledger) store.Ledger { return l.Handle() },
		"garbage at the last key": func(_ *testing.T, l *memory.Ledger) store.Ledger {
			l.Put(store.Record{WorkerType: store.Sightings, Seq: store.MaxSeq, Defect: "garbage"})
			return l.Handle()
		},
		"many others": func(_ *testing.T, l *memory.Ledger) store.Ledger {
			for i := range int64(500) {
				other := far
				other.Seq = 1<<40 + i
				l.Put(other)
			}
			return l.Handle()
		},
		"one by a clock that was ahead": func(_ *testing.T, l *memory.Ledger) store.Ledger {
			return stepped(l.Handle(), -1, time.Minute, 2*time.Hour)
		},
		"one by a clock that was behind": func(_ *testing.T, l *memory.Ledger) store.Ledger {
			return stepped(l.Handle(), -1, time.Minute, -5*time.Minute)
		},
		"a slow store": func(t *testing.T, l *memory.Ledger) store.Ledger {
			return struck(t, l.Handle(), eachCall(faultstore.Fault{Before: 2 * time.Second}))
		},
	} {
		bubble(t, name, func(t *testing.T) {
			ledger := garbled("job")
			o := workerlease.Options{WorkerType: "job", LeaseInterval: 5 * time.Minute}
			// The record below the garbage was written ten minutes before it at the earliest.
			if got := claimedAt(t, spoil(t, ledger), o, time.Minute); got > 15*time.Minute || got < 5*time.Minute {
				t.Errorf("claimed at %v, want after about ten minutes", got)
			}
		})
	}
}

// Sightings of many types are recorded at once. Each has its own key.
func TestSightingsAreNotInEachOthersWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var types []string
		for i := range 60 {
			types = append(types, fmt.Sprint("job", i))
		}
		ledger := garbled(types...)
		claims := func() (n int) {
			var wg sync.WaitGroup
			var mu sync.Mutex
			for _, workerType := range types {
				wg.Go(func() {
					claim, err := workerlease.TryClaim(t.Context(), ledger.Handle(), workerlease.Options{WorkerType: workerType})
					if err != nil {
						return
					}
					mu.Lock()
					defer mu.Unlock()
					if n++; claim.Release(t.Context()) != nil {
						t.Error("not released")
					}
				})
			}
			wg.Wait()
			return n
		}
		if n := claims(); n != 0 {
			t.Errorf("%d types claimed at once", n)
		}
		if n := len(sightingsIn(t, ledger)); n != len(types) {
			t.Errorf("%d sightings of %d records", n, len(types))
		}
		time.Sleep(time.Hour)
		if n := claims(); n != len(types) {
			t.Errorf("%d of %d types claimed after an hour", n, len(types))
		}
	})
}

// Another record under the same key has not been seen for as long.
func TestASightingIsOfOneRecord(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ledger := garbled("job")
		o := workerlease.Options{WorkerType: "job", LeaseInterval: 5 * time.Minute}
		for i := range 30 {
			other := garbage(planted(6, 0, 0))
			other.Defect = fmt.Sprintf("the garbage of quarter %d", i/8)
			ledger.Put(other)
			if _, err := workerlease.TryClaim(t.Context(), ledger.Handle(), o); err == nil {
				t.Fatalf("claimed at %v, and no record has stood for so long", since(time.Now()))
			}
			time.Sleep(time.Minute)
		}
		if n := len(sightingsIn(t, ledger)); n != 4 {
			t.Errorf("%d sightings of 4 records", n)
		}
	})
}

// A sighting of garbage says that it is a day old, as one does by a clock that is behind. What was
// granted below the garbage a moment ago stays in force.
func TestAWrongSightingEndsNoTerm(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ledger := memory.New(memory.Options{})
		a := start(t, setup{Options: named("a", 0), ledger: ledger.Handle()})
		at(9*time.Minute + 55*time.Second)
		head := newest(t, ledger)
		ledger.Put(garbage(head))
		behind := stepped(ledger.Handle(), 0, ever, -24*time.Hour)
		if _, err := workerlease.TryClaim(t.Context(), behind, named("c", 0)); err == nil {
			t.Error("c has a lease by a clock that is a day behind")
		}
		b := start(t, setup{Options: named("b", 1), ledger: ledger.Handle()})
		at(40 * time.Minute)
		apart(t, a, b)
		if len(a.history())+len(b.history()) < 3 {
			t.Errorf("a worked at %v, b at %v", a.starts(), b.starts())
		}
	})
}
