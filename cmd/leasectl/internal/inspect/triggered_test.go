package inspect

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/benbjohnson/clock"

	"github.com/slotlease/slotlease/cmd/leasectl/internal/storeuri"
	"github.com/slotlease/slotlease/cmd/leasectl/internal/testutil/golden"
	"github.com/slotlease/slotlease/internal/recordtest"
	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/memory"
	"github.com/slotlease/slotlease/workerlease/history"
)

// triggered is a ledger at a number of minutes after noon, whose workers have a job. At 12:05:30.250 ann asked for one more run, which
// worker-a makes from 12:05:31 to 12:10:40, so that the slot of 12:10 waits.
func triggered(t *testing.T, now float64) (l *memory.Ledger, asked time.Time) {
	t.Helper()
	c := clock.NewMock()
	c.Set(recordtest.Minutes(now))
	l = memory.New(memory.Options{Clock: c})
	asked = recordtest.Minutes(5.5).Add(250 * time.Millisecond)
	first := recordtest.Grant(1, 1, "worker-a")
	first.Attempt = 1
	done := recordtest.Done(recordtest.Part(1, first, 5, 5.4), 2, first.SlotEnd, recordtest.Minutes(5.3))
	done.Metadata = recordtest.Outcome(first, recordtest.Minutes(5.3), store.Succeeded).Metadata()
	done.Done = store.Done{Start: first.SlotStart, End: first.SlotEnd}.String()
	orders, err := store.FormatOrders([]store.Order{{Kind: store.OrderTrigger, At: asked, Until: recordtest.Minutes(65), By: "ann", Why: "new data"}})
	must(t, err)
	waits := done
	waits.Seq, waits.Kind, waits.Metadata, waits.Orders, waits.ReadAt = 3, store.KindOrder, "", orders, asked
	run := recordtest.Part(4, first, 0, 10.8)
	run.Claim, run.Schedule, run.SlotStart, run.SlotEnd = "claim-of-run", store.Triggered, asked, recordtest.Minutes(65)
	run.WindowStart = asked.Add(750 * time.Millisecond)
	run.Token, run.FixedAt, run.ReadAt = run.WindowStart.UnixMilli(), run.WindowStart, run.WindowStart
	run.Orders, run.DoneUntil, run.Done = orders, done.DoneUntil, done.Done
	ended := run
	ended.Seq, ended.Kind, ended.WindowStart, ended.ReadAt, ended.Orders = 5, store.KindDone, run.WindowEnd, recordtest.Minutes(10.6), ""
	out := recordtest.Outcome(run, ended.ReadAt, store.Succeeded)
	out.Begun = run.WindowStart
	ended.Metadata = out.Metadata()
	for _, r := range []store.Record{recordtest.Part(1, first, 5, 5.4), done, waits, run, ended} {
		if !r.ReadAt.After(c.Now()) {
			l.Put(r)
		}
	}
	var crew []store.Presence
	for _, name := range []string{"worker-a", "worker-b"} {
		crew = append(crew, store.Presence{
			WorkerType: "export", ID: name, InstanceID: name, Host: "host", PID: 1, Schedule: "every 5m", Priority: 1, Effective: 1, Phase: store.PhaseCandidate,
			Since: recordtest.Minutes(-60), Seen: c.Now().Add(-time.Second), Next: c.Now().Add(5 * time.Minute), Job: &store.JobTimes{StartWithin: time.Minute},
		})
	}
	must(t, l.Attend(t.Context(), crew))
	return l, asked
}

func TestWhySaysWhoAskedForARunThatIsNoneOfTheSchedule(t *testing.T) {
	for name, q := range map[string]struct {
		now float64
		at  string
	}{
		"why-triggered-now.text":     {7, ""},
		"why-triggered.text":         {16, "12:05:30"},
		"why-triggered-skipped.text": {16, "12:12:00"},
	} {
		l, _ := triggered(t, q.now)
		got, err := whyOf(t, l, "", q.at, "")
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		golden.Compare(t, name, got)
	}
	l, asked := triggered(t, 16)
	whole, _ := whyOf(t, l, "", "12:05:30", "")
	if got, err := whyOf(t, l, "", store.Format(asked), ""); err != nil || got != whole || !strings.Contains(got, "by ann") {
		t.Errorf("by the millisecond: %s, %v, want %s", got, err, whole)
	}
}

// Once the run of a trigger has begun, it isn't said to wait.
func TestATriggerWaitsUpToItsBegin(t *testing.T) {
	l, asked := triggered(t, 7)
	records, stamp, err := l.Tail(t.Context(), "export", statusRecords)
	must(t, err)
	const by = " by ann: new data"
	waits, runs := "one more run, to begin before "+store.Format(recordtest.Minutes(65))+by, "one more run, under way since "+store.Format(recordtest.Minutes(5.5).Add(time.Second))+by
	if got := statusOf("export", records[1:], asked).note; got != waits {
		t.Errorf("before it begins: %q, want %q", got, waits)
	}
	if got := statusOf("export", records, stamp.Time).note; got != runs {
		t.Errorf("while it runs: %q, want %q", got, runs)
	}
}

// The order of an operator is no run, and the worker whose lease it stands on didn't give it.
func TestAnOrderIsNoWorkersRun(t *testing.T) {
	l, asked := triggered(t, 7)
	at, err := ParseMoment("12:05:20")
	must(t, err)
	var stdout bytes.Buffer
	o := Options{WorkerType: "export", Last: 10, Timeout: time.Minute}
	must(t, showRun(t.Context(), storeuri.Target{Scheme: "sqlite", Shown: "sqlite:leases.db"}, l, o, at, Screen{Writer: &stdout}))
	if got := stdout.String(); strings.Contains(got, "order") || strings.Count(got, "by worker-a") != 1 {
		t.Errorf("inspect run shows %s, want the run of worker-a alone", got)
	}
	records, _, err := l.Tail(t.Context(), "export", 10)
	must(t, err)
	for _, e := range history.Read(records, asked, nil) {
		if row := cells(e, timeStyle{}); e.Record.Kind == store.KindOrder && strings.Contains(strings.Join(row, " "), "worker-a") {
			t.Errorf("inspect slots shows %q, want no holder", row)
		}
	}
}

// A worker that began anew under its name is there twice, and what is said of the two is told apart.
func TestWhyTellsProcessesOfOneNameApart(t *testing.T) {
	l, _ := triggered(t, 7)
	before := store.Presence{
		WorkerType: "export", ID: "before", InstanceID: "worker-a", Host: "host", PID: 77, Schedule: "every 5m", Phase: store.PhaseStopped,
		Since: recordtest.Minutes(-60), Seen: recordtest.Minutes(-30), Next: recordtest.Minutes(-25),
	}
	must(t, l.Attend(t.Context(), []store.Presence{before}))
	got, err := whyOf(t, l, "", "", "")
	if err != nil || !strings.Contains(got, "\nworker-a (process 1)\n  It has the run.\n") || !strings.Contains(got, "\nworker-a (process 77)\n  It had stopped at ") || !strings.Contains(got, "\nworker-b\n") {
		t.Errorf("why = %s, %v, want the two processes of worker-a told apart", got, err)
	}
}

// Runs that were asked for wait for the end of a pause, which is told first: a note is clipped.
func TestAPauseIsToldBeforeTheTriggersThatWaitForIt(t *testing.T) {
	order := func(kind store.OrderKind, at float64) store.Order {
		return store.Order{Kind: kind, At: recordtest.Minutes(at), Until: recordtest.Minutes(at + 60), By: "ann"}
	}
	r := recordtest.Grant(1, 0, "a")
	var err error
	if r.Orders, err = store.FormatOrders([]store.Order{order(store.OrderTrigger, 1), order(store.OrderTrigger, 2), order(store.OrderPause, 3)}); err != nil {
		t.Fatal(err)
	}
	note := statusOf("export", []store.Record{r}, recordtest.Minutes(4)).note
	if !strings.HasPrefix(note, "paused until ") || strings.Count(note, "one more run, ") != 2 {
		t.Errorf("the note is %q, want that it begins with the pause", note)
	}
}
