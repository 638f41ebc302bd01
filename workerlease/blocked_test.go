package workerlease_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/memory"
	"github.com/slotlease/slotlease/workerlease"
)

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
			task := func(context.Context, workerlease.Lease) error { return nil }
			w := start(t, setup{Options: o, ledger: ledger.Handle(), task: task})
			at(61 * time.Minute)
			s := w.Status()
			if s.Healthy() || !strings.Contains(s.Blocked, store.Format(until)) {
				t.Errorf("healthy %v, blocked %q, want that it is until %s", s.Healthy(), s.Blocked, store.Format(until))
			}
			e := observed[workerlease.Blocked](w)
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
		o := named("a", 0)
		o.LeaseInterval, o.JoinMidSlot = 7*24*time.Hour, true
		ledger.Put(store.Record{WorkerType: o.WorkerType, Seq: 1, Defect: "not a record"})
		w := start(t, setup{Options: o, ledger: ledger.Handle()})
		at(25 * time.Hour)
		if len(w.history()) != 1 {
			t.Errorf("worked from %v, want that within 25 h", w.starts())
		}
	})
}
