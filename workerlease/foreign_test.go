package workerlease_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/memory"
	"github.com/slotlease/slotlease/workerlease"
)

// A record comes into the ledger that is valid alone, and that no worker can have appended
// there: a has a slot of an hour, and b, with slots of 5 min, obeyed the record and worked
// beside a, or nobody ever worked again.
func TestAForeignRecordMakesNoTwoWorkAndStopsNobodyForGood(t *testing.T) {
	const far = 1000
	for name, change := range map[string]func(r *store.Record, head store.Record){
		"a grant within the window below": func(r *store.Record, _ store.Record) {},
		"a release of another's claim": func(r *store.Record, _ store.Record) {
			r.Kind, r.WindowEnd = store.KindRelease, r.WindowStart
		},
		"a release before the term": func(r *store.Record, head store.Record) {
			r.Kind, r.Claim, r.Token = store.KindRelease, head.Claim, head.Token
			r.WindowStart, r.WindowEnd = store.FromMillis(head.Token), store.FromMillis(head.Token)
		},
		"a reset of what can be obeyed": func(r *store.Record, _ store.Record) {
			r.Kind, r.WindowEnd, r.ReadAt = store.KindReset, r.WindowStart, r.WindowStart
		},
		"a note that takes the term": func(r *store.Record, head store.Record) {
			r.Kind, r.WindowStart, r.WindowEnd = "note", head.WindowEnd, head.WindowEnd
		},
		"a note that ends the window": func(r *store.Record, head store.Record) {
			r.Kind, r.Claim, r.Token, r.WindowEnd = "note", head.Claim, head.Token, r.WindowStart
		},
		"a grant above a free key":        func(r *store.Record, head store.Record) { r.Seq = head.Seq + far },
		"a grant at the last key but one": func(r *store.Record, _ store.Record) { r.Seq = store.MaxSeq - 1 },
	} {
		bubble(t, name, func(t *testing.T) {
			ledger := memory.New(memory.Options{})
			long := named("a", 0)
			long.LeaseInterval, long.JoinMidSlot = time.Hour, true
			a := start(t, setup{Options: long, ledger: ledger.Handle()})
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
			if e := observed[workerlease.Poison](b); len(e) != 1 || e[0].Seq != r.Seq {
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
