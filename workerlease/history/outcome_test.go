package history_test

import (
	"strings"
	"testing"
	"time"

	"github.com/slotlease/slotlease/internal/recordtest"
	"github.com/slotlease/slotlease/slots"
	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/workerlease/history"
)

func TestReadShowsWhatCameOfTheWork(t *testing.T) {
	minutes, part, grant, releaseOf, doneBy, told := recordtest.Minutes, recordtest.Part, recordtest.Grant, recordtest.Release, recordtest.Done, recordtest.Told
	a, b := grant(1, 0, "a"), grant(2, 1, "b")
	outcome := func(g store.Record, ended float64, result store.Result, change func(o *store.Outcome)) store.Outcome {
		o := recordtest.Outcome(g, minutes(ended), result)
		if change != nil {
			change(&o)
		}
		return o
	}
	exits3 := func(o *store.Outcome) { o.ExitCode, o.Exited, o.Error = 3, true, "exit status 3" }
	says := func(r store.Record, o store.Outcome) store.Record { r.Metadata = o.Metadata(); return r }
	// b takes over a's slot.
	over := part(3, changed(b, func(r *store.Record) { r.SlotStart, r.SlotEnd, r.FixedAt = a.SlotStart, a.SlotEnd, minutes(1) }), 1, 5)
	over.Token = a.Token + 1
	failed := outcome(a, 0.25, store.Failed, exits3)
	released := says(releaseOf(a, 2, minutes(0.25)), failed)
	again := part(2, changed(a, func(r *store.Record) { r.Attempt, r.Claim, r.Token = 2, "again", a.Token+1 }), 1, 5)
	madeUp := func(g store.Record, seq int64, at float64) store.Record {
		return says(doneBy(g, seq, minutes(10), minutes(at)), outcome(b, 10.5, store.Succeeded, func(o *store.Outcome) { o.Begun = minutes(10) }))
	}
	member := changed(a, func(r *store.Record) { r.Group = "eu" })
	wantRead(t, map[string]reading{
		"done": {
			records: []store.Record{a, says(doneBy(a, 2, a.SlotEnd, minutes(4.1)), outcome(a, 4.05, store.Succeeded, nil))}, now: minutes(4.5),
			want: []string{"12:00 done a -9.2s (done in 4m2s, at +4m5s)"},
		},
		"done, forgotten by a foreign record, and said again": {
			records: []store.Record{
				a, says(doneBy(a, 2, a.SlotEnd, minutes(4.1)), outcome(a, 4.05, store.Succeeded, nil)), grant(3, 1, "b"),
				says(doneBy(grant(3, 1, "b"), 4, a.SlotEnd, minutes(5.5)), outcome(a, 4.05, store.Succeeded, nil)),
			}, now: minutes(6),
			want: []string{"12:00 done a -9.2s (done in 4m2s, at +4m5s)", "12:05 held b -9.2s"},
		},
		"made up for, forgotten by a foreign record, and said again": {
			records: []store.Record{a, grant(2, 2, "b"), madeUp(grant(2, 2, "b"), 3, 10.5), grant(4, 3, "c"), madeUp(grant(4, 3, "c"), 5, 15.5)}, now: minutes(16),
			want: []string{"12:00 expired a -9.2s", "12:05 done b (done in 30s, at +5m30s)", "12:10 expired b -9.2s", "12:15 held c -9.2s"},
		},
		"failed, and released": {
			records: []store.Record{a, released}, now: minutes(0.5),
			want: []string{"12:00 failed a -9.2s released 12:00:15 (exit code 3 after 14s)"},
		},
		"failed, and the lease is kept": {
			records: []store.Record{a, told(a, 2, failed)}, now: minutes(0.5),
			want: []string{"12:00 failed a -9.2s (exit code 3 after 14s)"},
		},
		"failed, and the lease goes on": {
			records: []store.Record{part(1, a, 0, 1), told(part(1, a, 0, 1), 2, failed), part(3, a, 1, 2)}, now: minutes(1.5),
			want: []string{"12:00 failed a -9.2s ×1 to 12:02:00 (exit code 3 after 14s)"},
		},
		"failed with an error of several lines, for good": {
			records: []store.Record{a, told(a, 2, outcome(a, 0.1, store.Failed, func(o *store.Outcome) { o.GivenUp, o.Error = true, "\n no disk \r\nstack" }))}, now: minutes(1),
			want: []string{"12:00 failed a -9.2s (failed after 5s, given up: no disk)"},
		},
		"failed with a long error, and nobody knows when": {
			records: []store.Record{a, told(a, 2, outcome(a, 0.1, store.Failed, func(o *store.Outcome) { o.Begun, o.Error = time.Time{}, strings.Repeat("é", 121) }))}, now: minutes(1),
			want: []string{"12:00 failed a -9.2s (failed: " + strings.Repeat("é", 120) + "…)"},
		},
		"failed, and taken over": {
			records: []store.Record{a, released, over}, now: minutes(1.5),
			want: []string{"12:00 failed a -9.2s released 12:00:15 (exit code 3 after 14s)", "12:00 held b +1m0s (from +1m0s)"},
		},
		"failed, and done by another": {
			records: []store.Record{a, released, over, says(doneBy(over, 4, a.SlotEnd, minutes(2)), outcome(over, 2, store.Succeeded, func(o *store.Outcome) { o.Begun = minutes(1) }))}, now: minutes(2),
			want: []string{"12:00 released a -9.2s released 12:00:15 (exit code 3 after 14s, at +15.0s)", "12:00 done b +1m0s (from +1m0s, done in 1m0s, at +2m0s)"},
		},
		"failed, and recorded when another had taken over": {
			records: []store.Record{part(1, a, 0, 1), over, told(over, 4, outcome(a, 0.9, store.Failed, exits3))}, now: minutes(2),
			want: []string{"12:00 failed a -9.2s (exit code 3 after 53s)", "12:00 held b +1m0s (from +1m0s)"},
		},
		"failed, and recorded when the next slot was claimed": {
			records: []store.Record{a, b, told(b, 3, outcome(a, 4.9, store.Failed, exits3))}, now: minutes(4.95),
			want: []string{"12:00 failed a -9.2s (exit code 3 after 4m53s)", "12:05 upcoming b -9.2s"},
		},
		"two attempts of one worker, and the first is recorded late": {
			records: []store.Record{
				part(1, changed(a, func(r *store.Record) { r.Attempt = 1 }), 0, 1), again,
				told(again, 3, outcome(a, 0.1, store.Failed, func(o *store.Outcome) { o.Attempt = 1 })),
			}, now: minutes(2),
			want: []string{"12:00 failed a -9.2s (failed after 5s)", "12:00 held a -9.2s (from +1m0s)"},
		},
		"failed at a member of a group": {
			records: []store.Record{member, told(member, 2, outcome(member, 0.25, store.Failed, func(o *store.Outcome) { o.InstanceID = "z"; exits3(o) }))}, now: minutes(1),
			want: []string{"12:00 failed a -9.2s (exit code 3 after 14s)"},
		},
		"the newest of two": {
			records: []store.Record{a, told(a, 2, failed), told(a, 3, outcome(a, 1, store.Failed, func(o *store.Outcome) { o.Error = "again" }))}, now: minutes(2),
			want: []string{"12:00 failed a -9.2s (failed after 59s: again)"},
		},
		"a success that isn't recorded as done": {
			records: []store.Record{a, told(a, 2, failed), told(a, 3, outcome(a, 1, store.Succeeded, nil))}, now: minutes(6),
			want: []string{"12:00 expired a -9.2s (done in 59s)", "12:05 free"},
		},
		"a missed slot that was made up for": {
			records: []store.Record{a, grant(2, 2, "b"), says(doneBy(grant(2, 2, "b"), 3, minutes(10), minutes(10.5)), outcome(b, 10.5, store.Succeeded, func(o *store.Outcome) { o.Begun = minutes(10) }))}, now: minutes(11),
			want: []string{"12:00 expired a -9.2s", "12:05 done b (done in 30s, at +5m30s)", "12:10 held b -9.2s"},
		},
		"the record of an outcome is all that was read": {
			records: []store.Record{told(b, 9, failed)}, now: minutes(6),
			want: []string{"12:00 failed b (exit code 3 after 14s)"},
		},
		"a release with an outcome is all that was read": {records: []store.Record{released}, now: minutes(1)},
		"an outcome that can't be read": {
			records: []store.Record{a, changed(told(a, 2, failed), func(r *store.Record) { r.Metadata = "{" })}, now: minutes(1),
			want: []string{"12:00 held a -9.2s", "12:00 outcome a ({)"},
		},
	})
}

func TestALeaseIsInForceWhateverCameOfItsWork(t *testing.T) {
	a, at := recordtest.Grant(1, 0, "a"), recordtest.Minutes
	failed := recordtest.Outcome(a, at(1), store.Failed)
	for name, test := range map[string]struct {
		then  store.Record
		until float64
	}{
		"kept":       {recordtest.Told(a, 2, failed), 5},
		"released":   {recordtest.Release(a, 2, at(2)), 2},
		"overridden": {changed(recordtest.Release(a, 2, at(3)), func(r *store.Record) { r.Kind, r.Claim, r.Token = store.KindOverride, "op", r.Token+1 }), 3},
		"done":       {recordtest.Done(a, 2, a.SlotEnd, at(1)), 5},
	} {
		entries := history.Read([]store.Record{a, test.then}, at(1.5), nil)
		for minute, want := range map[float64]bool{-0.1: false, 0: true, test.until - 0.1: true, test.until: false} {
			if got := entries[0].InForce(at(minute)); got != want {
				t.Errorf("%s: InForce() at minute %v = %v, want %v", name, minute, got, want)
			}
		}
	}
	if missed := (history.Entry{State: history.Missed, Window: slots.Slot{Start: at(0), End: at(5)}}); missed.InForce(at(1)) {
		t.Error("InForce() of a missed slot, want it false")
	}
}

func TestThatARecordIsLostIsSaidInWords(t *testing.T) {
	g := recordtest.Grant(1, 0, "a")
	r := recordtest.Told(g, 2, store.Outcome{})
	r.Metadata = store.Lost{Seq: 7, Token: 1, Claim: "c", InstanceID: "b", End: recordtest.Minutes(5)}.Metadata()
	var notes []string
	for _, e := range history.Read([]store.Record{r, g}, recordtest.Minutes(6), nil) {
		notes = append(notes, e.Note())
	}
	if text := strings.Join(notes, "; "); !strings.Contains(text, `the store has lost record 7, of "b"`) || strings.Contains(text, "{") {
		t.Errorf("notes %q, want that record 7 of b is lost, in words", text)
	}
}
