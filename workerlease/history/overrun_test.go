package history_test

import (
	"testing"
	"time"

	"github.com/slotlease/slotlease/internal/recordtest"
	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/workerlease/history"
)

// job is the grant of the slot that starts n slots after noon, as the attempt of a job, with a window in minutes.
func job(seq int64, n int, holder string, attempt int, from, to float64) store.Record {
	g := recordtest.Part(seq, recordtest.Grant(seq, n, holder), from, to)
	g.Attempt = attempt
	if start := g.WindowStart; start.After(g.SlotStart) && attempt > 0 {
		g.Token, g.FixedAt, g.Claim = start.UnixMilli(), start, g.Claim+start.Format("150405")
	}
	return g
}

// on extends a grant.
func on(seq int64, g store.Record, from, to float64) store.Record {
	return recordtest.Part(seq, g, from, to)
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

func TestARunThatIsLongerThanItsSlotSkipsOthers(t *testing.T) {
	minutes, release := recordtest.Minutes, recordtest.Release
	a := job(1, 0, "a", 1, 0, 5)
	a2, a3 := on(2, a, 5, 10), on(3, a, 10, 15)
	finished := doneBy(4, a3, 2, 12)
	freed := repeats(finished, release(a3, 5, minutes(12)))
	outcome := recordtest.Outcome(a, minutes(12), store.Succeeded)
	told := finished
	told.Metadata = outcome.Metadata()
	lost := recordtest.Outcome(a, minutes(6), store.Failed)
	long := []store.Record{a}
	for i := range 24 {
		long = append(long, on(int64(i+2), a, float64(5*i+5), float64(5*i+10)))
	}
	wantRead(t, map[string]reading{
		"it runs, and its slot isn't over": {
			records: []store.Record{a, a2}, now: minutes(4.9), want: []string{"12:00 held a -9.2s ×1 to 12:10:00 (runs on after its slot)"},
		},
		"it still runs": {
			records: []store.Record{a, a2, a3}, now: minutes(11),
			want: []string{"12:00 held a -9.2s ×2 to 12:15:00 (runs on after its slot)", "12:05 skipped a (still running since 2026-03-02T12:00:00Z)", "12:10 skipped a (still running since 2026-03-02T12:00:00Z)"},
		},
		"it still runs, and its first grants are older than what was read": {
			records: []store.Record{a3}, now: minutes(11),
			want: []string{"12:00 held a (from before +10m0s, runs on after its slot)", "12:05 skipped a (still running since 2026-03-02T12:00:00Z)", "12:10 skipped a (still running since 2026-03-02T12:00:00Z)"},
		},
		"it has ended, and the present slot was skipped for it": {
			records: []store.Record{a, a2, a3, told, freed}, now: minutes(13),
			want: []string{"12:00 done a -9.2s released 12:12:00 ×2 to 12:15:00 (done in 11m59s, 7m0s longer than its slot, at +12m0s)", "12:05 skipped a (still running since 2026-03-02T12:00:00Z)", "12:10 skipped a (still running since 2026-03-02T12:00:00Z)"},
		},
		"it has ended, and others come": {
			records: []store.Record{a, a2, a3, told, freed, repeats(finished, job(6, 4, "b", 1, 20, 25))}, now: minutes(21),
			want: []string{"12:00 done a -9.2s released 12:12:00 ×2 to 12:15:00 (done in 11m59s, 7m0s longer than its slot, at +12m0s)", "12:05 skipped a (still running since 2026-03-02T12:00:00Z)", "12:10 skipped a (still running since 2026-03-02T12:00:00Z)", "12:15 missed", "12:20 held b -9.2s"},
		},
		"it ends in time for the present slot": {
			records: []store.Record{a, a2, doneBy(3, a2, 0, 5.5), release(a2, 4, minutes(5.5)), job(5, 1, "b", 1, 5.5, 10)}, now: minutes(6),
			want: []string{"12:00 done a -9.2s released 12:05:30 ×1 to 12:10:00 (30s longer than its slot, at +5m30s)", "12:05 held b +30.0s (from +30.0s)"},
		},
		"its lease reaches into the next slot, and it ends before": {
			records: []store.Record{a, a2, doneBy(3, a2, 0, 4.9), release(a2, 4, minutes(4.9))}, now: minutes(6),
			want: []string{"12:00 done a -9.2s released 12:04:54 ×1 to 12:10:00 (at +4m54s)", "12:05 free"},
		},
		"its worker dies after its slot, and another goes on": {
			records: []store.Record{a, a2, job(3, 0, "b", 2, 10, 15)}, now: minutes(11),
			want: []string{"12:00 failed a -9.2s ×1 to 12:10:00 (its worker died, 5m0s longer than its slot)", "12:00 held b +10m0s (late, from +10m0s)", "12:05 missed (overrun: a worker died in its run since 2026-03-02T12:00:00Z)", "12:10 skipped b (still running since 2026-03-02T12:10:00Z)"},
		},
		"its worker dies after its slot": {
			records: []store.Record{a, on(2, a, 5, 5.5)}, now: minutes(5.6),
			want: []string{"12:00 failed a -9.2s ×1 to 12:05:30 (its worker died, 30s longer than its slot)", "12:05 free (overrun: a worker died in its run since 2026-03-02T12:00:00Z)"},
		},
		"its worker dies, and the first slots that it kept were skipped": {
			records: []store.Record{a, a2, on(3, a, 10, 11)}, now: minutes(20),
			want: []string{"12:00 failed a -9.2s ×2 to 12:11:00 (its worker died, 6m0s longer than its slot)", "12:05 skipped a (still running since 2026-03-02T12:00:00Z)", "12:10 missed (overrun: a worker died in its run since 2026-03-02T12:00:00Z)", "12:15 missed", "12:20 free"},
		},
		"it fails after its slot": {
			records: []store.Record{a, a2, recordtest.Told(a2, 3, lost)}, now: minutes(11),
			want: []string{"12:00 failed a -9.2s ×1 to 12:10:00 (failed after 5m59s, 1m0s longer than its slot)", "12:05 skipped a (still running since 2026-03-02T12:00:00Z)", "12:10 free"},
		},
		"it is overridden after its slot": {
			records: []store.Record{a, a2, changed(release(a2, 3, minutes(6)), func(r *store.Record) { r.Kind, r.Claim, r.Token = store.KindOverride, "op", r.Token+1 })}, now: minutes(11),
			want: []string{"12:00 overridden a -9.2s ×1 to 12:10:00 (1m0s longer than its slot, at +6m0s)", "12:00 override a (as of 2026-03-02T12:06:00.000Z)", "12:05 skipped a (still running since 2026-03-02T12:00:00Z)", "12:10 free"},
		},
		"the beginning was not read": {
			records: []store.Record{on(8, a, 5, 10)}, now: minutes(6),
			want: []string{"12:00 held a (from before +5m0s, runs on after its slot)", "12:05 skipped a (still running since 2026-03-02T12:00:00Z)"},
		},
		"very many are one row": {
			records: long, now: minutes(122),
			want: []string{"12:00 held a -9.2s ×24 to 14:05:00 (runs on after its slot)", "12:05…14:00 skipped a (23 slots, still running since 2026-03-02T12:00:00Z)", "14:00 skipped a (still running since 2026-03-02T12:00:00Z)"},
		},
	})
	for at, want := range map[float64]float64{4: 0, 6: 1, 11: 6, 13: 7} {
		if e := history.Read([]store.Record{a, a2, a3, told, freed}, minutes(at), nil)[0]; e.Overran(minutes(at)).Minutes() != want {
			t.Errorf("Overran() at minute %v = %v, want %v min", at, e.Overran(minutes(at)), want)
		}
	}
}

func TestASlotThatWasCaughtUpIsDoneLate(t *testing.T) {
	minutes, release := recordtest.Minutes, recordtest.Release
	first := job(1, 0, "a", 1, 0, 5)
	wasDone := doneBy(2, first, 0, 1)
	second, third := repeats(wasDone, job(3, 1, "b", 1, 21, 22)), job(6, 2, "b", 1, 21.5, 22)
	doneSecond := doneBy(4, second, 1, 21.5)
	third = repeats(doneSecond, third)
	doneThird := doneBy(7, third, 2, 21.8)
	wantRead(t, map[string]reading{
		"all of them, one after the other": {
			records: []store.Record{first, wasDone, second, doneSecond, repeats(doneSecond, release(second, 5, minutes(21.5))), third, doneThird, repeats(doneThird, release(third, 8, minutes(21.8)))},
			now:     minutes(22),
			want: []string{
				"12:00 done a -9.2s (at +1m0s)", "12:05 done b +16m0s released 12:21:30 (late, from +16m0s, at +16m30s)", "12:10 done b +11m30s released 12:21:48 (late, from +11m30s, at +11m48s)",
				"12:15 missed", "12:20 free",
			},
		},
		"the newest": {
			records: []store.Record{first, wasDone, job(3, 3, "b", 1, 21, 22)}, now: minutes(21.5),
			want: []string{"12:00 done a -9.2s (at +1m0s)", "12:05 missed", "12:10 missed", "12:15 held b +6m0s (late, from +6m0s)", "12:20 free"},
		},
		"the last, and its worker dies": {
			records: []store.Record{first, wasDone, second}, now: minutes(22.1),
			want: []string{"12:00 done a -9.2s (at +1m0s)", "12:05 failed b +16m0s (late, from +16m0s, its worker died)", "12:10 missed", "12:15 missed", "12:20 free"},
		},
		"while a slot begins": {
			records: []store.Record{first, wasDone, job(3, 3, "b", 1, 24, 26)}, now: minutes(25.5),
			want: []string{"12:00 done a -9.2s (at +1m0s)", "12:05 missed", "12:10 missed", "12:15 held b +9m0s (late, from +9m0s)", "12:20 missed", "12:25 skipped b (still running since 2026-03-02T12:24:00Z)"},
		},
	})
	late := history.Read([]store.Record{first, wasDone, second, doneSecond}, minutes(22), nil)[1]
	if !late.CaughtUp() || late.Overran(minutes(22)) != 0 || late.DoneAt != minutes(21.5) {
		t.Errorf("Read() = %+v, want it caught up, and done at 12:21:30", late)
	}
}

func TestWhatIsCutSaysWhy(t *testing.T) {
	minutes, release := recordtest.Minutes, recordtest.Release
	a := job(1, 0, "a", 1, 0, 2)
	cut := recordtest.Outcome(a, minutes(1.5), store.Failed)
	cut.Cause, cut.Error = store.TimedOut, "context deadline exceeded"
	dead := store.Outcome{Result: store.Failed, Cause: store.WorkerDied, GivenUp: true, InstanceID: "a", Attempt: 1, SlotStart: a.SlotStart, SlotEnd: a.SlotEnd}
	last := cut
	last.GivenUp = true
	with := func(r store.Record, o store.Outcome) store.Record { r.Metadata = o.Metadata(); return r }
	b := job(2, 0, "b", 2, 2, 4)
	wantRead(t, map[string]reading{
		"by its time-out":                {records: []store.Record{a, with(release(a, 2, minutes(1.5)), cut)}, now: minutes(2), want: []string{"12:00 failed a -9.2s released 12:01:30 (timed out after 1m29s)"}},
		"for good":                       {records: []store.Record{a, with(release(a, 2, minutes(1.5)), last)}, now: minutes(2), want: []string{"12:00 failed a -9.2s released 12:01:30 (timed out after 1m29s, given up)"}},
		"its worker died":                {records: []store.Record{a}, now: minutes(3), want: []string{"12:00 failed a -9.2s (to +2m0s, its worker died)"}},
		"as another worker says":         {records: []store.Record{a, recordtest.Told(a, 2, dead)}, now: minutes(3), want: []string{"12:00 failed a -9.2s (to +2m0s, its worker died, given up)"}},
		"it may yet say what came of it": {records: []store.Record{job(1, 0, "a", 1, 0, 5)}, now: minutes(5.5), want: []string{"12:00 expired a -9.2s", "12:05 free"}},
		"and it doesn't":                 {records: []store.Record{job(1, 0, "a", 1, 0, 5)}, now: minutes(6), want: []string{"12:00 failed a -9.2s (its worker died)", "12:05 free"}},
		"and another did it":             {records: []store.Record{a, b, doneBy(3, b, 0, 3)}, now: minutes(4), want: []string{"12:00 expired a -9.2s (to +2m0s, its worker died)", "12:00 done b +2m0s (from +2m0s, at +3m0s)"}},
		"and both":                       {records: []store.Record{a, b}, now: minutes(4.5), want: []string{"12:00 failed a -9.2s (to +2m0s, its worker died)", "12:00 failed b +2m0s (from +2m0s to +4m0s, its worker died)"}},
		"without a job":                  {records: []store.Record{job(1, 0, "a", 0, 0, 5)}, now: minutes(5), want: []string{"12:00 expired a -9.2s", "12:05 free"}},
	})
}

// While a store stands still, another worker may take one for dead that says what came of its work.
func TestWhoSaysWhatCameOfItsWorkHasNotDied(t *testing.T) {
	minutes := recordtest.Minutes
	a := job(1, 0, "a", 1, 0, 2)
	dead := store.Outcome{Result: store.Failed, Cause: store.WorkerDied, GivenUp: true, InstanceID: "a", Attempt: 1, SlotStart: a.SlotStart, SlotEnd: a.SlotEnd}
	lost := dead
	lost.Cause = store.LeaseLost
	success := recordtest.Outcome(a, minutes(1), store.Succeeded)
	with := func(r store.Record) store.Record { r.Metadata = success.Metadata(); return r }
	told := func(seq int64) store.Record { return recordtest.Told(a, seq, dead) }
	b, second := job(3, 1, "b", 1, 5, 10), job(2, 0, "b", 2, 2, 4)
	wantRead(t, map[string]reading{
		"done after that":                          {records: []store.Record{a, told(2), with(doneBy(3, a, 0, 2.5))}, now: minutes(3), want: []string{"12:00 done a -9.2s (done in 59s, at +2m30s)"}},
		"done after that, without an outcome":      {records: []store.Record{a, told(2), doneBy(3, a, 0, 2.5)}, now: minutes(3), want: []string{"12:00 done a -9.2s (at +2m30s)"}},
		"done before that":                         {records: []store.Record{a, with(doneBy(2, a, 0, 1)), repeats(doneBy(2, a, 0, 1), told(3))}, now: minutes(3), want: []string{"12:00 done a -9.2s (done in 59s, at +1m0s)"}},
		"done before that, without an outcome":     {records: []store.Record{a, doneBy(2, a, 0, 1), repeats(doneBy(2, a, 0, 1), told(3))}, now: minutes(3), want: []string{"12:00 done a -9.2s (at +1m0s)"}},
		"done when another had the next slot":      {records: []store.Record{a, told(2), b, with(doneBy(4, b, 0, 5.1))}, now: minutes(6), want: []string{"12:00 done a -9.2s (done in 59s, at +5m6s)", "12:05 held b -9.2s"}},
		"lost before that":                         {records: []store.Record{a, recordtest.Told(a, 2, lost), told(3)}, now: minutes(3), want: []string{"12:00 failed a -9.2s (lease lost, given up)"}},
		"lost after that":                          {records: []store.Record{a, told(2), recordtest.Told(a, 3, lost)}, now: minutes(3), want: []string{"12:00 failed a -9.2s (lease lost, given up)"}},
		"a success that is told before that":       {records: []store.Record{a, recordtest.Told(a, 2, success), told(3)}, now: minutes(3), want: []string{"12:00 expired a -9.2s (to +2m0s, done in 59s)"}},
		"the first attempt died, and b's was done": {records: []store.Record{a, second, recordtest.Told(second, 3, dead), doneBy(4, second, 0, 3)}, now: minutes(4), want: []string{"12:00 expired a -9.2s (to +2m0s, its worker died, given up)", "12:00 done b +2m0s (from +2m0s, at +3m0s)"}},
	})
	for _, records := range [][]store.Record{{a, told(2), doneBy(3, a, 0, 2.5)}, {a, with(doneBy(2, a, 0, 1)), repeats(doneBy(2, a, 0, 1), told(3))}} {
		if e := history.Read(records, minutes(3), nil)[0]; e.State != history.Done || e.Cause != "" || e.Silent() || e.Outcome.GivenUp || e.Outcome.Result == store.Failed {
			t.Errorf("Read() = %+v, want it done, and nothing of a death", e)
		}
	}
}

func TestAMissedSlotNamesTheOrderForIt(t *testing.T) {
	a := recordtest.Grant(1, 0, "a")
	pause := store.Order{Kind: store.OrderPause, At: recordtest.Minutes(1), Until: recordtest.Minutes(14), By: "ann", Why: "upgrade"}
	begins := a
	begins.Seq, begins.Kind, begins.WindowStart = 2, store.KindOrder, a.WindowEnd
	begins.Orders, _ = store.FormatOrders([]store.Order{pause})
	text, _ := pause.MarshalJSON()
	begins.Metadata = string(text)
	rows := history.Read([]store.Record{a, begins}, recordtest.Minutes(31), nil)
	var got []string
	for _, e := range rows[2:] {
		got = append(got, rowText(e))
	}
	want := []string{"12:05 missed (" + pause.String() + ")", "12:10 missed (" + pause.String() + ")", "12:15 missed", "12:20 missed", "12:25 missed", "12:30 free"}
	if len(got) != len(want) {
		t.Fatalf("Read() = %q, want %q", got, want)
	}
	for i := range want {
		if got[i] != want[i] {
			t.Errorf("row %d is %q, want %q", i, got[i], want[i])
		}
	}
}

func TestWhoHolds(t *testing.T) {
	minutes := recordtest.Minutes
	a := job(1, 0, "a", 1, 0, 5)
	failed := recordtest.Told(a, 2, recordtest.Outcome(a, minutes(1), store.Failed))
	for name, c := range map[string]struct {
		records []store.Record
		now     float64
		want    string
	}{
		"held":                       {[]store.Record{a}, 1, "a"},
		"upcoming":                   {[]store.Record{a}, -0.1, ""},
		"done":                       {[]store.Record{a, doneBy(2, a, 0, 1)}, 2, ""},
		"released":                   {[]store.Record{a, recordtest.Release(a, 2, minutes(1))}, 2, ""},
		"failed, and it is kept":     {[]store.Record{a, failed}, 2, "a"},
		"over":                       {[]store.Record{a}, 5, ""},
		"for a slot before this one": {[]store.Record{a, on(2, a, 5, 10)}, 7, "a"},
	} {
		e, held := history.Holder(history.Read(c.records, minutes(c.now), nil), minutes(c.now))
		if e.Record.InstanceID != c.want || held != (c.want != "") {
			t.Errorf("%s: Holder() = %q, %v, want %q", name, e.Record.InstanceID, held, c.want)
		}
	}
}

// A worker learns of its lease when that is over, since the store stood still. It says so by a release that frees nothing.
func TestALeaseThatNeverBeganIsNoDeath(t *testing.T) {
	minutes := recordtest.Minutes
	a := job(1, 0, "a", 1, 0, 2)
	dead := store.Outcome{Result: store.Failed, Cause: store.WorkerDied, GivenUp: true, InstanceID: "a", Attempt: 1, SlotStart: a.SlotStart, SlotEnd: a.SlotEnd}
	back := func(seq int64, of store.Record, at float64) store.Record {
		r := recordtest.Release(of, seq, minutes(at))
		r.Attempt--
		return r
	}
	told := recordtest.Told(a, 2, dead)
	again := func(seq int64) store.Record { return job(seq, 0, "a", 1, 2.1, 4) }
	wantRead(t, map[string]reading{
		"given back at its end":            {records: []store.Record{a, back(2, a, 2)}, now: minutes(4), want: []string{"12:00 released a -9.2s released 12:02:00 (never begun)"}},
		"in its middle":                    {records: []store.Record{a, back(2, a, 1)}, now: minutes(4), want: []string{"12:00 released a -9.2s released 12:01:00 (never begun)"}},
		"taken for dead before":            {records: []store.Record{a, told, back(3, a, 2)}, now: minutes(4), want: []string{"12:00 released a -9.2s released 12:02:00 (never begun)"}},
		"and after":                        {records: []store.Record{a, back(2, a, 2), recordtest.Told(a, 3, dead)}, now: minutes(4), want: []string{"12:00 released a -9.2s released 12:02:00 (never begun)"}},
		"and begun in what was left":       {records: []store.Record{a, back(2, a, 2), again(3)}, now: minutes(3), want: []string{"12:00 released a -9.2s released 12:02:00 (never begun)", "12:00 held a +2m6s (from +2m6s)"}},
		"which ends without a word":        {records: []store.Record{a, back(2, a, 2), again(3)}, now: minutes(5), want: []string{"12:00 released a -9.2s released 12:02:00 (never begun)", "12:00 failed a +2m6s (from +2m6s to +4m0s, its worker died)", "12:05 free"}},
		"another's release changes it not": {records: []store.Record{a, back(2, job(1, 0, "b", 1, 1, 2), 2)}, now: minutes(1.5), want: []string{"12:00 held a -9.2s", "12:00 poison b (it is not of the term in seq 1, and is no grant)"}},
	})
}

// A slot that a run went on into may be begun after that, if that run has not succeeded and the job may begin so late.
func TestASlotThatARunWentOnIntoMayYetBegin(t *testing.T) {
	minutes := recordtest.Minutes
	a := job(1, 0, "a", 1, 0, 5)
	over := on(2, a, 5, 8)
	failed := recordtest.Release(over, 3, minutes(6))
	failed.Metadata = recordtest.Outcome(a, minutes(6), store.Failed).Metadata()
	late, early := &store.JobTimes{StartWithin: 4 * time.Minute}, &store.JobTimes{StartDefault: true}
	for name, test := range map[string]struct {
		records []store.Record
		at      float64
		job     *store.JobTimes
		want    bool
	}{
		"it runs, and the job may begin late": {[]store.Record{a, over}, 7, late, true},
		"it runs, and the job may not":        {[]store.Record{a, over}, 7, early, false},
		"it runs, and the job may for now":    {[]store.Record{a, over}, 6, early, true},
		"it runs, and nothing is known":       {[]store.Record{a, over}, 7, nil, false},
		"it has failed, and nothing is known": {[]store.Record{a, over, failed}, 7, nil, true},
		"it has failed, and the job may not":  {[]store.Record{a, over, failed}, 7, early, false},
		"it has succeeded":                    {[]store.Record{a, over, doneBy(3, over, 1, 6), recordtest.Release(over, 4, minutes(6))}, 7, late, false},
	} {
		entries := history.Read(test.records, minutes(test.at), nil)
		if e := entries[len(entries)-1]; e.State != history.Skipped || e.MayBegin(entries, test.job, minutes(test.at)) != test.want {
			t.Errorf("%s: MayBegin() of %s = %v, want %v", name, rowText(e), !test.want, test.want)
		}
	}
}
