package inspect

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/benbjohnson/clock"

	"github.com/slotlease/slotlease/cmd/leasectl/internal/storeuri"
	"github.com/slotlease/slotlease/cmd/leasectl/internal/testutil/golden"
	"github.com/slotlease/slotlease/internal/recordtest"
	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/memory"
)

// whyOf runs why on a ledger.
func whyOf(t *testing.T, l store.Ledger, output, at, instance string) (string, error) {
	t.Helper()
	q := Question{InstanceID: instance}
	if at != "" {
		var err error
		if q.At, err = ParseMoment(at); err != nil {
			t.Fatal(err)
		}
	}
	var stdout bytes.Buffer
	o := Options{WorkerType: "export", JSON: output == "json", Timeout: time.Minute}
	err := showWhy(t.Context(), storeuri.Target{Scheme: "sqlite", Shown: "sqlite:leases.db"}, l, o, q, Screen{Writer: &stdout, Report: func(err error) { _, _ = fmt.Fprintln(&stdout, err) }})
	return stdout.String(), err
}

// eventful is a ledger in memory at 12:42:30 with all that why can say.
func eventful(t *testing.T) *memory.Ledger {
	t.Helper()
	l := attended(t)
	c := clock.NewMock()
	now := recordtest.Minutes(42.5)
	c.Set(now)
	full := memory.New(memory.Options{Clock: c})
	presences, err := l.Presences(t.Context(), "export")
	must(t, err)
	for i := range presences {
		if p := &presences[i]; p.InstanceID == "worker-c" {
			p.Missed, p.MissedFrom, p.MissedUntil = "nobody had it: store unreachable", recordtest.Minutes(30), recordtest.Minutes(35)
		}
	}
	must(t, full.Attend(t.Context(), presences))
	first, late := recordtest.Grant(1, 2, "worker-b"), recordtest.Grant(2, 3, "worker-x")
	first.Worker = store.Worker{Host: "vm-2", PID: 7}
	late.FixedAt = late.SlotStart.Add(72 * time.Second)
	late.WindowStart, late.Token = late.FixedAt, late.FixedAt.UnixMilli()
	rest := recordtest.Part(4, late, 18, 20)
	rest.InstanceID, rest.Claim, rest.Token, rest.Priority = "evil\x1b[2J", "c4", recordtest.Minutes(18).UnixMilli(), 3
	rest.FixedAt = recordtest.Minutes(18)
	pause, err := store.FormatOrders([]store.Order{{Kind: store.OrderPause, At: recordtest.Minutes(19), Until: recordtest.Minutes(29), By: "ann", Why: "upgrade of the store"}})
	must(t, err)
	paused := rest
	paused.Seq, paused.Kind, paused.WindowStart, paused.Orders = 5, store.KindOrder, paused.WindowEnd, pause
	held := recordtest.Grant(6, 8, "worker-b")
	held.Worker = first.Worker
	for _, r := range []store.Record{first, late, recordtest.Release(late, 3, recordtest.Minutes(17)), rest, paused, held} {
		full.Put(r)
	}
	return full
}

func TestWhySaysWhoHadASlotAndWhyOthersDidNot(t *testing.T) {
	for name, q := range map[string]struct{ output, at, instance string }{
		"why-now.text":         {"", "", ""},
		"why-now.json":         {"json", "", ""},
		"why-past.text":        {"", "12:11", ""},
		"why-several.text":     {"", "12:17:30", ""},
		"why-paused.text":      {"", "12:22", "worker-a"},
		"why-paused.json":      {"json", "12:22", "worker-a"},
		"why-unreachable.text": {"", "12:31:00", "worker-c"},
		"why-future.text":      {"", "2026-03-02T12:46:00Z", ""},
		"why-unread.text":      {"", "2026-03-01T12:46:00Z", "worker-b"},
	} {
		got, err := whyOf(t, eventful(t), q.output, q.at, q.instance)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if strings.ContainsAny(got, "\x1b\a") {
			t.Errorf("%s: control characters of the ledger are let through: %q", name, got)
		}
		golden.Compare(t, name, got)
	}
}

// What keeps everybody from claiming is said once, with who ordered it or where the way out is shown.
func TestWhyNamesWhatKeepsWorkersFromClaiming(t *testing.T) {
	drain := store.Order{Kind: store.OrderDrain, Target: "vm-2", At: recordtest.Minutes(4), Until: recordtest.Minutes(29), By: "ann", Why: "new disk"}
	orders, err := store.FormatOrders([]store.Order{drain})
	must(t, err)
	first := recordtest.Grant(1, 0, "worker-b")
	ordered := first
	ordered.Seq, ordered.Kind, ordered.WindowStart, ordered.Orders = 2, store.KindOrder, first.WindowEnd, orders
	leave := func(seq int64, kind store.Kind) store.Record {
		r := recordtest.Release(recordtest.Grant(1, 1, "worker-b"), seq, recordtest.Minutes(5.5))
		if r.Orders = orders; kind == store.KindOrder {
			r.Kind, r.WindowStart, r.WindowEnd = kind, recordtest.Minutes(10), recordtest.Minutes(10)
		}
		return r
	}
	release := store.Order{Kind: store.OrderRelease, Target: recordtest.Grant(1, 1, "worker-b").Claim, At: recordtest.Minutes(5.1), Until: recordtest.Minutes(60), By: "ann", Why: "stuck"}
	asked := leave(2, store.KindOrder)
	if asked.Orders, err = store.FormatOrders([]store.Order{release}); err != nil {
		t.Fatal(err)
	}
	rest := recordtest.Part(4, recordtest.Grant(4, 1, "worker-a"), 5.5, 10)
	rest.Token = recordtest.Minutes(5.5).UnixMilli()
	failed := recordtest.Grant(1, 1, "worker-b")
	failed.Attempt = 1
	released := recordtest.Release(failed, 2, recordtest.Minutes(5.2))
	released.Metadata = store.Outcome{Result: store.Failed, GivenUp: true, Exited: true, ExitCode: 3, InstanceID: "worker-b", Attempt: 1, SlotStart: failed.SlotStart, SlotEnd: failed.SlotEnd, Begun: failed.SlotStart, Ended: recordtest.Minutes(5.2)}.Metadata()
	for name, test := range map[string]struct {
		records []store.Record
		missed  string
		want    []string
		never   string
	}{
		"drained": {
			[]store.Record{first, ordered},
			"nobody had it: drained",
			[]string{
				"Host vm-2 is drained by ann at 12:04:00Z, until 12:29:00Z: new disk. It kept worker-b from claiming.",
				"worker-b Its host vm-2 is drained by ann at 12:04:00Z, until 12:29:00Z: new disk.",
			},
			"No worker",
		},
		"poison": {
			[]store.Record{first, {WorkerType: "export", Seq: 2, Defect: "token is missing"}},
			"nobody had it: poison",
			[]string{"Record 2 kept workers from claiming: token is missing. leasectl doctor says what to do.", "worker-b The newest record couldn't be obeyed."},
			"kept worker-b",
		},
		"drained at once": {
			[]store.Record{recordtest.Grant(1, 1, "worker-b"), leave(2, store.KindOrder), leave(3, store.KindRelease)},
			"",
			[]string{"It gave back the rest at 12:05:30Z. At 12:06:00Z nobody had it. Host vm-2 is drained by ann at 12:04:00Z, until 12:29:00Z: new disk."},
			"No worker",
		},
		"asked to release": {
			[]store.Record{recordtest.Grant(1, 1, "worker-b"), asked, leave(3, store.KindRelease)},
			"",
			[]string{"with priority 0. It claimed it 9.2s before it began. ann asked for its release at 12:05:06Z: stuck. It gave back the rest at 12:05:30Z. At 12:06:00Z nobody had it."},
			"No worker",
		},
		"and another takes over": {
			[]store.Record{recordtest.Grant(1, 1, "worker-b"), asked, leave(3, store.KindRelease), rest},
			"",
			[]string{"ann asked for its release at 12:05:06Z: stuck. It gave back the rest at 12:05:30Z. Then worker-a has it, with priority 0."},
			"No worker",
		},
		"given up": {
			[]store.Record{failed, released},
			"",
			[]string{"Its work failed with exit code 3, and was given up: attempt 1 was the last."},
			"Nobody",
		},
	} {
		l := recorded(6, test.records...)
		p := store.Presence{
			WorkerType: "export", ID: "1", Client: "1", InstanceID: "worker-b", Host: "vm-2", PID: 7, Schedule: "every 5m",
			Phase: store.PhaseCandidate, Since: recordtest.Minutes(-60), Seen: recordtest.Minutes(5.5), Next: recordtest.Minutes(11),
		}
		if test.missed != "" {
			p.Missed, p.MissedFrom, p.MissedUntil = test.missed, recordtest.Minutes(5), recordtest.Minutes(10)
		}
		must(t, l.Attend(t.Context(), []store.Presence{p}))
		got, err := whyOf(t, l, "", "", "")
		text := strings.Join(strings.Fields(got), " ")
		for _, want := range test.want {
			if err != nil || !strings.Contains(text, want) {
				t.Errorf("%s: why = %s, %v, want %q", name, got, err, want)
			}
		}
		if strings.Contains(text, test.never) {
			t.Errorf("%s: why = %s, want no %q", name, got, test.never)
		}
	}
}

// The lease of a holder that died goes on: what shows that it died, and what ends the lease, is said.
func TestWhySaysThatTheHolderIsAbsent(t *testing.T) {
	for name, test := range map[string]struct {
		group     string
		next      float64
		want, not string
	}{
		"one that died": {"", 7, "It has the slot. It is absent: it was last seen at 12:06:00Z, and should have been seen again by 12:07:00Z. It died, or can't reach the store. " +
			"If it died, leasectl release --force ends its lease, which otherwise lasts until 12:10:00Z.", "Its group"},
		"one that is there":     {"", 9.5, "It has the slot.", "absent"},
		"a member that is gone": {"north", 7, "Its group has the slot.", "absent"},
	} {
		l := recorded(9)
		r := recordtest.Grant(1, 1, "worker-b")
		r.Group, r.Worker = test.group, store.Worker{Host: "vm-2", PID: 7}
		l.Put(r)
		p := store.Presence{
			WorkerType: "export", ID: "1", Client: "1", InstanceID: "worker-b", Group: test.group, Host: "vm-2", PID: 7, Schedule: "every 5m",
			Phase: store.PhaseHolder, Since: recordtest.Minutes(-60), Seen: recordtest.Minutes(6), Next: recordtest.Minutes(test.next),
		}
		must(t, l.Attend(t.Context(), []store.Presence{p}))
		got, err := whyOf(t, l, "", "", "")
		if text := strings.Join(strings.Fields(got), " "); err != nil || !strings.Contains(text, test.want) || strings.Contains(text, test.not) {
			t.Errorf("%s: why = %s, %v, want %q, and no %q", name, got, err, test.want, test.not)
		}
	}
}

// Of many workers the same is said once.
// Machines that read one crontab in two time zones have two schedules for a job, before its first run, too.
func TestWhySaysThatSchedulesDifferBeforeTheFirstRun(t *testing.T) {
	l := ledgerAt(recordtest.Noon)
	worker := func(name, schedule string) store.Presence {
		return store.Presence{
			WorkerType: "export", ID: name, InstanceID: name, Phase: store.PhaseCandidate, Schedule: schedule,
			Since: recordtest.Minutes(-1), Seen: recordtest.Minutes(-1), Next: recordtest.Minutes(1),
		}
	}
	must(t, l.Attend(t.Context(), []store.Presence{worker("a", "cron 30 2 * * * Europe/Berlin"), worker("b", "cron 30 2 * * * UTC")}))
	const want = "The schedules of its workers differ: cron 30 2 * * *, cron 30 2 * * * Europe/Berlin. So each claims slots of its own: " +
		"give all workers of the type one time zone: CRON_TZ in a crontab, zone in jobs.yaml, --zone."
	if got, err := whyOf(t, l, "table", "", ""); err != nil || !strings.Contains(strings.Join(strings.Fields(got), " "), want) {
		t.Errorf("why = %s, %v, want %s", got, err, want)
	}
	must(t, l.Attend(t.Context(), []store.Presence{worker("b", "cron 30 2 * * * Europe/Berlin")}))
	if got, err := whyOf(t, l, "table", "", ""); err != nil || strings.Contains(got, "differ") {
		t.Errorf("why = %s, %v, want no word of schedules", got, err)
	}
}

// All that is known of a time before the clock was set back is that it was.
func TestWhySaysThatTheClockWasSetBack(t *testing.T) {
	l := recorded(-120)
	l.Put(recordtest.Grant(1, 0, "a"))
	const want = "by the store's clock, which is yet to come: that was set back since, most likely."
	if got, err := whyOf(t, l, "table", "", ""); err != nil || !strings.Contains(strings.Join(strings.Fields(got), " "), want) {
		t.Errorf("why = %s, %v, want %s", got, err, want)
	}
}

func TestWhyOfManyWorkersIsShort(t *testing.T) {
	l := recorded(6)
	l.Put(recordtest.Grant(1, 1, "worker-b"))
	var crew []store.Presence
	for i := range 200 {
		p := store.Presence{
			WorkerType: "export", ID: fmt.Sprint(i), Client: "1", InstanceID: fmt.Sprintf("w%03d", i), Host: "vm-2", PID: 7, Schedule: "every 5m", Priority: 3, Effective: 3,
			Phase: store.PhaseCandidate, Since: recordtest.Minutes(-60), Seen: recordtest.Minutes(5.5), Next: recordtest.Minutes(11),
		}
		if i >= 100 {
			p.Seen = recordtest.Minutes(-30 - float64(i))
			p.Next = p.Seen.Add(time.Minute)
		}
		crew = append(crew, p)
	}
	must(t, l.Attend(t.Context(), crew))
	got, err := whyOf(t, l, "", "", "")
	must(t, err)
	if lines := strings.Count(got, "\n"); lines > 40 {
		t.Errorf("why of 200 workers has %d lines, want 40 at most:\n%s", lines, got)
	}
	for _, want := range []string{
		"\nw000, w001, w002, w003, w004, w005 and 94 more, each:\n  Its priority is 3;", "\nw100\n  It is absent: it was last seen at 09:50:00Z",
		"\nw105, w106, w107, w108, w109, w110 and 89 more, each:\n  Much the same,", "\nworker-b\n  It had the slot.",
	} {
		if want = strings.ReplaceAll(want, "It had", "It has"); !strings.Contains(got, want) {
			t.Errorf("why of 200 workers =\n%s\nwant %q", got, want)
		}
	}
	text, err := whyOf(t, l, "json", "", "")
	var answer Answer
	if err := errors.Join(err, json.Unmarshal([]byte(text), &answer)); err != nil || len(answer.Workers) != 201 {
		t.Errorf("why has %d workers as JSON, %v, want 201", len(answer.Workers), err)
	}
}

// What is older than the newest records is found by its key, also where the oldest have been trimmed, and
// leases were extended often.
func TestWhyFindsOldSlots(t *testing.T) {
	l := recorded(5*3000 + 1)
	for n := 200; n <= 3000; n++ {
		l.Put(recordtest.Grant(int64(n+1), n, fmt.Sprintf("w%d", n%7)))
	}
	for _, n := range []int{201, 202, 250, 1000, 1999, 2001, 2899, 2900, 2999, 3000} {
		got, err := whyOf(t, l, "json", recordtest.Minutes(float64(5*n)+2.5).Format(time.RFC3339), "")
		var a Answer
		must(t, errors.Join(err, json.Unmarshal([]byte(got), &a)))
		if want := fmt.Sprintf("w%d", n%7); a.Holder == nil || a.Holder.InstanceID != want || a.SlotStart != store.Format(recordtest.Minutes(float64(5*n))) || len(a.Terms) != 1 || a.Terms[0].State == "upcoming" {
			t.Errorf("slot %d: why = %s, want that %s had it", n, got, want)
		}
	}
	if got, err := whyOf(t, l, "json", recordtest.Minutes(500).Format(time.RFC3339), ""); err != nil || !strings.Contains(got, `"unread": true`) {
		t.Errorf("why of a slot that was trimmed = %s, %v, want that it is not known", got, err)
	}
}

func TestParseMoment(t *testing.T) {
	now := time.Date(2026, 3, 2, 1, 30, 0, 0, time.UTC)
	for text, want := range map[string]string{
		"01:30": "2026-03-02T01:30:00Z", "01:31": "2026-03-01T01:31:00Z", "00:00": "2026-03-02T00:00:00Z", "23:59:59": "2026-03-01T23:59:59Z", "01:29Z": "2026-03-02T01:29:00Z",
		"2026-03-02T02:00:00+01:00": "2026-03-02T01:00:00Z", "2027-01-01T00:00:00.5Z": "2027-01-01T00:00:00.5Z",
	} {
		m, err := ParseMoment(text)
		if got := m.Before(now, time.UTC).Format(time.RFC3339Nano); err != nil || got != want {
			t.Errorf("ParseMoment(%q) at %v = %s, %v, want %s", text, now, got, err, want)
		}
	}
	for _, text := range []string{"", "2am", "25:00", "2026-03-02", "12", "12:00:00.5.5"} {
		if m, err := ParseMoment(text); err == nil {
			t.Errorf("ParseMoment(%q) = %+v, want an error", text, m)
		}
	}
	if got := (Moment{}).Before(now, time.UTC); !got.Equal(now) {
		t.Errorf("no moment is %v, want now", got)
	}
}

// A lease that was not extended because its work was done has not been left.
func TestWhySaysOfWorkThatIsDoneOnlyThat(t *testing.T) {
	l := recorded(4)
	a := recordtest.Part(1, recordtest.Grant(1, 0, "worker-a"), 0, 2)
	a.Attempt = 1
	l.Put(a)
	done := recordtest.Done(a, 2, recordtest.Minutes(5), recordtest.Minutes(1))
	l.Put(done)
	got, err := whyOf(t, l, "", "", "")
	if err != nil || !strings.Contains(got, "The work was done at 12:01:00Z") || strings.Contains(got, "had not extended") {
		t.Errorf("why = %q, %v, want that the work was done, and nothing else", got, err)
	}
}

// A lease that lasted to the end of its slot isn't one whose worker fell silent, and neither is what is known of a worker
// that has not been seen since.
func TestHowALeaseEndedIsToldByWhatIsKnown(t *testing.T) {
	l := attended(t)
	whole, part := recordtest.Grant(1, 4, "worker-d"), recordtest.Part(2, recordtest.Grant(2, 5, "worker-d"), 25, 27)
	whole.Worker, part.Worker = store.Worker{Host: "vm-4", PID: 7}, store.Worker{Host: "vm-4", PID: 7}
	for _, r := range []store.Record{whole, part} {
		r.WorkerType = "export"
		l.Put(r)
	}
	for at, want := range map[string]string{
		"12:21": "It had the slot. It was last seen at 12:22:30Z, and should have been seen again by 12:27:30Z: it may have died in it, or have lost the store.",
		"12:31": "It was absent: it was last seen at 12:22:30Z, and its lease ended without a word at 12:27:00Z. It died, or couldn't reach the store.",
		"12:26": "Its lease ended at 12:27:00Z: it had not extended it. Its worker fell silent: it died, stood still, or couldn't reach the store.",
	} {
		got, err := whyOf(t, l, "", at, "worker-d")
		if text := strings.Join(strings.Fields(got), " "); err != nil || !strings.Contains(text, want) {
			t.Errorf("why at %s = %s, %v, want %q", at, got, err, want)
		}
	}
	var stdout bytes.Buffer
	err := showLedger(t.Context(), storeuri.Target{Scheme: "sqlite", Shown: "sqlite:leases.db"}, l, Options{WorkerType: "export", Last: 9, Timeout: time.Minute}, Screen{Writer: &stdout})
	for _, want := range []string{" ended\n", " expired  to +2m0s, its worker fell silent\n"} {
		if err != nil || strings.Count(stdout.String(), want) != 1 {
			t.Errorf("inspect slots = %s, %v, want one line with %q", stdout.String(), err, want)
		}
	}
}

// A worker that has just begun waits for its first slot, whether or not it has claimed that. Nothing is trimmed or lost then.
func TestWhySaysThatANewWorkerWaitsForItsFirstSlot(t *testing.T) {
	for name, records := range map[string][]store.Record{"before its claim": nil, "after it": {recordtest.Grant(1, 1, "a")}} {
		l := recorded(4.9, records...)
		p := store.Presence{
			WorkerType: "export", ID: "a", InstanceID: "a", Host: "host", PID: 1, Schedule: "every 5m", Phase: store.PhaseCandidate,
			Since: recordtest.Minutes(4), Seen: recordtest.Minutes(4.5), Next: recordtest.Minutes(6),
		}
		must(t, l.Attend(t.Context(), []store.Presence{p}))
		got, err := whyOf(t, l, "", "", "")
		text := strings.Join(strings.Fields(got), " ")
		if err != nil || !strings.Contains(text, "It began at 12:04:00Z, and waits for its first slot") || strings.Contains(text, "trimmed") {
			t.Errorf("%s: why = %s, %v, want that it waits for its first slot", name, got, err)
		}
	}
}
