package store_test

import (
	"strings"
	"testing"
	"time"

	"github.com/slotlease/slotlease/store"
)

func TestALossIsReadAsItWasWritten(t *testing.T) {
	least := store.Lost{Seq: 9, Token: 1795947767632, Claim: "c", InstanceID: `a "quoted" <name>`, End: slotStart}
	full := least
	full.Group, full.Start = "eu", slotStart.Add(-time.Minute)
	text := full.Metadata()
	for _, lost := range []store.Lost{least, full} {
		if got, is := told(store.KindOutcome, lost.Metadata()).Lost(); !is || got != lost {
			t.Errorf("Lost() of %s = %+v, %v, want %+v", lost.Metadata(), got, is, lost)
		}
	}
	if o, is := told(store.KindOutcome, text).Outcome(); is {
		t.Errorf("Outcome() = %+v, want none", o)
	}
	for name, r := range map[string]store.Record{
		"an outcome":       told(store.KindOutcome, store.Outcome{Result: store.Failed}.Metadata()),
		"another kind":     told(store.KindDone, text),
		"text":             told(store.KindOutcome, "lost"),
		"nothing":          told(store.KindOutcome, ""),
		"no seq":           told(store.KindOutcome, strings.Replace(text, `"seq":9`, `"seq":0`, 1)),
		"no time":          told(store.KindOutcome, strings.Replace(text, "T02", "", 1)),
		"a label too long": told(store.KindOutcome, strings.Replace(text, `"c"`, `"`+strings.Repeat("c", 257)+`"`, 1)),
		"no time to start": told(store.KindOutcome, strings.Replace(text, `"windowStart":"2026`, `"windowStart":"`, 1)),
		"a group too long": told(store.KindOutcome, strings.Replace(text, `"eu"`, `"`+strings.Repeat("c", 257)+`"`, 1)),
		"a year too late":  told(store.KindOutcome, strings.Replace(text, `"windowEnd":"2026`, `"windowEnd":"12026`, 1)),
		"a defect":         {Kind: store.KindOutcome, Metadata: text, Defect: "no JSON"},
	} {
		if got, is := r.Lost(); is {
			t.Errorf("%s: Lost() = %+v, want none", name, got)
		}
	}
}
