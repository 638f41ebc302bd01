package machine

import (
	"testing"

	"github.com/slotlease/slotlease/internal/recordtest"
	"github.com/slotlease/slotlease/store"
)

// What came of work may be in any record above the one that made its worker look dead, and says whose it is.
func TestAWorkerThatIsToBeToldDeadLivesByItsOwnWord(t *testing.T) {
	grant := recordtest.Grant(4, 0, "victim")
	tells := func(seq int64, change func(*store.Record, *store.Outcome)) store.Record {
		r, o := recordtest.Told(grant, seq, store.Outcome{}), recordtest.Outcome(grant, recordtest.Minutes(1), store.Failed)
		o.InstanceID, o.Attempt = "victim", 2
		change(&r, &o)
		r.Metadata = o.Metadata()
		return r
	}
	said := tells(9, func(_ *store.Record, o *store.Outcome) { o.Cause = store.WorkerDied })
	d := Death{Seq: 4, Report: Report{Claim: grant.Claim, Metadata: said.Metadata}}
	for name, c := range map[string]struct {
		by    store.Record
		lives bool
	}{
		"its outcome":                     {tells(5, func(*store.Record, *store.Outcome) {}), true},
		"its outcome under another claim": {tells(5, func(r *store.Record, _ *store.Outcome) { r.Claim = "other" }), true},
		"no news":                         {tells(4, func(*store.Record, *store.Outcome) {}), false},
		"the outcome of another":          {tells(5, func(r *store.Record, o *store.Outcome) { r.Claim, o.InstanceID = "other", "other" }), false},
		"of another attempt":              {tells(5, func(_ *store.Record, o *store.Outcome) { o.Attempt = 1 }), false},
		"of another slot":                 {tells(5, func(_ *store.Record, o *store.Outcome) { o.SlotStart = recordtest.Minutes(-5) }), false},
		"its extension":                   {recordtest.Part(5, grant, 1, 2), true},
		"its release":                     {recordtest.Release(grant, 5, recordtest.Minutes(1)), true},
		"the release that was known":      {recordtest.Release(grant, 4, recordtest.Minutes(1)), false},
		"the grant of another":            {recordtest.Grant(5, 1, "other"), false},
	} {
		if got := d.lives(c.by); got != c.lives {
			t.Errorf("%s: lives() = %v, want %v", name, got, c.lives)
		}
	}
	if (&Death{Seq: 4}).lives(recordtest.Release(grant, 5, recordtest.Minutes(1))) {
		t.Error("lives() = true of nobody")
	}
}

// The term of what is lost began with the earliest grant of its claim that was read.
func TestATermThatIsKnownBeginsWithItsFirstGrant(t *testing.T) {
	grant := recordtest.Grant(4, 0, "holder") // from 12:00
	second := recordtest.Part(5, grant, 1, 2)
	defective := recordtest.Part(3, grant, -1, 0)
	defective.Defect = "field token: missing"
	released := recordtest.Release(grant, 6, recordtest.Minutes(-2))
	before := recordtest.Grant(2, -1, "other")
	for name, c := range map[string]struct {
		known Known
		below []store.Record
		want  float64
	}{
		"none known":        {Known{Claim: grant.Claim}, []store.Record{second, grant, before}, 0},
		"a later one known": {Known{Claim: grant.Claim, Start: recordtest.Minutes(1)}, []store.Record{second, grant}, 0},
		"the first known":   {Known{Claim: grant.Claim, Start: recordtest.Minutes(0)}, []store.Record{second}, 0},
		"what says nothing": {Known{Claim: grant.Claim, Start: recordtest.Minutes(0)}, []store.Record{released, defective, before}, 0},
	} {
		c.known.reaches(c.below)
		if want := recordtest.Minutes(c.want); !c.known.Start.Equal(want) {
			t.Errorf("%s: the term begins at %v, want %v", name, c.known.Start, want)
		}
	}
}
