package inspect

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/slotlease/slotlease/cmd/leasectl/internal/storeuri"
	"github.com/slotlease/slotlease/cmd/leasectl/internal/testutil/golden"
	"github.com/slotlease/slotlease/internal/recordtest"
	"github.com/slotlease/slotlease/store"
)

// attempt is the grant of the slot that starts n slots after noon, as the attempt of a job, with a window in minutes.
func attempt(seq int64, n int, holder string, number int, from, to float64) store.Record {
	g := recordtest.Part(seq, recordtest.Grant(seq, n, holder), from, to)
	g.Attempt, g.Worker.Host = number, "vm-"+holder
	if start := g.WindowStart; start.After(g.SlotStart) {
		g.Token, g.FixedAt, g.Claim = start.UnixMilli(), start, g.Claim+start.Format("150405")
	}
	return g
}

// finished says at a time, in minutes, under a grant that the slot which starts n slots after noon is done.
func finished(seq int64, g store.Record, n int, at float64) store.Record {
	slot := recordtest.Grant(0, n, "")
	r := recordtest.Done(g, seq, slot.SlotEnd, recordtest.Minutes(at))
	r.Done = store.Done{Start: slot.SlotStart, End: slot.SlotEnd, Zone: "UTC"}.String()
	o := recordtest.Outcome(g, recordtest.Minutes(at), store.Succeeded)
	r.Metadata = o.Metadata()
	return r
}

// ordinary is a day in the life of a job: a runs over two slots more, one slot is missed and caught up by b, one is timed out
// and given up, and in the last one b dies.
func ordinary() []store.Record {
	a := attempt(1, 0, "a", 1, 0, 5)
	over := []store.Record{a, recordtest.Part(2, a, 5, 10), recordtest.Part(3, a, 10, 15)}
	done := finished(4, over[2], 2, 12)
	since := func(done, r store.Record) store.Record { r.DoneUntil, r.Done = done.DoneUntil, done.Done; return r }
	late := since(done, attempt(6, 3, "b", 1, 21, 25))
	lateDone := finished(7, late, 3, 22)
	cut := since(lateDone, attempt(9, 5, "a", 2, 26, 30))
	why := recordtest.Outcome(cut, recordtest.Minutes(28), store.Failed)
	why.Cause, why.GivenUp = store.TimedOut, true
	told := since(lateDone, recordtest.Release(cut, 10, recordtest.Minutes(28)))
	told.Metadata = why.Metadata()
	return append(over, done, since(done, recordtest.Release(over[2], 5, recordtest.Minutes(12))), late, lateDone,
		since(lateDone, recordtest.Release(late, 8, recordtest.Minutes(22))), cut, told, since(lateDone, attempt(11, 6, "b", 1, 30, 32)))
}

func TestWhatBecameOfEachSlotIsShown(t *testing.T) {
	to := storeuri.Target{Scheme: "sqlite", Shown: "sqlite:leases.db"}
	records := ordinary()
	for name, show := range map[string]func(o Options, s Screen) error{
		"ordinary-slots": func(o Options, s Screen) error { return showLedger(t.Context(), to, recorded(33, records...), o, s) },
		"ordinary-running": func(o Options, s Screen) error {
			return showLedger(t.Context(), to, recorded(11, records[:3]...), o, s)
		},
		"ordinary-status": func(o Options, s Screen) error { return showStatus(t.Context(), to, recorded(41, records...), o, s) },
		"ordinary-status-running": func(o Options, s Screen) error {
			return showStatus(t.Context(), to, recorded(11, records[:3]...), o, s)
		},
	} {
		for _, output := range []string{"table", "json"} {
			var out bytes.Buffer
			must(t, show(Options{WorkerType: "export", JSON: output == "json", Last: 20, Timeout: time.Minute}, Screen{Writer: &out}))
			golden.Compare(t, name+"."+output, out.String())
		}
	}
	row, whole, err := since(t.Context(), recorded(33, records...), "export", recordtest.Noon, recordtest.Minutes(33))
	if err != nil || !whole {
		t.Fatal(err)
	}
	c := chart{from: recordtest.Noon, to: recordtest.Minutes(34), now: recordtest.Minutes(33), rows: []chartRow{row}, width: 76}
	golden.Compare(t, "ordinary-timeline.text", c.text(false))
}

func TestWhySaysWhyASlotWasSkippedOrLate(t *testing.T) {
	records := ordinary()
	var all strings.Builder
	ask := func(now, at float64, of ...store.Record) {
		var out bytes.Buffer
		l := recorded(now, of...)
		p := func(name string) store.Presence {
			return store.Presence{
				WorkerType: "export", ID: name, InstanceID: name, Host: "vm-" + name, PID: 1, Schedule: "every 5m", Phase: store.PhaseCandidate,
				Since: recordtest.Minutes(-60), Seen: recordtest.Minutes(now - 0.5), Next: recordtest.Minutes(now + 5),
			}
		}
		must(t, l.Attend(t.Context(), []store.Presence{p("a"), p("b")}))
		q := Question{At: Moment{at: recordtest.Minutes(at)}}
		must(t, showWhy(t.Context(), storeuri.Target{Shown: "sqlite:leases.db"}, l, Options{WorkerType: "export", Timeout: time.Minute}, q, Screen{Writer: &out}))
		all.WriteString(out.String() + "\n")
	}
	ask(11, 11, records[:3]...) // It is skipped now.
	ask(33, 6, records...)      // It was skipped.
	ask(33, 1, records...)      // It took longer than its slot.
	ask(33, 16, records...)     // It was caught up.
	ask(21.5, 21.5, records[:6]...)
	ask(33, 27, records...)
	ask(33, 31, records...)
	golden.Compare(t, "ordinary-why.text", all.String())
}

// Who dies in a run that has outlasted its slot is told dead, and which slots it kept from others, wherever one looks.
func TestADeathBeyondTheSlotIsToldEverywhere(t *testing.T) {
	a := attempt(1, 0, "a", 1, 0, 5)
	l := recorded(21, a, recordtest.Part(2, a, 5, 10), recordtest.Part(3, a, 10, 13))
	to := storeuri.Target{Scheme: "sqlite", Shown: "sqlite:leases.db"}
	o := Options{WorkerType: "export", Last: 20, Timeout: time.Minute}
	for name, test := range map[string]struct {
		show func(s Screen) error
		want []string
	}{
		"slots": {func(s Screen) error { return showLedger(t.Context(), to, l, o, s) }, []string{"failed its worker died, 8m0s longer", "12:05:00Z 12:10:00Z a 0 1772452800000 - skipped", "12:10:00Z 12:15:00Z - - - - missed overrun: a worker died in its run since", "12:15:00Z 12:20:00Z - - - - missed"}},
		"status": {func(s Screen) error {
			return showStatus(t.Context(), to, l, Options{JSON: true, Timeout: time.Minute}, s)
		}, []string{
			"the slot from 12:00:00Z failed: its worker died",
		}},
		"why": {func(s Screen) error {
			return showWhy(t.Context(), to, l, o, Question{At: Moment{at: recordtest.Minutes(11)}}, s)
		}, []string{"still ran the job of the slot from 12:00:00Z, since 12:00:00Z. Its worker died in it, without a word: its lease ended at 12:13:00Z."}},
	} {
		var out bytes.Buffer
		must(t, test.show(Screen{Writer: &out}))
		text := strings.Join(strings.Fields(out.String()), " ")
		for _, want := range test.want {
			if !strings.Contains(text, want) {
				t.Errorf("%s: %s, want %q", name, out.String(), want)
			}
		}
	}
}

// What a run took is cut in the same way wherever it is shown.
func TestWhyCutsWhatARunTookAsInspectSlotsDoes(t *testing.T) {
	a := attempt(1, 0, "a", 1, 0, 5)
	last := recordtest.Part(2, a, 5, 10)
	l := recorded(11, a, last, finished(3, last, 0, 5.0+11.8/60))
	got, err := whyOf(t, l, "", "12:01", "")
	if text := strings.Join(strings.Fields(got), " "); err != nil || !strings.Contains(text, "ran on after its slot, for 11s.") {
		t.Errorf("why = %s, %v, want that its job ran on for 11s", got, err)
	}
}

// A store that stands still just as a run is recorded has another worker take it for dead: it is done, whichever of the two records
// comes first.
func TestARunThatIsDoneIsNotGivenUp(t *testing.T) {
	a := attempt(1, 0, "a", 1, 0, 2)
	o := recordtest.Outcome(a, recordtest.Minutes(2), store.Failed)
	o.Cause, o.GivenUp, o.Begun, o.Ended = store.WorkerDied, true, time.Time{}, time.Time{}
	done := finished(2, a, 0, 1)
	above := recordtest.Told(a, 3, o)
	above.DoneUntil, above.Done = done.DoneUntil, done.Done
	bare := finished(3, a, 0, 2.5)
	bare.Metadata = ""
	to := storeuri.Target{Scheme: "sqlite", Shown: "sqlite:leases.db"}
	for name, records := range map[string][]store.Record{
		"dead, then done":                     {a, recordtest.Told(a, 2, o), finished(3, a, 0, 2.5)},
		"dead, then done without its outcome": {a, recordtest.Told(a, 2, o), bare},
		"done, then dead":                     {a, done, above},
	} {
		l := recorded(4, records...)
		var out bytes.Buffer
		show := func(of func(o Options) error) {
			for _, asJSON := range []bool{false, true} {
				if err := of(Options{WorkerType: "export", JSON: asJSON, Last: 20, Timeout: time.Minute}); err != nil {
					t.Fatal(name, err)
				}
			}
		}
		show(func(o Options) error { return showLedger(t.Context(), to, l, o, Screen{Writer: &out}) })
		show(func(o Options) error { return showStatus(t.Context(), to, l, o, Screen{Writer: &out}) })
		show(func(o Options) error {
			return showWhy(t.Context(), to, l, o, Question{At: Moment{at: recordtest.Minutes(1)}}, Screen{Writer: &out})
		})
		for _, wrong := range []string{"died", "given", "silent", `"failed"`} {
			if strings.Contains(out.String(), wrong) {
				t.Errorf("%s: it says %q, want nothing of that:\n%s", name, wrong, out.String())
			}
		}
		if !strings.Contains(out.String(), "The work was done at") {
			t.Errorf("%s: want it done:\n%s", name, out.String())
		}
	}
}

// A slot that may yet be begun isn't skipped.
func TestASlotThatMayYetBeginIsFree(t *testing.T) {
	a := attempt(1, 0, "a", 1, 0, 5)
	on, more := recordtest.Part(2, a, 5, 10), recordtest.Part(3, a, 10, 15)
	for within, want := range map[time.Duration]string{5 * time.Minute: "free", time.Minute: "skipped"} {
		l := recorded(12, a, on, more)
		p := store.Presence{WorkerType: "export", ID: "a", InstanceID: "a", Host: "vm-a", PID: 1, Phase: store.PhaseHolder, Seen: recordtest.Minutes(11), Next: recordtest.Minutes(13), Job: &store.JobTimes{StartWithin: within, Overrun: "finish"}}
		must(t, l.Attend(t.Context(), []store.Presence{p}))
		var out bytes.Buffer
		must(t, showLedger(t.Context(), storeuri.Target{}, l, Options{WorkerType: "export", Last: 20, Timeout: time.Minute}, Screen{Writer: &out}))
		o, _ := looks(t, l, "export")
		if text, n := out.String(), o.types[0].skipped(); strings.Count(text, want) != map[string]int{"free": 1, "skipped": 2}[want] || n != strings.Count(text, "skipped") {
			t.Errorf("within %v: %s and %d slots skipped by status, want the newest %s", within, text, n, want)
		}
	}
}
