package workerlease_test

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/memory"
	"github.com/slotlease/slotlease/workerlease/operate"
)

// A plan shows each holder that may still work, and writes nothing.
func TestAPlanShowsWhoMayStillWork(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ledger := memory.New(memory.Options{})
		over, given, long, next := planted(1, -time.Hour, -time.Minute), planted(2, -time.Minute, time.Hour), planted(4, 0, 48*time.Hour), planted(5, 48*time.Hour, 49*time.Hour)
		for i, r := range []*store.Record{&over, &given, &long, &next} {
			r.Claim = string(rune('a' + i))
		}
		released := given
		released.Seq, released.Kind, released.WindowStart, released.WindowEnd = 3, store.KindRelease, t0.Add(-time.Second), t0.Add(-time.Second)
		long.WindowStart, long.Token, next.Token = t0.Add(-time.Second), t0.UnixMilli(), t0.UnixMilli()+1
		for _, r := range []store.Record{over, given, released, long, next} {
			ledger.Put(r)
		}
		p, err := operate.On(ledger).PlanOverride(t.Context(), operate.OverrideOptions{WorkerType: "job", Seq: 5})
		if err != nil || len(p.Terms) != 2 || p.Terms[0] != long || p.Terms[1] != next || p.Head != next || p.Record.Seq != 6 {
			t.Errorf("PlanOverride() = %+v, %v, want the terms of 4 and, of poison, 5", p, err)
		}
		if n := len(records(t, ledger)); n != 5 {
			t.Errorf("%d records, want those there were", n)
		}
		override(t, ledger, operate.OverrideOptions{})
		if p, err = operate.On(ledger).PlanOverride(t.Context(), operate.OverrideOptions{WorkerType: "job", Seq: 6}); err != nil || len(p.Terms) != 2 || p.HeadDefect != nil {
			t.Errorf("PlanOverride() of an override = %+v, %v, want what may still be worked under", p, err)
		}
	})
}

// A foreign record with the claim of a holder doesn't end that one's term.
func TestAPlanShowsTheHolderThatAForeignRecordHides(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ledger := memory.New(memory.Options{})
		held, foreign := planted(1, 0, time.Hour), planted(2, -30*time.Minute, -29*time.Minute)
		foreign.Claim = held.Claim
		ledger.Put(held)
		ledger.Put(foreign)
		p, err := operate.On(ledger).PlanOverride(t.Context(), operate.OverrideOptions{WorkerType: "job", Seq: 2})
		if err != nil || p.HeadDefect == nil || len(p.Terms) != 1 || p.Terms[0] != held {
			t.Errorf("PlanOverride() = %+v, %v, want the term of record 1", p, err)
		}
	})
}

// An override takes the free key below a record: workers go by that one then.
func TestAPlanShowsWhatAnOverrideMakesReachable(t *testing.T) {
	for name, test := range map[string]struct {
		seq  int64 // of the record above a free key
		next int64
	}{
		"right above it": {3, 3},
		"further up":     {4, 2},
	} {
		synctest.Test(t, func(t *testing.T) {
			ledger := memory.New(memory.Options{})
			above := planted(test.seq, time.Minute, 30*24*time.Hour)
			above.Claim, above.Token = "4567", above.Token+1000
			ledger.Put(planted(1, 0, 300*24*time.Hour))
			ledger.Put(above)
			p, err := operate.On(ledger).PlanOverride(t.Context(), operate.OverrideOptions{WorkerType: "job", Seq: 1})
			if err != nil || len(p.Unreachable) != 1 || p.Unreachable[0] != above || p.Next.Seq != test.next || p.NextDefect != nil {
				t.Errorf("%s: PlanOverride() = %+v, %v, want that workers go by record %d then", name, p, err, test.next)
			}
			override(t, ledger, operate.OverrideOptions{Seq: 1})
			p, err = operate.On(ledger).PlanOverride(t.Context(), operate.OverrideOptions{WorkerType: "job", Seq: 2})
			if moved := errors.Is(err, operate.ErrHeadMoved); moved != (test.next != 2) || p.Head.Seq != test.next || err != nil && !moved {
				t.Errorf("%s: PlanOverride() after it = %+v, %v, want that workers go by record %d", name, p, err, test.next)
			}
		})
	}
}

// A --done-until that was wrong is corrected by another override: jobs that were done stay so.
func TestASecondOverrideCorrectsTheFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ledger := memory.New(memory.Options{})
		job := planted(1, 0, 10*time.Minute)
		job.Schedule, job.Attempt, job.DoneUntil = "every 10m", 1, t0.Add(10*time.Minute)
		ledger.Put(job)
		override(t, ledger, operate.OverrideOptions{DoneUntil: t0.Add(300 * 24 * time.Hour)})
		if r := override(t, ledger, operate.OverrideOptions{}); !r.DoneUntil.Equal(job.DoneUntil) {
			t.Errorf("slots are done up to %v, want %v as before", r.DoneUntil, job.DoneUntil)
		}
	})
}

func TestAFullLedgerCantBeOverridden(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for name, seq := range map[string]int64{"the last record": store.MaxSeq, "the last but one": store.MaxSeq - 1} {
			ledger := memory.New(memory.Options{})
			for n := range 3 {
				r := planted(seq-int64(n), time.Duration(-n)*time.Minute, time.Duration(1-n)*time.Minute)
				r.Claim = string(rune('a' + n))
				ledger.Put(r)
			}
			_, err := operate.On(ledger).Override(t.Context(), operate.OverrideOptions{WorkerType: "job", Seq: seq})
			if n := len(records(t, ledger)); !errors.Is(err, operate.ErrLedgerFull) || n != 3 {
				t.Errorf("Override() of %s = %v, and there are %d records", name, err, n)
			}
		}
	})
}
