package verify_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/slotlease/slotlease/internal/recordtest"
	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/workerlease/verify"
)

func TestStrict(t *testing.T) {
	minute := recordtest.Minutes
	first := recordtest.Part(1, recordtest.Grant(1, 0, "a"), 0, 1)
	first.Attempt = 1
	extension, later := recordtest.Part(2, first, 1, 2), recordtest.Grant(2, 1, "b")
	released, done := recordtest.Release(first, 2, minute(0.5)), recordtest.Done(first, 2, minute(5), minute(1))
	failed := recordtest.Told(first, 2, recordtest.Outcome(first, minute(0.5), store.Failed))
	with := func(r store.Record, change func(r *store.Record)) store.Record {
		change(&r)
		return r
	}
	forgets := recordtest.Grant(3, 1, "b")
	forgets.DoneUntil = minute(5)
	for name, test := range map[string]struct {
		then []store.Record // after the first
		want []verify.Code
	}{
		"another slot":             {[]store.Record{later, recordtest.Grant(3, 9, "a")}, nil},
		"an extension":             {[]store.Record{extension}, nil},
		"with a new token":         {[]store.Record{with(extension, func(r *store.Record) { r.Token++ })}, []verify.Code{verify.TokenOfExtension}},
		"after a gap":              {[]store.Record{with(extension, func(r *store.Record) { r.WindowStart = minute(1.5) })}, []verify.Code{verify.GapInTerm}},
		"too early":                {[]store.Record{with(extension, func(r *store.Record) { r.WindowStart = minute(0.5) })}, []verify.Code{verify.OverlappingWindow}},
		"of a release":             {[]store.Record{released, recordtest.Part(3, first, 0.5, 2)}, []verify.Code{verify.ExtensionReleased}},
		"of an older term":         {[]store.Record{later, recordtest.Part(3, first, 10, 11)}, []verify.Code{verify.TokenNotAbove}},
		"a release":                {[]store.Record{released, recordtest.Grant(3, 1, "b")}, nil},
		"its rest for another":     {[]store.Record{released, with(recordtest.Part(3, later, 0.5, 1), func(r *store.Record) { r.Token = first.Token + 1 })}, nil},
		"a foreign release":        {[]store.Record{with(released, func(r *store.Record) { r.Claim = "another" })}, []verify.Code{verify.ReleaseOfOther}},
		"with another token":       {[]store.Record{with(released, func(r *store.Record) { r.Token++ })}, []verify.Code{verify.ReleaseOfOther}},
		"a release of a release":   {[]store.Record{released, recordtest.Release(first, 3, minute(0.5))}, []verify.Code{verify.ReleaseMisplaced}},
		"windows overlap":          {[]store.Record{recordtest.Part(2, later, 0, 1)}, []verify.Code{verify.OverlappingWindow}},
		"a token that falls":       {[]store.Record{with(later, func(r *store.Record) { r.Token = 1 })}, []verify.Code{verify.TokenNotAbove}},
		"a gap in the keys":        {[]store.Record{recordtest.Grant(3, 1, "b")}, []verify.Code{verify.AboveFreeKey}},
		"done":                     {[]store.Record{done}, nil},
		"done, with a moved end":   {[]store.Record{with(done, func(r *store.Record) { r.WindowEnd = minute(2) })}, []verify.Code{verify.ChangesTerm}},
		"done, which is forgotten": {[]store.Record{done, recordtest.Grant(3, 1, "b")}, []verify.Code{verify.DoneGoesBack}},
		"which slot is forgotten":  {[]store.Record{with(done, func(r *store.Record) { r.Done = "2026-03-02T12:00:00Z" }), forgets}, []verify.Code{"forgets"}},
		"an earlier version":       {[]store.Record{with(done, func(r *store.Record) { r.Done, r.Worker.Version = "2026-03-02T12:00:00Z", "v2" }), forgets}, nil},
		"done without a job":       {[]store.Record{with(done, func(r *store.Record) { r.Attempt = 0 })}, []verify.Code{"is done, but no job"}},
		"an outcome":               {[]store.Record{failed}, nil},
		"an outcome of a holder":   {[]store.Record{with(failed, func(r *store.Record) { r.InstanceID = "b" })}, []verify.Code{verify.ChangesHolder}},
		"an outcome of nothing":    {[]store.Record{with(failed, func(r *store.Record) { r.Metadata = "{}" })}, []verify.Code{"tells no outcome"}},
		"a reset":                  {[]store.Record{with(later, func(r *store.Record) { r.Kind = store.KindReset })}, []verify.Code{"of kind reset", verify.ResetOfSound}},
		"an override":              {[]store.Record{with(later, func(r *store.Record) { r.Kind, r.WindowEnd = store.KindOverride, r.WindowStart })}, []verify.Code{"of kind override"}},
		"a defect":                 {[]store.Record{{WorkerType: "export", Seq: 2, Defect: "no token"}}, []verify.Code{verify.Unreadable}},
	} {
		got := verify.Strict(append([]store.Record{first}, test.then...))
		ok := len(got) == len(test.want)
		for i := range min(len(got), len(test.want)) {
			ok = ok && strings.Contains(got[i], ": "+string(test.want[i]))
		}
		if !ok {
			t.Errorf("%s: Strict() = %q, want %q", name, got, test.want)
		}
	}
}

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
