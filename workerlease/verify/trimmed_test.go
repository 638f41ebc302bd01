package verify_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/slotlease/slotlease/internal/recordtest"
	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/workerlease/verify"
)

// What was trimmed while the ledger was read isn't known: neither that nobody claimed its slots, nor that an
// override there ended what was done.
func TestRecordsThatWereTrimmedMeanwhileAreNoFinding(t *testing.T) {
	first := recordtest.Grant(1, 1, "a")
	for name, of := range map[string]func(seq int64) store.Record{
		"a term in each slot": func(seq int64) store.Record {
			r := recordtest.Grant(seq, int(seq), "a")
			r.Claim = fmt.Sprint("claim ", seq)
			return r
		},
		"one term that goes on": func(seq int64) store.Record {
			return recordtest.NextSlot(seq, first, int(seq), float64(5*seq), float64(5*seq+5))
		},
		"what was done until it was overridden": func(seq int64) store.Record {
			r := recordtest.NextSlot(seq, first, int(seq), float64(5*seq), float64(5*seq+5))
			if seq <= 300 {
				r.DoneUntil = first.SlotStart.Add(24 * time.Hour)
			}
			return r
		},
	} {
		v := verify.New(verify.Options{WorkerType: "export", Now: recordtest.Minutes(5*1000 + 4)})
		for seq := int64(1); seq <= 1000; seq++ {
			if seq > 300 && seq < 800 {
				continue
			}
			if seq == 800 {
				v.Trimmed()
			}
			v.Add(of(seq))
		}
		if r := v.Report(); len(r.Findings) > 0 || r.Missed > 0 {
			t.Errorf("%s: Report() = %+v, want no finding", name, r)
		}
	}
}

// A kind that is known must not be called that of a newer version.
func TestEachKindOfThisVersionIsKnown(t *testing.T) {
	for _, kind := range []store.Kind{store.KindDone, store.KindOutcome, store.KindOrder, store.KindSighting} {
		a := recordtest.Grant(1, 0, "a")
		r := a
		r.Seq, r.Kind, r.WindowStart = 2, kind, a.WindowEnd
		if got := found([]store.Record{a, r}, recordtest.Minutes(4)); len(got) > 0 {
			t.Errorf("a record of the kind %q: found %q, want nothing", kind, got)
		}
	}
}
