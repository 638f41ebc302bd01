package workerlease_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/memory"
	"github.com/slotlease/slotlease/testutil/faultstore"
	"github.com/slotlease/slotlease/workerlease"
)

// a has a slot of a day. Somebody appends twenty its own documents to the ledger. b, with slots of 5 min, reads the
// newest sixteen, finds none that it can obey, and supersedes the last of them, as if nobody had anything. Both work.
func TestMorePoisonThanIsReadAtOnceDoesNotEndWhatIsBelow(t *testing.T) {
	for name, gap := range map[string]int64{"in a row": 0, "above a free key": 1} {
		bubble(t, name, func(t *testing.T) {
			ledger := memory.New(memory.Options{})
			long := named("a", 0)
			long.LeaseInterval, long.JoinMidSlot = 24*time.Hour, true
			a := start(t, setup{Options: long, ledger: ledger.Handle()})
			at(2 * time.Minute)
			head := newest(t, ledger)
			for n := range int64(20) {
				ledger.Put(store.Record{WorkerType: head.WorkerType, Seq: head.Seq + 1 + gap + n, Defect: "not a record"})
			}
			b := start(t, setup{Options: named("b", 0), ledger: ledger.Handle()})
			at(180 * time.Minute)
			if len(a.history()) != 1 || !a.IsHolder() || len(b.history()) > 0 {
				t.Errorf("a works: %v, in %v; b worked in %v", a.IsHolder(), a.starts(), b.starts())
			}
			if len(observed[workerlease.Poison](b)) == 0 {
				t.Error("the poison was not reported")
			}
		})
	}
}

// farAhead is a record some keys above another, whose window begins in fifty years.
func farAhead(r store.Record, keys int64) store.Record {
	r.Seq, r.Claim, r.InstanceID = r.Seq+keys, "stray", "stray"
	r.WindowStart = t0.AddDate(50, 0, 0)
	r.WindowEnd = r.WindowStart.Add(time.Minute)
	return r
}

// Poison stands five keys above the head. Once it was superseded: then the ledger went on above it for a worker that saw it,
// and below it for one that was shown an older state, and two worked. Now slots go on as if it were not there, on the free
// keys; when they are used up, it is watched, and superseded.
func TestPoisonAboveAFreeKeyStopsNobodyBeforeTheLedgerReachesIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ledger := memory.New(memory.Options{})
		w := start(t, setup{Options: named("a", 0), ledger: ledger.Handle()})
		at(6 * time.Minute)
		poison := farAhead(newest(t, ledger), 5)
		ledger.Put(poison)
		at(29 * time.Minute)
		if n := len(w.history()); n != 5 {
			t.Errorf("%d slots of 5 were worked in, with free keys for all of them", n)
		}
		if e := observed[workerlease.Poison](w); len(e) != 1 || e[0].Seq != poison.Seq || !strings.Contains(e[0].Err.Error(), "free") {
			t.Errorf("observed %v, want that seq %d is not followed, once", e, poison.Seq)
		}
		at(59 * time.Minute)
		if e := observed[workerlease.PoisonReset](w); len(e) != 1 || e[0].Seq != poison.Seq+1 {
			t.Errorf("observed resets %v, want one in seq %d", e, poison.Seq+1)
		}
		if last := w.turn(t, len(w.history())-1); !last.lease.Valid() {
			t.Errorf("half an hour after the ledger has reached the poison, nobody works: the last was %+v", last.lease)
		}
	})
}

// Poison above a hole again; now it is a claim of unknown outcome that lands below it. a, with slots of an hour, sends its claim and
// is cut off, and poison gets to a key some way above. b, with slots of 5 min, watches it for 10 min, supersedes it, and
// works. a comes back: its claim is younger than an hour, so it is sent again, lands on its free key, and is worked under.
func TestAClaimOfUnknownOutcomeBelowAHoleDoesNotLetTwoWork(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ledger, link := cut(t)
		poisoned := false
		hook := &hooked{Ledger: link, beforeAppend: func(r store.Record) {
			if poisoned || r.Kind != store.KindGrant {
				return
			}
			poisoned = true
			link.Break(faultstore.Down())
			ledger.Put(farAhead(r, 1000))
		}}
		long := named("a", 0)
		long.LeaseInterval, long.JoinMidSlot = time.Hour, true
		at(2 * time.Minute)
		a := start(t, setup{Options: long, ledger: hook})
		b := start(t, setup{Options: named("b", 0), ledger: ledger.Handle()})
		at(22 * time.Minute)
		link.Mend()
		at(50 * time.Minute)
		apart(t, a, b)
	})
}

// Workers of different intervals, as in a rolling deployment: a has slots of an hour, in parts of 2 min, b of 5 min.
// Somebody plants poison at a key some way above the head. b watches it for 10 min, and supersedes it behind the end
// of a's window as it is then. But a appends the next parts of its slot right after its own last record, without
// looking at the head, for as long as the slot lasts: those keys are free. Both work.
func TestPoisonAboveAHoleDoesNotLetTwoWork(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ledger := memory.New(memory.Options{})
		long := parted("a", 0, 2*time.Minute)
		long.LeaseInterval, long.JoinMidSlot = time.Hour, true
		a := start(t, setup{Options: long, ledger: ledger.Handle()})
		at(2 * time.Minute)
		ledger.Put(farAhead(newest(t, ledger), 1000))
		b := start(t, setup{Options: named("b", 0), ledger: ledger.Handle()})
		at(50 * time.Minute)
		apart(t, a, b)
	})
}

// a has a slot of ten hours, by a grant that b, of another version, sees and can't obey. Somebody appends a document of its
// own. b watched that for ten minutes, because it names no window, and superseded it, and with it a's grant. Both worked.
func TestPoisonOnTopOfAGrantThatOnlyOthersObeyDoesNotEndIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ledger := memory.New(memory.Options{})
		long := named("a", 0)
		long.LeaseInterval, long.JoinMidSlot = 10*time.Hour, true
		a := start(t, setup{Options: long, ledger: ledger.Handle()})
		at(2 * time.Minute)
		head := newest(t, ledger)
		ledger.Put(store.Record{WorkerType: head.WorkerType, Seq: head.Seq + 1, Defect: "not a record"})
		foreign := stranger(ledger.Handle(), 1, func(r *store.Record) { r.Token += (365 * 24 * time.Hour).Milliseconds() })
		b := start(t, setup{Options: named("b", 0), ledger: foreign})
		at(23 * time.Hour)
		apart(t, a, b)
		if u, end := a.turn(t, 0), since(head.WindowEnd); u.ended < end-time.Minute {
			t.Errorf("the slot of a, up to %v, was over at %v", end, u.ended)
		}
		if len(observed[workerlease.PoisonReset](b)) == 0 {
			t.Error("the poison was never superseded")
		}
	})
}
