package verify_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/slotlease/slotlease/internal/recordtest"
	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/workerlease/verify"
)

// job is the grant of the slot that starts n slots after noon, as the attempt of a job, with a window in minutes.
func job(seq int64, n int, holder string, attempt int, from, to float64) store.Record {
	g := recordtest.Part(seq, recordtest.Grant(seq, n, holder), from, to)
	g.Attempt = attempt
	if start := g.WindowStart; start.After(g.SlotStart) {
		g.Token, g.FixedAt, g.ReadAt, g.Claim = start.UnixMilli(), start, start, g.Claim+start.Format("150405")
	}
	return g
}

// doneBy says at a time, in minutes, under a grant that the slot which starts n slots after noon is done.
func doneBy(seq int64, g store.Record, n int, at float64) store.Record {
	slot := recordtest.Grant(0, n, "")
	r := recordtest.Done(g, seq, slot.SlotEnd, recordtest.Minutes(at))
	r.Done = store.Done{Start: slot.SlotStart, End: slot.SlotEnd, Zone: "UTC"}.String()
	return r
}

func repeats(done, r store.Record) store.Record {
	r.DoneUntil, r.Done = done.DoneUntil, done.Done
	return r
}

func TestRunsOutsideOfTheirSlotAreSound(t *testing.T) {
	minutes, part := recordtest.Minutes, recordtest.Part
	a := job(1, 0, "a", 1, 0, 5)
	over := []store.Record{a, part(2, a, 5, 10), part(3, a, 10, 15)}
	finished := doneBy(4, over[2], 2, 12)
	freed := repeats(finished, recordtest.Release(over[2], 5, minutes(12)))
	once := doneBy(3, over[1], 1, 6)
	late := job(3, 1, "b", 1, 21, 22)
	wasDone := doneBy(2, a, 0, 1)
	late = repeats(wasDone, late)
	cut := recordtest.Outcome(a, minutes(1.5), store.Failed)
	cut.Cause, cut.GivenUp, cut.Attempt = store.TimedOut, true, 1
	stopped := cut
	stopped.Cause, stopped.GivenUp = store.Stopped, false
	with := func(r store.Record, o store.Outcome) store.Record { r.Metadata = o.Metadata(); return r }
	dead := cut
	dead.Cause = store.WorkerDied
	success := recordtest.Outcome(a, minutes(1), store.Succeeded)
	died := recordtest.Told(part(1, a, 0, 2), 2, dead)
	next, again := job(3, 1, "b", 1, 5, 10), job(2, 0, "b", 2, 2, 5)
	lost := cut
	lost.Cause = store.LeaseLost
	lateWord := with(doneBy(3, part(1, a, 0, 2), 0, 2.5), success)
	stranger := part(1, recordtest.Grant(1, 0, "a"), 0, 7)
	failed := with(recordtest.Release(a, 2, minutes(1.5)), cut) // and given up
	byItself := cut
	byItself.Cause = ""
	more := job(3, 0, "b", 2, 2, 5)
	moreDone := doneBy(4, more, 0, 3)
	back := func(seq int64, of store.Record) store.Record { // Nothing was begun, and it is known late.
		r := recordtest.Release(of, seq, of.WindowEnd)
		r.Attempt--
		return r
	}
	leader := part(1, recordtest.Grant(1, 0, "a"), 0, 1)
	other := part(2, recordtest.Grant(2, 0, "b"), 1.5, 5)
	other.Token = leader.Token + 1
	ofLeader := recordtest.Outcome(leader, minutes(1), store.Failed)
	ofLeader.Cause = store.WorkerDied
	for name, c := range map[string]struct {
		records         []store.Record
		now             float64
		missed, skipped int
		want            []string
	}{
		"a run over two slots":              {append(slices.Clone(over), finished, freed), 14.9, 0, 1, []string{"note skipped-slots 3"}},
		"and over three":                    {append(slices.Clone(over), finished, freed), 19.9, 0, 2, []string{"warning skipped-slots 3"}},
		"then another":                      {append(slices.Clone(over), finished, freed, repeats(finished, job(6, 4, "b", 1, 20, 25))), 24, 1, 2, []string{"warning missed-slots 6", "warning skipped-slots 6"}},
		"one slot was skipped":              {[]store.Record{a, over[1], once, repeats(once, recordtest.Release(over[1], 4, minutes(6))), repeats(once, job(5, 2, "b", 1, 10, 15))}, 14, 0, 1, []string{"note skipped-slots 5"}},
		"a slot that was caught up":         {[]store.Record{a, wasDone, late, doneBy(4, late, 1, 21.5)}, 21.9, 2, 0, []string{"warning missed-slots 3"}},
		"a second attempt, late":            {[]store.Record{a, over[1], job(3, 0, "b", 2, 10, 15)}, 14.9, 1, 0, []string{"warning run-cut 2", "warning missed-slots 3"}},
		"a worker that died after its slot": {[]store.Record{a, over[1], part(3, a, 10, 11)}, 15, 1, 1, []string{"warning missed-slots 3", "warning run-cut 3", "note skipped-slots 3"}},
		"cut, and given up":                 {[]store.Record{a, with(recordtest.Release(a, 2, minutes(1.5)), cut)}, 4, 0, 0, []string{"warning given-up 2", "warning run-cut 2"}},
		"and then done":                     {[]store.Record{a, failed, more, moreDone}, 4, 0, 0, []string{"warning run-cut 2"}},
		"and then done, with its outcome":   {[]store.Record{a, with(failed, byItself), more, with(moreDone, recordtest.Outcome(more, minutes(3), store.Succeeded))}, 4, 0, 0, nil},
		"and then the next one is done":     {[]store.Record{a, failed, next, doneBy(4, next, 1, 6)}, 7, 0, 0, []string{"warning given-up 2", "warning run-cut 2"}},
		"a worker that was stopped":         {[]store.Record{a, with(recordtest.Release(a, 2, minutes(1.5)), stopped)}, 4, 0, 0, nil},
		"a worker that died":                {[]store.Record{part(1, a, 0, 1)}, 4, 0, 0, []string{"warning run-cut 1"}},
		"as another one says":               {[]store.Record{part(1, a, 0, 2), died}, 4, 0, 0, []string{"warning given-up 2", "warning run-cut 2"}},
		"and it is done by a third":         {[]store.Record{part(1, a, 0, 2), died, more, moreDone}, 4, 0, 0, []string{"warning run-cut 2"}},
		"and then has to stop":              {[]store.Record{part(1, a, 0, 2), again, recordtest.Told(again, 3, dead), recordtest.Release(again, 4, minutes(4))}, 4, 0, 0, []string{"warning given-up 3", "warning run-cut 3"}},
		"and it is done after that":         {[]store.Record{part(1, a, 0, 2), died, lateWord}, 4, 0, 0, nil},
		"after the next was claimed":        {[]store.Record{part(1, a, 0, 2), died, next, with(doneBy(4, next, 0, 5.1), success)}, 6, 0, 0, nil},
		"or without an outcome":             {[]store.Record{part(1, a, 0, 2), died, doneBy(3, part(1, a, 0, 2), 0, 2.5)}, 4, 0, 0, nil},
		"or before that":                    {[]store.Record{part(1, a, 0, 2), with(doneBy(2, part(1, a, 0, 2), 0, 1), success), repeats(lateWord, recordtest.Told(part(1, a, 0, 2), 3, dead))}, 4, 0, 0, nil},
		"or it has failed after that":       {[]store.Record{part(1, a, 0, 2), died, recordtest.Told(part(1, a, 0, 2), 3, lost)}, 4, 0, 0, []string{"warning given-up 3", "warning run-cut 3"}},
		"or before that, and failed":        {[]store.Record{part(1, a, 0, 2), recordtest.Told(part(1, a, 0, 2), 2, lost), recordtest.Told(part(1, a, 0, 2), 3, dead)}, 4, 0, 0, []string{"warning given-up 2", "warning run-cut 2"}},
		"it never began":                    {[]store.Record{part(1, a, 0, 2), back(2, part(1, a, 0, 2))}, 4, 0, 0, nil},
		"and was taken for dead":            {[]store.Record{part(1, a, 0, 2), died, back(3, part(1, a, 0, 2))}, 4, 0, 0, nil},
		"and is begun late":                 {[]store.Record{a, back(2, a), job(3, 0, "a", 1, 5.1, 7)}, 7, 0, 0, nil},
		"and is begun after its slot":       {[]store.Record{job(1, 0, "a", 1, 5.5, 6), back(2, job(1, 0, "a", 1, 5.5, 6)), job(3, 0, "a", 1, 6.1, 8)}, 7, 0, 0, nil},
		"or again after it":                 {[]store.Record{a, job(2, 0, "b", 2, 5.5, 6), back(3, job(2, 0, "b", 2, 5.5, 6)), job(4, 0, "b", 2, 6.1, 8)}, 7, 0, 0, []string{"warning run-cut 1"}},
		"or it was begun before":            {[]store.Record{a, job(2, 0, "b", 1, 5.5, 6)}, 5.9, 0, 0, []string{"warning slot-granted-twice 2"}},
		"a worker that may yet live":        {[]store.Record{part(1, a, 0, 4)}, 4, 0, 0, nil},
		"a leader that died":                {[]store.Record{leader}, 2, 0, 0, []string{"warning run-cut 1"}},
		"one that may yet live":             {[]store.Record{leader}, 1, 0, 0, nil},
		"one that goes on":                  {[]store.Record{leader, part(2, leader, 1, 2)}, 2, 0, 0, nil},
		"one that has released":             {[]store.Record{leader, recordtest.Release(leader, 2, minutes(0.5))}, 2, 0, 0, nil},
		"one that another follows":          {[]store.Record{leader, other, recordtest.Told(other, 3, ofLeader)}, 4, 0, 0, []string{"warning run-cut 3"}},
		"no job's window":                   {[]store.Record{stranger}, 6, 0, 0, []string{"warning window-outside-slot 1"}},
		"a window that is too long":         {[]store.Record{job(1, 0, "a", 1, 0, 7)}, 6, 0, 0, []string{"warning window-outside-slot 1"}},
		"the slot of another":               {[]store.Record{a, part(2, job(2, 1, "b", 1, 5, 10), 4, 10)}, 4.5, 0, 0, []string{"fault overlapping-window 2"}},
	} {
		v := verify.New(verify.Options{WorkerType: "export", Now: minutes(c.now)})
		for _, r := range c.records {
			v.Add(r)
		}
		report := v.Report()
		var got []string
		for _, f := range report.Findings {
			got = append(got, fmt.Sprint(f.Severity, " ", f.Code, " ", f.Seq))
			last := slices.ContainsFunc(report.Findings, func(g verify.Finding) bool { return g.Code == verify.GivenUp })
			if f.Code == verify.RunCut && last != strings.Contains(f.Remedy, "no attempt follows") {
				t.Errorf("%s: of the run that was cut it says %q", name, f.Remedy)
			}
			if f.Code == verify.MissedSlots && (!strings.Contains(f.Remedy, "CatchUp") || strings.Contains(f.Remedy, "lead")) {
				t.Errorf("%s: of a job's slots that were missed it says %q, want what a job has against it", name, f.Remedy)
			}
		}
		if !slices.Equal(got, c.want) || report.Missed != c.missed || report.Skipped != c.skipped {
			t.Errorf("%s: found %q, %d missed and %d skipped; want %q, %d and %d", name, got, report.Missed, report.Skipped, c.want, c.missed, c.skipped)
		}
	}
}
