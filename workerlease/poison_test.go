package workerlease_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/memory"
	"github.com/slotlease/slotlease/workerlease"
	"github.com/slotlease/slotlease/workerlease/event"
)

// garbage is what can't be read, right above a record.
func garbage(below store.Record) store.Record {
	return store.Record{WorkerType: below.WorkerType, Seq: below.Seq + 1, Defect: "not a record"}
}

// A process that claims once, and ends, can't remember since when it has seen poison. Without
// sightings no such process ever had a lease again.
func TestPoisonClearsAlsoIfNoWorkerLivesForLong(t *testing.T) {
	for name, test := range map[string]struct {
		interval, every time.Duration
		most            time.Duration
	}{
		"one claim a minute":             {5 * time.Minute, time.Minute, 11*time.Minute + time.Second},
		"a slot of a day, and one a day": {24 * time.Hour, 24 * time.Hour, 72*time.Hour + time.Second},
	} {
		bubble(t, name, func(t *testing.T) {
			ledger := garbled("job")
			at := claimedAt(t, ledger.Handle(), workerlease.Options{WorkerType: "job", LeaseInterval: test.interval}, test.every)
			if n := len(sightingsIn(t, ledger)); n != 1 {
				t.Errorf("%d sightings of one record", n)
			}
			if least := test.interval + 5*time.Minute; at < least || at > test.most {
				t.Errorf("claimed after %v, want it between %v, when somebody could have acted on it, and %v", at, least, test.most)
			}
		})
	}
}

// b can't read every other record of a, as in a rolling upgrade. That costs a nothing, and sightings
// stay few.
func TestAWorkerThatCanNotReadStopsNobodyWhoCan(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ledger := memory.New(memory.Options{})
		a := start(t, setup{Options: named("a", 0), ledger: ledger.Handle()})
		b := start(t, setup{Options: named("b", 1), ledger: stranger(ledger.Handle(), 2, func(r *store.Record) {
			*r = store.Record{WorkerType: r.WorkerType, Seq: r.Seq, Defect: "written in another way"}
		})})
		at(61 * time.Minute)
		apart(t, a, b)
		if n := len(a.history()); n != 12 || len(b.history()) > 0 {
			t.Errorf("a had %d slots of 12, in %v, and b %v", n, a.starts(), b.starts())
		}
		for _, r := range records(t, ledger) {
			if r.InstanceID == "b" {
				t.Errorf("b has appended %+v", r)
			}
		}
		if n := len(sightingsIn(t, ledger)); n == 0 || n > 6 {
			t.Errorf("%d sightings of 6 records", n)
		}
	})
}

// What is too far ahead is so by a clock, which may be wrong, and wrong for the next process, too.
func TestSightingsOfWhatIsFarAheadCountForNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ledger := memory.New(memory.Options{})
		ledger.Put(planted(6, -10*time.Minute, -5*time.Minute))
		far := planted(7, 365*24*time.Hour, 366*24*time.Hour)
		far.Claim = "4567"
		ledger.Put(far)
		o := workerlease.Options{WorkerType: "job", LeaseInterval: 5 * time.Minute}
		for range 20 {
			if _, err := workerlease.TryClaim(t.Context(), ledger.Handle(), o); err == nil {
				t.Fatalf("claimed at %v, and nobody has watched for so long", since(time.Now()))
			}
			time.Sleep(time.Minute)
		}
		if all := sightingsIn(t, ledger); len(all) != 0 {
			t.Errorf("sightings: %+v", all)
		}
	})
}

// A reset that is copied, or says that it was written long ago, ends nothing that is in force,
// and one far ahead stops nobody for so long. Workers once took its word for what had been poison.
func TestAForeignResetNeitherEndsATermNorBlocks(t *testing.T) {
	for name, change := range map[string]func(r *store.Record, now time.Time){
		"copied": func(r *store.Record, now time.Time) {
			r.ReadAt = now.Add(-24 * time.Hour)
			r.WindowStart, r.Token = r.ReadAt, r.ReadAt.UnixMilli()
		},
		"read long ago":    func(r *store.Record, now time.Time) { r.ReadAt = now.Add(-24 * time.Hour) },
		"read a while ago": func(r *store.Record, now time.Time) { r.ReadAt = now.Add(-14 * time.Minute) },
		"read at no time":  func(r *store.Record, _ time.Time) { r.ReadAt = time.Time{} },
		"far ahead":        func(r *store.Record, now time.Time) { r.WindowStart = now.AddDate(0, 0, 300) },
		"far ahead, old": func(r *store.Record, now time.Time) {
			r.WindowStart, r.ReadAt = now.AddDate(0, 0, 300), now.AddDate(0, 0, -1)
		},
		"far ahead, unknown": func(r *store.Record, now time.Time) { r.WindowStart, r.ReadAt = now.AddDate(0, 0, 300), time.Time{} },
		"read far ahead": func(r *store.Record, now time.Time) {
			r.WindowStart, r.ReadAt = now.AddDate(0, 0, 300), now.AddDate(0, 0, 300)
		},
	} {
		bubble(t, name, func(t *testing.T) {
			ledger := memory.New(memory.Options{})
			long := slotted("a", 0, time.Hour, 0)
			a := start(t, setup{Options: long, joins: true, ledger: ledger.Handle()})
			at(2 * time.Minute)
			head := newest(t, ledger)
			at(3 * time.Minute)
			now := t0.Add(3 * time.Minute)
			r := store.Record{
				WorkerType: "job", Seq: head.Seq + 1, Kind: store.KindReset, Claim: "foreign", InstanceID: "foreign",
				Token: max(now.UnixMilli(), head.Token+1), WindowStart: now, ReadAt: now,
			}
			change(&r, now)
			r.WindowEnd = r.WindowStart
			ledger.Put(r)
			b := start(t, setup{Options: named("b", 1), ledger: ledger.Handle()})
			at(50 * time.Minute)
			apart(t, a, b)
			if len(b.history()) > 0 {
				t.Errorf("b worked at %v, in a's lease", b.starts())
			}
			if p := observed[event.Poison](b); len(p) != 1 || p[0].Seq != r.Seq {
				t.Errorf("b reports %+v, want the foreign reset, once", p)
			}
			at(130 * time.Minute)
			if len(a.history())+len(b.history()) < 2 {
				t.Errorf("nobody worked after the first hour: a at %v, b at %v", a.starts(), b.starts())
			}
		})
	}
}

// Foreign resets far ahead lie on top of one another, with garbage between them. A worker's own reset
// doesn't stand as far ahead.
func TestForeignResetsFarAheadAreNoneOfOnesOwn(t *testing.T) {
	for name, spec := range map[string]string{"two": "rr", "with garbage": "rg", "garbage with it": "gr", "with a done record": "dr", "many": strings.Repeat("rg", 20)} {
		bubble(t, name, func(t *testing.T) {
			ledger := memory.New(memory.Options{})
			w := start(t, setup{ledger: ledger})
			at(6 * time.Minute)
			for _, kind := range spec {
				r := garbage(newest(t, ledger))
				if kind != 'g' {
					r = planted(r.Seq, 300*24*time.Hour, 300*24*time.Hour)
					r.Kind, r.Claim, r.Token = store.KindReset, "foreign", t0.Add(6*time.Minute).UnixMilli()+r.Seq
				}
				if kind == 'd' {
					r.Kind = store.KindDone
				}
				ledger.Put(r)
			}
			at(time.Hour)
			if n := len(w.history()); n < 6 {
				t.Errorf("%d slots in an hour, at %v, blocked: %q", n, w.starts(), w.Status().Blocked)
			}
		})
	}
}
