package verify_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/slotlease/slotlease/internal/recordtest"
	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/workerlease/verify"
)

// found is what is found in records, oldest first, some time after the last of them.
func found(records []store.Record, now time.Time) (all []string) {
	v := verify.New(verify.Options{WorkerType: "export", Now: now})
	for _, r := range records {
		v.Add(r)
	}
	for _, f := range v.Report().Findings {
		text := fmt.Sprint(f.Severity, " ", f.Code, " ", f.Seq)
		if f.SupersededBy != 0 {
			text += fmt.Sprint(" by ", f.SupersededBy)
		}
		all = append(all, text)
	}
	return all
}

// grants are those of slots in a row.
func grants(first, last int64) (all []store.Record) {
	for seq := first; seq <= last; seq++ {
		all = append(all, recordtest.Grant(seq, int(seq), "a"))
	}
	return all
}

func TestWhatASoundLedgerShows(t *testing.T) {
	minutes := recordtest.Minutes
	a, b := recordtest.Grant(1, 0, "a"), recordtest.Grant(2, 1, "b")
	poison := b
	poison.WindowEnd = poison.WindowStart.AddDate(2, 0, 0)
	reset := recordtest.Part(3, a, 11, 11)
	reset.Kind, reset.Claim, reset.Token, reset.ReadAt, reset.FixedAt = store.KindReset, "reset", minutes(11).UnixMilli(), minutes(11), minutes(11)
	ahead := b
	ahead.WindowStart, ahead.WindowEnd, ahead.Token = minutes(300), minutes(305), minutes(300).UnixMilli()
	ahead.SlotStart, ahead.SlotEnd = ahead.WindowStart, ahead.WindowEnd
	override := reset
	override.Kind = store.KindOverride
	later := recordtest.Grant(4, 3, "c")
	released := recordtest.Release(recordtest.Part(1, a, 0, 5), 2, minutes(2))
	takeover := recordtest.Part(3, a, 2, 5)
	takeover.Claim, takeover.Token, takeover.InstanceID = "other", minutes(2).UnixMilli(), "b"
	for name, c := range map[string]struct {
		records []store.Record
		now     time.Time
		want    []string
	}{
		"nothing":                                {nil, minutes(1), nil},
		"grants in a row":                        {grants(1, 5), minutes(29), nil},
		"a release, and another for the rest":    {[]store.Record{a, released, takeover}, minutes(4), nil},
		"an extension":                           {[]store.Record{recordtest.Part(1, a, 0, 2), recordtest.Part(2, a, 2, 5)}, minutes(4), nil},
		"what is done":                           {[]store.Record{a, recordtest.Done(a, 2, minutes(5), minutes(1))}, minutes(4), nil},
		"poison that workers superseded":         {[]store.Record{a, poison, reset, later}, minutes(19), []string{"warning window-too-long 2 by 3", "note reset 3", "warning missed-slots 4"}},
		"poison whose time has come since":       {[]store.Record{a, ahead, reset, later}, minutes(400), []string{"warning missed-slots 2", "warning window-too-far-ahead 2 by 3", "note reset 3", "warning missed-slots 4"}},
		"poison that an operator ended":          {[]store.Record{a, poison, override, later}, minutes(19), []string{"warning window-too-long 2 by 3", "note override 3", "warning missed-slots 4"}},
		"poison at the head":                     {[]store.Record{a, poison}, minutes(9), []string{"fault window-too-long 2"}},
		"slots that nobody claimed":              {[]store.Record{a, recordtest.Grant(2, 4, "b")}, minutes(24), []string{"warning missed-slots 2"}},
		"what was trimmed":                       {grants(5000, 5120), minutes(5 * 5120), nil},
		"a record above a free key":              {[]store.Record{a, recordtest.Grant(7, 1, "b")}, minutes(4), []string{"warning above-free-key 7"}},
		"an append that landed on a trimmed key": {slices.Concat(grants(7, 7), grants(300, 430)), minutes(5 * 431), []string{"note trim-unfinished 300"}},
		"records that are gone":                  {slices.Concat(grants(1, 7), grants(9, 20)), minutes(104), []string{"fault gap-in-keys 9", "warning missed-slots 9"}},
	} {
		if got := found(c.records, c.now); !slices.Equal(got, c.want) {
			t.Errorf("%s: found %q, want %q", name, got, c.want)
		}
	}
}

// Slots that nobody may claim in a pause are no reason to look for workers.
func TestSlotsOfAPauseAreANote(t *testing.T) {
	minutes := recordtest.Minutes
	a, d := recordtest.Grant(1, 0, "a"), recordtest.Grant(4, 6, "d")
	pause := store.Order{Kind: store.OrderPause, At: minutes(1), Until: minutes(25), By: "ann", Why: "upgrade"}
	end := pause
	end.At, end.Until = minutes(16), minutes(16)
	begins, ends := note(store.KindOrder, a), note(store.KindOrder, a)
	begins.Orders, _ = store.FormatOrders([]store.Order{pause})
	begins.Metadata = metadata(t, pause)
	ends.Seq, ends.Metadata = 3, metadata(t, end)
	outcome := note(store.KindOutcome, a)
	outcome.Orders = begins.Orders
	for name, c := range map[string]struct {
		records []store.Record
		want    []string
	}{
		"a pause up to its end":  {[]store.Record{a, begins, third(d)}, []string{"note missed-slots 3: Nobody claimed 4 slots from 2026-03-02T12:05:00.000Z on, in a pause.", "warning missed-slots 3: Nobody claimed 1 slot from 2026-03-02T12:25:00.000Z on."}},
		"a pause that was ended": {[]store.Record{a, begins, ends, d}, []string{"note missed-slots 4: Nobody claimed 3 slots from 2026-03-02T12:05:00.000Z on, in a pause.", "warning missed-slots 4: Nobody claimed 2 slots from 2026-03-02T12:20:00.000Z on."}},
		// The record that began it was trimmed: others repeat it.
		"one that others repeat only": {[]store.Record{a, outcome, third(d)}, []string{"note missed-slots 3: Nobody claimed 4 slots from 2026-03-02T12:05:00.000Z on, in a pause.", "warning missed-slots 3: Nobody claimed 1 slot from 2026-03-02T12:25:00.000Z on."}},
		"a drain":                     {[]store.Record{a, ofDrain(t, begins), third(d)}, []string{"warning missed-slots 3: Nobody claimed 5 slots from 2026-03-02T12:05:00.000Z on, and hosts were drained then."}},
	} {
		v := verify.New(verify.Options{WorkerType: "export", Now: minutes(34)})
		for _, r := range c.records {
			v.Add(r)
		}
		var got []string
		for _, f := range v.Report().Findings {
			got = append(got, fmt.Sprint(f.Severity, " ", f.Code, " ", f.Seq, ": ", f.Text))
		}
		slices.Sort(got)
		if !slices.Equal(got, c.want) || v.Report().Missed != 5 {
			t.Errorf("%s: found %q, want %q", name, got, c.want)
		}
	}
}

// third is a record as the third.
func third(r store.Record) store.Record { r.Seq = 3; return r }

// ofDrain is the record of a drain in place of that of a pause.
func ofDrain(t *testing.T, r store.Record) store.Record {
	t.Helper()
	o := store.Order{Kind: store.OrderDrain, Target: "vm-1", At: recordtest.Minutes(1), Until: recordtest.Minutes(25)}
	r.Orders, _ = store.FormatOrders([]store.Order{o})
	r.Metadata = metadata(t, o)
	return r
}

func metadata(t *testing.T, o store.Order) string {
	t.Helper()
	text, err := o.MarshalJSON()
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// note is a record of a kind that changes no term, right above another.
func note(kind store.Kind, head store.Record) store.Record {
	head.Kind, head.Seq, head.WindowStart = kind, head.Seq+1, head.WindowEnd
	return head
}

func TestWhatOnlySaysSomethingIsNoFinding(t *testing.T) {
	a, minutes := recordtest.Grant(1, 0, "a"), recordtest.Minutes
	paused := note(store.KindOrder, recordtest.Part(0, a, 0, 0))
	paused.InstanceID, paused.Claim, paused.SlotStart, paused.SlotEnd = "ann", "order", time.Time{}, time.Time{}
	for name, records := range map[string][]store.Record{
		"an outcome":                  {a, note(store.KindOutcome, a)},
		"an order":                    {a, note(store.KindOrder, a)},
		"an order in an empty ledger": {paused, recordtest.Grant(2, 0, "a")},
	} {
		if name == "an order in an empty ledger" {
			records[1].Token++
		}
		if got := found(records, minutes(4)); len(got) > 0 {
			t.Errorf("%s: found %q, want nothing", name, got)
		}
	}
	if got, want := found([]store.Record{a, note("hologram", a)}, minutes(4)), []string{"note unknown-kind 2"}; !slices.Equal(got, want) {
		t.Errorf("a kind of a later version: found %q, want %q", got, want)
	}
}

func TestARecordThatChangesNothingHidesNoFault(t *testing.T) {
	a, minutes := recordtest.Grant(1, 0, "a"), recordtest.Minutes
	released := recordtest.Release(a, 2, minutes(2))
	for _, kind := range []store.Kind{store.KindOrder, store.KindOutcome, store.KindDone} {
		got := found([]store.Record{a, released, note(kind, released), recordtest.Part(4, a, 2, 5)}, minutes(4))
		if want := []string{"fault extension-after-release 4"}; !slices.Equal(got, want) {
			t.Errorf("an extension of a released term, above a record of kind %s: found %q, want %q", kind, got, want)
		}
	}
}

func TestFaultsBelowWhatATrimLeftAreTold(t *testing.T) {
	all := slices.Concat(grants(1, 20), grants(22, 150))
	all[9].WindowStart = all[9].WindowStart.Add(-time.Minute) // It overlaps the one below.
	if got, want := found(all, recordtest.Minutes(5*151)), []string{"warning overlapping-window 10", "note trim-unfinished 22"}; !slices.Equal(got, want) {
		t.Errorf("an overlap below a gap: found %q, want %q", got, want)
	}
}

// An append that was under way for long lands on a trimmed key: right below the oldest record that is left.
func TestALateAppendRightBelowWhatIsLeftIsNoFault(t *testing.T) {
	late := recordtest.Grant(300, 301, "b")
	late.Token--
	want := []string{"note trim-unfinished 301"}
	if got := found(slices.Concat([]store.Record{late}, grants(301, 430)), recordtest.Minutes(5*431)); !slices.Equal(got, want) {
		t.Errorf("a late append: found %q, want %q", got, want)
	}
	first := slices.Concat([]store.Record{recordtest.Grant(1, 2, "b")}, grants(2, 150))
	if got, want := found(first, recordtest.Minutes(5*151)), []string{"fault overlapping-window 2"}; !slices.Equal(got, want) {
		t.Errorf("an overlap where nothing was trimmed: found %q, want %q", got, want)
	}
}

func TestSchedulesThatAlternateAreReportedAndARollingChangeIsNot(t *testing.T) {
	mixed := func(changes int) []store.Record {
		all := grants(1, 60)
		for i := range changes {
			r := &all[2*i]
			r.Schedule, r.SlotEnd = "every 1m", r.SlotStart.Add(time.Minute)
			r.WindowEnd = r.SlotEnd
		}
		return all
	}
	reports := func(all []string) bool {
		return slices.ContainsFunc(all, func(text string) bool { return strings.HasPrefix(text, "warning mixed-schedules") })
	}
	if got := found(mixed(3), recordtest.Minutes(304)); reports(got) {
		t.Errorf("a rolling change: found %q", got)
	}
	if got := found(mixed(20), recordtest.Minutes(304)); !reports(got) {
		t.Errorf("schedules that alternate 20 times: found %q, want them reported", got)
	}
	alike := grants(1, 60)
	for i := range alike {
		alike[i].Schedule = []string{"every 5m", "cron */5 * * * *"}[i%2]
	}
	if got := found(alike, recordtest.Minutes(304)); len(got) > 0 {
		t.Errorf("two texts for the same slots: found %q, want nothing", got)
	}
}

// Vancouver has stayed at UTC-7 since March 2026, and by earlier releases it went back to UTC-8 in November.
func TestAGrantOfAnotherReleaseOfTheTzDatabaseIsReportedOnceForItsSchedule(t *testing.T) {
	var all []store.Record
	for day := range 3 {
		r := recordtest.Grant(int64(day+1), day+1, "a")
		r.Schedule = "cron 0 2 * * * Etc/GMT+8" // whose offset no release changes
		r.SlotStart = time.Date(2026, 11, 2+day, 9, 0, 0, 0, time.UTC)
		r.SlotEnd = r.SlotStart.AddDate(0, 0, 1)
		r.WindowStart, r.WindowEnd, r.Token = r.SlotStart, r.SlotEnd, r.SlotStart.UnixMilli()
		r.FixedAt, r.ReadAt = r.SlotStart.Add(-time.Second), r.SlotStart.Add(-time.Second)
		all = append(all, r)
	}
	if got, want := found(all, all[2].SlotStart.Add(time.Hour)), []string{"warning slot-not-in-schedule 1"}; !slices.Equal(got, want) {
		t.Errorf("found %q, want %q", got, want)
	}
}

func TestFindingsAreBoundedAndCounted(t *testing.T) {
	all := grants(1, 500)
	for i := range all {
		all[i].WindowStart = all[i].WindowStart.Add(-time.Minute) // All but the first overlap the one below.
	}
	v := verify.New(verify.Options{WorkerType: "export", Now: recordtest.Minutes(5 * 501)})
	for _, r := range all {
		v.Add(r)
	}
	r := v.Report()
	again := v.Report()
	n := slices.IndexFunc(r.Counts, func(c verify.Count) bool { return c.Code == verify.OverlappingWindow })
	if n < 0 || r.Counts[n].Count < 240 || r.Faults != r.Counts[n].Count || len(r.Findings) > 3*verify.MaxFindings || again.Faults != r.Faults {
		t.Errorf("Report() = %+v, want hundreds of overlaps, of which %d are listed, and again the same", r.Counts, verify.MaxFindings)
	}
}

func TestEachCodeHasASeverityAndNamesAreCompared(t *testing.T) {
	got := verify.Names([]string{"Mail", "export", "mail", "my job"})
	if len(got) != 2 || got[0].Code != verify.InvalidWorkerType || got[1].Code != verify.TypesDifferByCase || got[1].Text != "The worker types Mail, mail differ by case only." {
		t.Errorf("Names() = %+v, want an invalid one, and two that differ by case", got)
	}
	for _, f := range got {
		if f.Severity != verify.SeverityOf(f.Code) || f.Remedy == "" {
			t.Errorf("Names() = %+v, want the severity %q and a remedy", f, verify.SeverityOf(f.Code))
		}
	}
}

func TestNoSlotIsMissedThatBeganBeforeItsScheduleWasDeployed(t *testing.T) {
	daily, hourly := recordtest.Grant(1, 0, "a"), recordtest.Grant(2, 120, "b")
	daily.Schedule, daily.SlotEnd, daily.WindowEnd = "cron 0 12 * * *", daily.SlotStart.AddDate(0, 0, 1), daily.SlotStart.Add(time.Minute)
	hourly.Schedule, hourly.SlotEnd = "cron 0 * * * *", hourly.SlotStart.Add(time.Hour)
	hourly.WindowEnd = hourly.SlotEnd
	if got := found([]store.Record{daily, hourly}, hourly.SlotEnd); len(got) > 0 {
		t.Errorf("a daily job that becomes hourly after 10 h: found %q, want nothing", got)
	}
}

func TestAllSlotsOfALongAbsenceAreCounted(t *testing.T) {
	r := recordtest.Grant(1, 1, "a")
	r.Schedule, r.SlotEnd = "cron * * * * *", r.SlotStart.Add(time.Minute)
	r.WindowEnd = r.SlotEnd
	v := verify.New(verify.Options{WorkerType: "export", Now: r.SlotEnd.Add(43_220*time.Minute + time.Second)})
	v.Add(r)
	if got := v.Report(); got.Missed != 43_220 || got.MissedMore {
		t.Errorf("%d missed slots, and more: %v; want 43220", got.Missed, got.MissedMore)
	}
}

// BenchmarkAdd verifies a ledger.
func BenchmarkAdd(b *testing.B) {
	all := grants(1, 10_000)
	for b.Loop() {
		found(all, recordtest.Minutes(5*10_001))
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(len(all)), "ns/record")
}

// A store's clock that was set back leaves records that were sound when they were written, and nobody else wrote them.
func TestAClockThatWasSetBackIsNamed(t *testing.T) {
	g := recordtest.Grant(1, 0, "a")
	forged := g
	forged.ReadAt, forged.FixedAt = recordtest.Minutes(-120), recordtest.Minutes(-120)
	for name, c := range map[string]struct {
		record store.Record
		want   bool
	}{"a worker's": {g, true}, "another program's": {forged, false}} {
		v := verify.New(verify.Options{WorkerType: "export", Now: recordtest.Minutes(-120)})
		v.Add(c.record)
		found := v.Report().Findings
		if len(found) != 1 || found[0].Code != verify.WindowAhead || strings.Contains(found[0].Text, "the store's clock: that was set back since") != c.want ||
			strings.Contains(found[0].Remedy, "Look at the store's clock") != c.want {
			t.Errorf("%s: found %+v, want the clock named: %v", name, found, c.want)
		}
	}
}
