package workerlease_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/memory"
	"github.com/slotlease/slotlease/workerlease"
)

// garbage is what can't be read, right above a record.
func garbage(below store.Record) store.Record {
	return store.Record{WorkerType: below.WorkerType, Seq: below.Seq + 1, Defect: "not a record"}
}

// A process that claims once, and ends, has nothing in which to remember since when it has
// seen poison. Once no such process ever had a lease again.
func TestPoisonClearsAlsoIfNoWorkerLivesForLong(t *testing.T) {
	for name, test := range map[string]struct {
		interval, every time.Duration
		most            time.Duration
	}{
		"one claim a minute":             {5 * time.Minute, time.Minute, 11 * time.Minute},
		"a slot of a day, and one a day": {24 * time.Hour, 24 * time.Hour, 72 * time.Hour},
	} {
		bubble(t, name, func(t *testing.T) {
			ledger := memory.New(memory.Options{})
			head := planted(6, -10*time.Minute, -5*time.Minute)
			ledger.Put(head)
			ledger.Put(garbage(head))
			o := workerlease.Options{WorkerType: "job", LeaseInterval: test.interval}
			for {
				claim, err := workerlease.TryClaim(t.Context(), ledger.Handle(), o)
				if err == nil {
					if err := claim.Release(t.Context()); err != nil {
						t.Errorf("Release() = %v", err)
					}
					return
				}
				if since(time.Now()) > test.most {
					t.Fatalf("no claim %v after the poison: %v; the ledger has %+v", test.most, err, records(t, ledger))
				}
				time.Sleep(test.every)
			}
		})
	}
}

// b can't read what a writes, as in a rolling upgrade, and resets the ledger above each of
// a's records. a has all slots that it would have.
func TestAResetByAWorkerThatCanNotReadStopsNobodyWhoCan(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ledger := memory.New(memory.Options{})
		a := start(t, setup{Options: named("a", 0), ledger: ledger.Handle()})
		b := start(t, setup{Options: named("b", 1), ledger: stranger(ledger.Handle(), 1, func(r *store.Record) {
			*r = store.Record{WorkerType: r.WorkerType, Seq: r.Seq, Defect: "written in another way"}
		})})
		at(61 * time.Minute)
		apart(t, a, b)
		if n := len(a.history()); n != 12 || len(b.history()) > 0 {
			t.Errorf("a had %d slots of 12, in %v, and b %v", n, a.starts(), b.starts())
		}
		resets := 0
		for _, r := range records(t, ledger) {
			if r.Kind == store.KindReset {
				resets++
			}
		}
		if told := len(observed[workerlease.Poison](a)); resets == 0 || told == 0 || told > resets {
			t.Errorf("b has reset the ledger %d times, and a was told of %d", resets, told)
		}
	})
}

// While a reset stands ahead, Status says until when.
func TestStatusSaysWhenPoisonIsSuperseded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ledger := memory.New(memory.Options{})
		head := planted(6, -10*time.Minute, -5*time.Minute)
		ledger.Put(head)
		ledger.Put(garbage(head))
		w := start(t, setup{ledger: ledger})
		at(6 * time.Minute)
		reset := newest(t, ledger)
		if e := observed[workerlease.PoisonReset](w); len(e) != 1 || !e[0].AsOf.Equal(reset.WindowEnd) || reset.Kind != store.KindReset {
			t.Fatalf("PoisonReset events = %+v, want one as of the end of %+v", e, reset)
		}
		want := "record 8 resets the ledger, which could not be obeyed, as of " + store.Format(reset.WindowEnd)
		if s := w.Status(); s.Blocked != want || s.Healthy() {
			t.Errorf("Status().Blocked = %q, Healthy() = %v, want %q", s.Blocked, s.Healthy(), want)
		}
		at(since(reset.WindowEnd) + 10*time.Minute)
		if s := w.Status(); s.Blocked != "" || !s.Healthy() {
			t.Errorf("Status().Blocked = %q, Healthy() = %v after %v, want neither", s.Blocked, s.Healthy(), reset.WindowEnd)
		}
	})
}
