package inspect

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/slotlease/slotlease/cmd/leasectl/internal/charges"
	"github.com/slotlease/slotlease/cmd/leasectl/internal/storeuri"
	"github.com/slotlease/slotlease/internal/recordtest"
	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/memory"
	"github.com/slotlease/slotlease/store/storekit"
)

// many is a ledger in memory at 12:42:30 with worker types in all conditions.
func many(t *testing.T) *memory.Ledger {
	t.Helper()
	now := recordtest.Noon.Add(42*time.Minute + 30*time.Second)
	l := ledgerAt(now)
	put := func(workerType string, records ...store.Record) {
		for _, r := range records {
			r.WorkerType = workerType
			l.Put(r)
		}
	}
	held := recordtest.Grant(2, 8, "worker-a")
	put("export", recordtest.Grant(1, 7, "worker-b"), held, recordtest.Grant(3, 9, "worker-c"))
	goesOn := recordtest.Grant(2, 8, "leader")
	goesOn.Claim, goesOn.Token = recordtest.Grant(1, 7, "leader").Claim, recordtest.Grant(1, 7, "leader").Token
	put("follow", recordtest.Grant(1, 7, "leader"), goesOn)
	group := recordtest.Grant(1, 8, "worker-d")
	group.Group = "north"
	put("group", group)
	failing := recordtest.Grant(1, 8, "worker-g")
	failed := recordtest.Outcome(failing, failing.SlotStart.Add(13*time.Second), store.Failed)
	failed.ExitCode, failed.Exited = 3, true
	put("failing", failing, recordtest.Told(failing, 2, failed))
	put("idle", recordtest.Grant(1, 3, "worker-e"))
	put("poison", recordtest.Grant(1, 8, "worker-f"), store.Record{Seq: 2, Defect: "field token: missing"})
	put("evil", recordtest.Grant(1, 8, "x\x1b[2J"))
	presence := func(id string, next time.Duration) store.Presence {
		return store.Presence{WorkerType: "export", ID: id, InstanceID: "worker-" + id, Phase: store.PhaseCandidate, Since: recordtest.Noon, Seen: now.Add(-time.Minute), Next: now.Add(next)}
	}
	jobs := presence("g", time.Minute)
	jobs.WorkerType, jobs.Job = "failing", &store.JobTimes{StartWithin: 75 * time.Second, Overrun: "finish", CatchUp: "none"}
	other := presence("h", time.Minute)
	other.WorkerType, other.Job = "failing", &store.JobTimes{StartWithin: time.Second, Overrun: "stop", Timeout: time.Minute, CatchUp: "all", CatchUpWithin: time.Hour}
	must(t, l.Attend(t.Context(), []store.Presence{jobs, other, presence("a", time.Minute), presence("b", time.Minute), presence("c", -30*time.Second)}))
	return l
}

// crowded is a ledger in which other programs have thousands of worker types, each of which takes 10 ms to read.
type crowded struct{ *memory.Ledger }

func (c crowded) WorkerTypes(context.Context) (names []string, err error) {
	for i := range 30_000 {
		names = append(names, fmt.Sprintf("type-%05d", i))
	}
	return names, nil
}

func (c crowded) Tail(ctx context.Context, workerType string, limit int) ([]store.Record, store.Stamp, error) {
	select {
	case <-time.After(10 * time.Millisecond):
		return c.Ledger.Tail(ctx, workerType, limit)
	case <-ctx.Done():
		return nil, store.Stamp{}, context.Cause(ctx)
	}
}

func TestStatusShowsWhatItCouldReadInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for timeout, want := range map[time.Duration]int{10 * time.Second: 8000, time.Minute: 30_000} {
			var out bytes.Buffer
			l := crowded{memory.New(memory.Options{})}
			err := showStatus(t.Context(), storeuri.Target{}, l, Options{JSON: true, Timeout: timeout}, Screen{Writer: &out, Report: func(error) {}})
			var got Overview
			if bad := json.Unmarshal(out.Bytes(), &got); err != nil || bad != nil {
				t.Fatalf("showStatus() = %v, %v", err, bad)
			}
			if n := len(got.Types); n > want || n < want-storekit.AtATime || (n < 30_000) != strings.Contains(got.Warning, "raise --timeout") {
				t.Errorf("within %v %d types are shown, with the warning %q, want %d", timeout, n, got.Warning, want)
			}
		}
	})
}

// What an operator must see isn't cut off by a narrow terminal.
func TestANarrowTerminalShowsTheNotesBelowTheTable(t *testing.T) {
	s := overview{glimpse: glimpse{store: "sqlite:leases.db"}, width: 80}
	must(t, s.take(t.Context(), charges.New(many(t)), ""))
	got := s.drawing(true, true)
	if !strings.Contains(got, "failing: exit code 3 after 12s") || !strings.Contains(got, "idle: nobody has the slot") {
		t.Errorf("status in 80 columns =\n%s\nwant all notes", got)
	}
	if got := s.drawing(false, false); strings.Contains(got, "NOTE") || !strings.Contains(got, "failing: exit code 3 after 12s") {
		t.Errorf("status in 80 columns without --watch =\n%s\nwant the notes below", got)
	}
	if s.width = 0; !strings.Contains(s.drawing(false, false), "NOTE") {
		t.Errorf("status into a pipe =\n%s\nwant the notes as a column", s.drawing(false, false))
	}
	if s.width = 300; !strings.Contains(s.drawing(false, true), "NOTE") {
		t.Errorf("status in 300 columns =\n%s\nwant the notes as a column", s.drawing(false, true))
	}
}

// What keeps everybody from claiming is in the note, also when the slot has begun that nobody has.
func TestStatusSaysWhyNobodyCanClaim(t *testing.T) {
	pause := store.Order{Kind: store.OrderPause, At: recordtest.Minutes(1), Until: recordtest.Minutes(60), By: "ann", Why: "upgrade"}
	paused := recordtest.Grant(1, 7, "worker-b")
	paused.Orders, _ = store.FormatOrders([]store.Order{pause})
	poison := store.Record{WorkerType: "export", Seq: 2, Defect: "token is missing"}
	ended := recordtest.Grant(1, 7, "worker-b")
	ended.Seq, ended.Kind, ended.WindowStart, ended.WindowEnd, ended.Schedule = 1, store.KindOrder, recordtest.Noon, recordtest.Noon, ""
	for name, test := range map[string]struct {
		records []store.Record
		now     float64
		want    string
	}{
		"poison in a slot that is held":    {[]store.Record{poison, recordtest.Grant(1, 7, "worker-b")}, 36, "record 2 can't be obeyed: leasectl doctor says what to do"},
		"poison in a slot that nobody has": {[]store.Record{poison, recordtest.Grant(1, 7, "worker-b")}, 42.5, "nobody has the slot; record 2 can't be obeyed: leasectl doctor says what to do"},
		"poison in a pause":                {[]store.Record{poison, paused}, 42.5, "paused until 2026-03-02T13:00:00.000Z by ann: upgrade; record 2 can't be obeyed: leasectl doctor says what to do"},
		"poison that was superseded":       {[]store.Record{recordtest.Grant(3, 8, "worker-b"), poison, recordtest.Grant(1, 7, "worker-b")}, 42.5, ""},
		"nothing but orders":               {[]store.Record{ended}, 42.5, "no slot yet"},
	} {
		if got := statusOf("export", test.records, recordtest.Minutes(test.now)).note; got != test.want {
			t.Errorf("%s: the note is %q, want %q", name, got, test.want)
		}
	}
}

// No slot begins in a pause.
func TestStatusSaysWhatComesAfterAPause(t *testing.T) {
	for until, want := range map[float64]string{60: "paused, then in 17m30s", 63: "paused, then in 22m30s", 44: "in 2m30s"} {
		r := recordtest.Grant(1, 7, "worker-b")
		r.Orders, _ = store.FormatOrders([]store.Order{{Kind: store.OrderPause, At: recordtest.Minutes(1), Until: recordtest.Minutes(until), By: "ann"}})
		now := recordtest.Minutes(42.5)
		if got := statusOf("export", []store.Record{r}, now).texts(now)[7]; got != want {
			t.Errorf("paused up to %v min, the next slot comes %q, want %q", until, got, want)
		}
		s := overview{glimpse: glimpse{at: now}, types: []typeStatus{statusOf("export", []store.Record{r}, now)}}
		if ms := *s.data().Types[0].NextInMs; !strings.HasSuffix(want, "in "+brief(time.Duration(ms)*time.Millisecond)) {
			t.Errorf("paused up to %v min, as JSON the next slot comes in %d ms, want %q", until, ms, want)
		}
	}
}

// What never ran hides no slot that is over.
func TestStatusShowsTheNewestSlotThatIsOver(t *testing.T) {
	done := attempt(1, 0, "a", 1, 0, 5)
	over := []store.Record{finished(2, done, 0, 1), done}
	next := attempt(3, 1, "a", 1, 5, 10)
	returned := append([]store.Record{recordtest.Release(next, 4, next.WindowStart.Add(time.Millisecond))}, append([]store.Record{next}, over...)...)
	run := []store.Record{recordtest.Part(5, next, 15, 20), recordtest.Part(4, next, 10, 15), next}
	fails := recordtest.Outcome(next, recordtest.Minutes(5.5), store.Failed)
	told := recordtest.Release(next, 4, recordtest.Minutes(5.5))
	told.Metadata = fails.Metadata()
	again, leader := attempt(5, 1, "b", 2, 6, 10), recordtest.Grant(1, 0, "a")
	for name, test := range map[string]struct {
		records []store.Record
		now     float64
		want    string
	}{
		"released before it began":           {returned, 4.9, "12:00 done"},
		"released before it began, in it":    {returned, 6, "12:00 done"},
		"released before it began, and over": {returned, 10.5, "12:05 released"},
		"a slot that is being skipped":       {slices.Concat(run[1:], over), 11, "12:00 done"},
		"a slot that was skipped":            {slices.Concat(run, over), 16, "12:10 skipped"},
		"the next attempt runs":              {append([]store.Record{again, told, next}, over...), 6.5, "12:00 done"},
		"the next attempt is awaited":        {append([]store.Record{told, next}, over...), 6.5, "12:05 failed"},
		"a leader goes on":                   {[]store.Record{recordtest.NextSlot(3, leader, 2, 10, 15), recordtest.NextSlot(2, leader, 1, 5, 10), leader}, 12, "12:05 expired"},
	} {
		s := statusOf("export", test.records, recordtest.Minutes(test.now))
		if got := fmt.Sprintf("%s %s", s.last.Slot.Start.Format("15:04"), s.last.State); got != test.want {
			t.Errorf("%s: the last slot is %q, want %q", name, got, test.want)
		}
	}
}

// A leader's lease began long before the newest records, which are all that is read.
func TestStatusSaysSinceWhenALongLeaseIsHeld(t *testing.T) {
	first := recordtest.Grant(1, 0, "a")
	records := []store.Record{first}
	for n := range 59 {
		records = append(records, recordtest.NextSlot(int64(n+2), first, n+1, float64(5*n+5), float64(5*n+10)))
	}
	for _, read := range []int{60, 40, 1} {
		newest := slices.Clone(records[len(records)-read:])
		slices.Reverse(newest)
		if s := statusOf("export", newest, recordtest.Minutes(298)); !s.since.Equal(recordtest.Noon) {
			t.Errorf("by %d records, since = %v, want %v", read, s.since, recordtest.Noon)
		}
	}
	half := recordtest.Part(60, first, 2.5, 5) // An extension in the slot in which it began.
	if s := statusOf("export", []store.Record{half}, recordtest.Minutes(3)); !s.since.Equal(recordtest.Noon) {
		t.Errorf("by an extension, since = %v, want %v", s.since, recordtest.Noon)
	}
}

// All workers have a schedule that is new: once a slot of the old one begins and nobody takes it, the new one is what counts.
func TestStatusGoesByTheScheduleThatAllWorkersHave(t *testing.T) {
	old := attempt(1, 0, "a", 1, 0, 5)
	done := finished(2, old, 0, 1)
	for name, test := range map[string]struct {
		at        float64
		schedules []string
		want      string
		warnings  int
	}{
		"while the old one's slot lasts": {4, []string{"every 1h"}, "every 5m", 1},
		"after it":                       {12, []string{"every 1h", "every 1h"}, "every 1h", 0},
		"if theirs differ":               {12, []string{"every 1h", "every 5m"}, "every 5m", 2},
	} {
		l := recorded(test.at, old, done)
		for i, schedule := range test.schedules {
			id := string(rune('a' + i))
			p := store.Presence{WorkerType: "export", ID: id, InstanceID: id, Phase: store.PhaseCandidate, Schedule: schedule, Seen: recordtest.Minutes(test.at - 0.1), Next: recordtest.Minutes(test.at + 1)}
			must(t, l.Attend(t.Context(), []store.Presence{p}))
		}
		o, _ := looks(t, l, "export")
		if one := o.types[0]; one.schedule != test.want || len(one.warnings) != test.warnings {
			t.Errorf("%s: status goes by %q, and warns of %q, want %q and %d warnings", name, one.schedule, one.warnings, test.want, test.warnings)
		}
	}
}
