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

// A record comes into the ledger that is valid alone, and that no worker can have appended
// there: a has a slot of an hour, and b, with slots of 5 min, obeyed the record and worked
// beside a, or nobody ever worked again.
func TestAForeignRecordMakesNoTwoWorkAndStopsNobodyForGood(t *testing.T) {
	const far = 1000
	// TestContradicts of the machine has all others.
	for name, change := range map[string]func(r *store.Record, head store.Record){
		"a grant within the window below": func(r *store.Record, _ store.Record) {},
		"a grant above a free key":        func(r *store.Record, head store.Record) { r.Seq = head.Seq + far },
		"a grant at the last key but one": func(r *store.Record, _ store.Record) { r.Seq = store.MaxSeq - 1 },
	} {
		bubble(t, name, func(t *testing.T) {
			ledger := memory.New(memory.Options{})
			long := slotted("a", 0, time.Hour, 0)
			a := start(t, setup{Options: long, joins: true, ledger: ledger.Handle()})
			at(2 * time.Minute)
			head := newest(t, ledger)
			now := t0.Add(3 * time.Minute)
			at(3 * time.Minute)
			r := store.Record{
				WorkerType: head.WorkerType, Seq: head.Seq + 1, Kind: store.KindGrant, Claim: "foreign", InstanceID: "foreign",
				Token: max(now.UnixMilli(), head.Token+1), WindowStart: now, WindowEnd: now.Add(time.Minute),
			}
			change(&r, head)
			ledger.Put(r)
			b := start(t, setup{Options: named("b", 1), ledger: ledger.Handle()})
			at(50 * time.Minute)
			apart(t, a, b)
			if !a.IsHolder() || len(b.history()) > 0 {
				t.Errorf("a works: %v, in %v; b worked in %v", a.IsHolder(), a.starts(), b.starts())
			}
			if e := observed[event.Poison](b); len(e) != 1 || e[0].Seq != r.Seq {
				t.Errorf("observed %v, want that seq %d is not obeyed, once", e, r.Seq)
			}
			at(100 * time.Minute)
			apart(t, a, b)
			if !a.IsHolder() && !b.IsHolder() {
				t.Errorf("nobody works in the hour after: a %v, b %v", a.starts(), b.starts())
			}
		})
	}
}

// The first record of a ledger is a grant at a key that no worker can ever reach.
func TestALoneGrantAtTheLastKeysStopsNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ledger := memory.New(memory.Options{})
		ledger.Put(store.Record{
			WorkerType: named("a", 0).WorkerType, Seq: store.MaxSeq - 1, Kind: store.KindGrant, Claim: "foreign", InstanceID: "foreign",
			Token: t0.UnixMilli(), WindowStart: t0, WindowEnd: t0.Add(time.Minute),
		})
		a := start(t, setup{Options: named("a", 0), ledger: ledger.Handle()})
		at(59 * time.Minute)
		if n := len(a.history()); n != 11 {
			t.Errorf("%d slots of 11 were worked in: %v", n, a.starts())
		}
	})
}

// a has a slot of a day. Somebody appends twenty its own documents to the ledger. b, with slots of 5 min, reads the
// newest sixteen, finds none that it can obey, and supersedes the last of them, as if nobody had anything. Both work.
func TestMorePoisonThanIsReadAtOnceDoesNotEndWhatIsBelow(t *testing.T) {
	for name, gap := range map[string]int64{"in a row": 0, "above a free key": 1} {
		bubble(t, name, func(t *testing.T) {
			ledger := memory.New(memory.Options{})
			long := slotted("a", 0, 24*time.Hour, 0)
			a := start(t, setup{Options: long, joins: true, ledger: ledger.Handle()})
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
			if len(observed[event.Poison](b)) == 0 {
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
		if e := observed[event.Poison](w); len(e) != 1 || e[0].Seq != poison.Seq || !strings.Contains(e[0].Err.Error(), "free") {
			t.Errorf("observed %v, want that seq %d is not followed, once", e, poison.Seq)
		}
		at(59 * time.Minute)
		if e := observed[event.PoisonReset](w); len(e) != 1 || e[0].Seq != poison.Seq+1 {
			t.Errorf("observed resets %v, want one in seq %d", e, poison.Seq+1)
		}
		if last := w.turn(t, len(w.history())-1); !last.lease.Valid() {
			t.Errorf("half an hour after the ledger has reached the poison, nobody works: the last was %+v", last.lease)
		}
	})
}

// A valid record leaves nothing to claim for a year. Nobody said so: workers lost each slot,
// or took it for done, and were healthy.
func TestARecordThatBlocksAllSlotsForLongIsReported(t *testing.T) {
	until := t0.AddDate(1, 0, 0)
	for name, change := range map[string]func(r *store.Record){
		"by its window":   func(r *store.Record) { r.WindowEnd = until },
		"by what is done": func(r *store.Record) { r.DoneUntil = until },
	} {
		bubble(t, name, func(t *testing.T) {
			ledger := memory.New(memory.Options{})
			r := store.Record{
				WorkerType: "job", Seq: 1, Kind: store.KindGrant, Claim: "foreign", InstanceID: "foreign",
				Token: t0.UnixMilli(), WindowStart: t0, WindowEnd: t0.Add(time.Minute),
			}
			change(&r)
			ledger.Put(r)
			o := named("a", 0)
			o.Job = &workerlease.Job{}
			w := start(t, setup{Options: o, ledger: ledger.Handle(), task: idle})
			at(61 * time.Minute)
			s := w.Status()
			if s.Healthy() || !strings.Contains(s.Blocked, store.Format(until)) {
				t.Errorf("healthy %v, blocked %q, want that it is until %s", s.Healthy(), s.Blocked, store.Format(until))
			}
			e := observed[event.Blocked](w)
			if len(e) != 1 || e[0].Seq != 1 || !e[0].Until.Equal(until) || e[0].Done != r.DoneUntil.Equal(until) {
				t.Errorf("Blocked events = %+v, want one until %s", e, store.Format(until))
			}
		})
	}
}

// Somebody appends garbage every 15 minutes. Slots of 5 minutes go on between, and poison is
// watched for a day and 5 minutes at most, however long the slots are.
func TestGarbageEveryFifteenMinutesDoesNotBlockShortSlots(t *testing.T) {
	bubble(t, "five minutes", func(t *testing.T) {
		ledger := memory.New(memory.Options{})
		var all []*worker
		for n := range 2 {
			all = append(all, start(t, setup{Options: named(string(rune('a'+n)), n), ledger: ledger.Handle()}))
		}
		at(6 * time.Minute)
		for n := range 24 {
			at(6*time.Minute + time.Duration(n)*15*time.Minute)
			head := newest(t, ledger)
			ledger.Put(store.Record{WorkerType: head.WorkerType, Seq: head.Seq + 1, Defect: "not a record"})
		}
		apart(t, all...)
		if n := len(all[0].history()) + len(all[1].history()); n < 20 {
			t.Errorf("%d slots were worked in within 6 h, want one between two records at least: %v and %v", n, all[0].starts(), all[1].starts())
		}
	})
	bubble(t, "a week", func(t *testing.T) {
		ledger := memory.New(memory.Options{})
		o := slotted("a", 0, 7*24*time.Hour, 0)
		ledger.Put(store.Record{WorkerType: o.WorkerType, Seq: 1, Defect: "not a record"})
		w := start(t, setup{Options: o, joins: true, ledger: ledger.Handle()})
		at(25 * time.Hour)
		if len(w.history()) != 1 {
			t.Errorf("worked from %v, want that within 25 h", w.starts())
		}
	})
}
