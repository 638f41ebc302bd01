package workerlease_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/memory"
	"github.com/slotlease/slotlease/testutil/faultstore"
	"github.com/slotlease/slotlease/workerlease"
	"github.com/slotlease/slotlease/workerlease/event"
)

// planted is a valid record of somebody else's.
func planted(seq int64, start, end time.Duration) store.Record {
	return store.Record{
		WorkerType: "job", Seq: seq, Kind: store.KindGrant, InstanceID: "stranger", Claim: "0123",
		WindowStart: t0.Add(start), WindowEnd: t0.Add(end), SlotStart: t0.Add(start), SlotEnd: t0.Add(end),
		Token: max(t0.Add(start).UnixMilli(), 1), Schedule: "every 5m", ReadAt: t0.Add(min(start, 0)),
	}
}

func TestPoisonIsReportedWatchedAndReset(t *testing.T) {
	far := planted(7, 99*365*24*time.Hour, 99*365*24*time.Hour+time.Minute)
	long := planted(7, -time.Minute, 367*24*time.Hour)
	broken := store.Record{WorkerType: "job", Seq: 7, Defect: "windowEnd: missing"}
	token := planted(7, -5*time.Minute, 0)
	token.Token = 1 << 60
	tests := map[string]struct {
		head     store.Record
		patience time.Duration // max(slot, window up to 24 h) + 5 min
	}{
		"in the far future": {far, 10 * time.Minute},
		"no envelope":       {broken, 10 * time.Minute},
		"token far ahead":   {token, 10 * time.Minute},
		"far too long":      {long, 24*time.Hour + 5*time.Minute},
	}
	for name, test := range tests {
		bubble(t, name, func(t *testing.T) {
			ledger := memory.New(memory.Options{})
			below := planted(6, -10*time.Minute, -5*time.Minute)
			ledger.Put(below)
			ledger.Put(test.head)
			w := start(t, setup{ledger: ledger})
			at(6 * time.Minute)
			if e := observed[event.Poison](w); len(e) != 1 || e[0].Seq != 7 || !w.reported(e[0].Err) {
				t.Fatalf("Poison events = %+v, want one of seq 7, and an error reported", e)
			}
			seen := 5*time.Minute - lead // at the first turn or soon after
			at(seen + test.patience - time.Second)
			if n := len(records(t, ledger)); n != 2 {
				t.Fatalf("%d records before the poison was watched for long enough, want 2", n)
			}
			at(seen + test.patience + 11*time.Minute)
			all := records(t, ledger)
			if len(all) < 4 || all[2].Kind != store.KindReset {
				t.Fatalf("records = %+v, want a reset and grants", all)
			}
			if r := all[2]; r.Seq != 8 || r.Token <= below.Token || !strings.Contains(r.Metadata, "seq 7") || r.Check() != nil {
				t.Errorf("reset = %+v, want seq 8, a token above %d, and why", r, below.Token)
			}
			if e := observed[event.PoisonReset](w); len(e) != 1 || e[0].Seq != 8 || e[0].Reason != all[2].Metadata {
				t.Errorf("PoisonReset events = %+v, want one", e)
			}
			if len(observed[event.Poison](w)) != 1 {
				t.Error("the same poison was reported again")
			}
			if u := w.turn(t, 0); u.lease.Token <= all[2].Token || !u.lease.Valid() && u.expiries == 0 {
				t.Errorf("the first lease after the reset is %+v", u.lease)
			}
			for _, m := range observed[event.Missed](w) {
				if m.Why != workerlease.Poisoned {
					t.Errorf("missed %v because of %q, want %q", m.Slot, m.Why, workerlease.Poisoned)
				}
			}
		})
	}
}

func TestHonestRecordsThatLookOddAreObeyed(t *testing.T) {
	newer := planted(3, 0, 12*time.Minute)
	newer.Kind = "pause"
	done := planted(3, 0, 12*time.Minute)
	done.Kind, done.WindowStart = store.KindDone, done.WindowEnd
	wordy := planted(3, 0, 12*time.Minute)
	wordy.Metadata = strings.Repeat("x", store.MaxMetadata+1)
	tests := map[string]store.Record{
		"a kind of a newer version":   newer,
		"metadata of a newer version": wordy,
		"without a window":            done,
		"a window of another length":  planted(3, -7*24*time.Hour, 12*time.Minute),
		"a claim made long before":    planted(3, 4*time.Minute, 12*time.Minute),
		"a seq after a gap of others": planted(1<<40, 0, 12*time.Minute),
	}
	for name, head := range tests {
		bubble(t, name, func(t *testing.T) {
			ledger := memory.New(memory.Options{})
			if head.Kind == store.KindDone { // It repeats a grant, which nobody has trimmed yet.
				below := head
				below.Seq, below.Kind, below.WindowStart = head.Seq-1, store.KindGrant, t0
				ledger.Put(below)
			}
			ledger.Put(head)
			w := start(t, setup{ledger: ledger})
			at(21 * time.Minute)
			if n := len(observed[event.Poison](w)); n != 0 {
				t.Errorf("%d Poison events of an honest record", n)
			}
			for _, u := range w.history() {
				if u.allocated < 12*time.Minute || u.lease.Start.Before(head.WindowEnd) {
					t.Errorf("allocated at %v a window from %v, want none before 12m", u.allocated, since(u.lease.Start))
				}
			}
			if s := w.starts(); len(s) == 0 || s[len(s)-1] != 20*time.Minute {
				t.Errorf("slots = %v, want that of 20m in the end", s)
			}
		})
	}
}

func TestWorkersWithDifferentIntervalsStayExclusiveAndSaySoOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ledger := memory.New(memory.Options{})
		a := start(t, setup{ledger: ledger, Options: workerlease.Options{InstanceID: "a", LeaseInterval: 5 * time.Minute, Priority: 1}})
		b := start(t, setup{ledger: ledger, Options: workerlease.Options{InstanceID: "b", LeaseInterval: 7 * time.Minute}})
		at(5 * time.Hour)
		apart(t, a, b)
		if len(a.history()) == 0 || len(b.history()) == 0 {
			t.Errorf("%d and %d leases, want both to have some", len(a.history()), len(b.history()))
		}
		for _, w := range []*worker{a, b} {
			e := observed[event.ScheduleMismatch](w)
			if len(e) != 1 || e[0].Ours == e[0].Theirs || e[0].Holder == w.Status().InstanceID {
				t.Errorf("%s: ScheduleMismatch events = %+v, want one", w.Status().InstanceID, e)
			}
		}
	})
}

func TestOldRecordsAreTrimmedAfterTheRetentionAndTheHeadNever(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const retention = 2 * time.Hour
		ledger := memory.New(memory.Options{})
		o := workerlease.Options{LeaseInterval: time.Minute, Retention: retention}
		w := start(t, setup{ledger: ledger, Options: o})
		at(retention - time.Minute)
		if first := records(t, ledger)[0]; first.Seq != 1 {
			t.Errorf("the oldest record is %d before the retention, want 1", first.Seq)
		}
		at(12*time.Hour + 30*time.Second)
		all := records(t, ledger)
		if n := len(all); n > 400 || n < 119 {
			t.Errorf("%d records after 12 h, want those of 2 h and a bit", n)
		}
		for i, r := range all {
			if want := all[0].Seq + int64(i); r.Seq != want {
				t.Fatalf("record %d is missing", want)
			}
		}
		trimmed := 0
		for _, e := range observed[event.Trimmed](w) {
			trimmed += e.Count
		}
		if want := int(all[0].Seq) - 1; trimmed != want {
			t.Errorf("Trimmed events report %d records, want %d", trimmed, want)
		}
		// Idle for a year, the head is still there, and tokens go on from it.
		head := all[len(all)-1]
		w.stop(t)
		time.Sleep(365 * 24 * time.Hour)
		w = start(t, setup{ledger: ledger, Options: o})
		time.Sleep(2 * time.Minute)
		if u := w.turn(t, 0); u.lease.Token <= head.Token {
			t.Errorf("token %d after %d", u.lease.Token, head.Token)
		}
		if r := newest(t, ledger); r.Seq < head.Seq+1 {
			t.Errorf("head is %d after %d", r.Seq, head.Seq)
		}
	})
}

func TestALeaseWhoseRecordIsAnothersByNowEndsAndIsReported(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ledger := memory.New(memory.Options{})
		w := start(t, setup{ledger: ledger})
		at(6 * time.Minute)
		// As after a rollback: the key is free again, and another takes it.
		ledger.Put(planted(1, 5*time.Minute, 10*time.Minute))
		at(10*time.Minute - lead + time.Second)
		u := w.turn(t, 0)
		if !errors.Is(u.cause, workerlease.ErrRecordVanished) || u.why != workerlease.RecordVanished || u.expiries != 1 {
			t.Errorf("cause %v, why %q, %d expiries; want an end because of the record", u.cause, u.why, u.expiries)
		}
		if e := observed[event.Vanished](w); len(e) != 1 || e[0].Seq != 1 || !w.reported(workerlease.ErrRecordVanished) {
			t.Errorf("Vanished events = %+v, want one of seq 1, and an error reported", e)
		}
		at(16 * time.Minute)
		if l := w.turn(t, 1).lease; !l.Valid() || l.Slot.Start != t0.Add(15*time.Minute) {
			t.Errorf("the next lease is %+v, want that of the next slot but one: another may work in the next by a record that was lost", l)
		}
	})
}

// Others have gone on since, so that the newest two records show nothing of the key.
func TestALeaseWhoseRecordIsLookedUpBelowWhatOthersAppended(t *testing.T) {
	other := func(seq int64, start, end time.Duration) store.Record {
		r := planted(seq, start, end)
		r.Claim = fmt.Sprint("theirs", seq)
		return r
	}
	// more is what others appended after the lease's record, or after theirs in its place.
	more := func(ledger *memory.Ledger, n int64) {
		for i := range time.Duration(n) {
			ledger.Put(other(int64(i)+2, 10*time.Minute+i*time.Second, 10*time.Minute+(i+1)*time.Second))
		}
	}
	for _, c := range []struct {
		name     string
		changes  func(t *testing.T, ledger *memory.Ledger)
		vanished int // events
		why      workerlease.Reason
	}{
		{"another's, with two more", func(_ *testing.T, l *memory.Ledger) { l.Put(other(1, 5*time.Minute, 10*time.Minute)); more(l, 2) }, 1, workerlease.RecordVanished},
		{"another's, with ten more", func(_ *testing.T, l *memory.Ledger) { l.Put(other(1, 5*time.Minute, 10*time.Minute)); more(l, 10) }, 1, workerlease.RecordVanished},
		{"still there", func(_ *testing.T, l *memory.Ledger) { more(l, 2) }, 0, workerlease.WindowEnded},
		{"trimmed", func(t *testing.T, l *memory.Ledger) {
			more(l, 2)
			if n, err := l.Trim(t.Context(), "job", 2); n != 1 || err != nil {
				t.Fatalf("Trim() = %d, %v", n, err)
			}
		}, 0, workerlease.WindowEnded},
	} {
		bubble(t, c.name, func(t *testing.T) {
			ledger := memory.New(memory.Options{})
			counter := faultstore.NewCounter(ledger.Handle())
			w := start(t, setup{ledger: counter})
			at(6 * time.Minute)
			c.changes(t, ledger)
			counter.Reset()
			at(10*time.Minute + time.Second)
			if u := w.turn(t, 0); u.why != c.why || u.expiries != 1 {
				t.Errorf("the lease ended as %q, %d times, want once as %q", u.why, u.expiries, c.why)
			}
			if e := observed[event.Vanished](w); len(e) != c.vanished {
				t.Errorf("Vanished events = %+v, want %d", e, c.vanished)
			}
			if got := counter.Counts(); got[faultstore.OpTail] != 2 || got[faultstore.OpGet] > 0 {
				t.Errorf("%v, want two tails, of which the second reads more", got)
			}
		})
	}
}

func TestALeaseWhoseRecordIsNotSeenIsReportedAndGoesOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ledger := faulty(t, during(16*time.Minute, ever, faultstore.StaleRead(1), faultstore.OpTail))
		w := start(t, setup{ledger: ledger})
		at(16 * time.Minute)
		if e := observed[event.Vanished](w); len(e) != 0 {
			t.Fatalf("Vanished events = %+v while all is well", e)
		}
		at(20*time.Minute - lead + time.Second)
		if e := observed[event.Vanished](w); len(e) != 1 || !w.reported(workerlease.ErrRecordVanished) {
			t.Errorf("Vanished events = %+v, want one", e)
		}
		if u := w.turn(t, 2); u.expiries != 0 || !u.lease.Valid() {
			t.Errorf("the lease ended with %v: a stale read proves nothing", u.cause)
		}
	})
}
