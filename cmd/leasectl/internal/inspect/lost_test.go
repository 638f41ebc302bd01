package inspect

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/benbjohnson/clock"

	"github.com/slotlease/slotlease/cmd/leasectl/internal/storeuri"
	"github.com/slotlease/slotlease/internal/recordtest"
	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/memory"
)

// flushed is a ledger that was flushed at 12:01, with two workers that wait for what may still be in force at 12:02, and a third
// that had died before.
func flushed(t *testing.T) (*memory.Ledger, *clock.Mock) {
	t.Helper()
	c := clock.NewMock()
	c.Set(recordtest.Minutes(2))
	l := memory.New(memory.Options{Clock: c})
	waits := func(name string, seen float64) store.Presence {
		return store.Presence{
			WorkerType: "export", ID: name, InstanceID: name, Phase: store.PhaseCandidate, Schedule: "every 5m",
			Since: recordtest.Minutes(-60), Seen: recordtest.Minutes(seen), Next: recordtest.Minutes(seen + 5),
			Missed: "nobody had it: store went back", MissedFrom: recordtest.Noon, MissedUntil: recordtest.Minutes(5),
		}
	}
	must(t, l.Attend(t.Context(), []store.Presence{waits("a", -30), waits("c", 1), waits("b", 1)}))
	return l, c
}

// As long as workers wait, the ledger has nothing to show: they say what has happened.
func TestALedgerThatWasFlushedIsShownAsThat(t *testing.T) {
	l, _ := flushed(t)
	const want = "the store has lost records, or may have, so that b, c claimed nothing"
	got, err := shown(t, l, Options{WorkerType: "export", Last: 9, Timeout: time.Minute})
	if err != nil || !strings.Contains(got, "\nno records: "+want+"\n") {
		t.Errorf("inspect slots = %s, %v", got, err)
	}
	var status bytes.Buffer
	err = showStatus(t.Context(), storeuri.Target{}, l, Options{Timeout: time.Minute}, Screen{Writer: &status})
	if got := status.String(); err != nil || !strings.Contains(got, "  "+want+": see leasectl doctor") || strings.Contains(got, "no slot yet") {
		t.Errorf("status = %s, %v", got, err)
	}
	got, err = whyOf(t, l, "", "", "")
	if err != nil || !strings.Contains(got, "b, c, each:\n  The store had lost records that it had read") {
		t.Errorf("why = %s, %v", got, err)
	}
}

// Once a worker has claimed again, and has said what is lost, nobody reads that somebody's slot had no holder.
func TestASlotWhoseRecordsAreLostIsShownAsThat(t *testing.T) {
	l, c := flushed(t)
	c.Set(recordtest.Minutes(21))
	for n, r := range []store.Record{recordtest.Grant(1, 2, "b"), recordtest.Grant(3, 4, "b")} {
		lost := store.Lost{Seq: int64(7 + n), Claim: "x", InstanceID: "evil\x1b[2J", Start: recordtest.Minutes(15), End: recordtest.Minutes(18)}
		if n == 0 {
			lost.Start, lost.End = time.Time{}, recordtest.Minutes(4)
		}
		l.Put(r)
		told := recordtest.Told(r, r.Seq+1, store.Outcome{})
		told.Metadata = lost.Metadata()
		l.Put(told)
	}
	for at, want := range map[string][]string{
		"2026-03-02T12:01:00Z": {"Who had it at 12:01:00Z isn't known", "or lost.", "The store has lost record 7, of evil�[2J until 12:04:00Z."},
		"2026-03-02T12:16:00Z": {
			"No record that is left says who had the slot from 12:15:00Z to 12:20:00Z.",
			"The store has lost record 8, by which evil�[2J had a lease from 12:15:00Z until 12:18:00Z.",
		},
		"2026-03-02T12:11:00Z": {"b had the slot from 12:10:00Z to 12:15:00Z"},
	} {
		got, err := whyOf(t, l, "", at, "")
		got = strings.Join(strings.Fields(got), " ")
		for _, text := range want {
			if err != nil || !strings.Contains(got, text) {
				t.Errorf("why --at %s = %s, %v, want %q", at, got, err, text)
			}
		}
		if at == "2026-03-02T12:11:00Z" && strings.Contains(got, "lost") {
			t.Errorf("why --at %s = %s, want nothing of what other slots have lost", at, got)
		}
	}
}

// The grant of an attempt may be lost, and what came of it told above that of another worker.
func TestAnAttemptIsShownAsThatOfWhoMadeIt(t *testing.T) {
	l, c := flushed(t)
	c.Set(recordtest.Minutes(21))
	before, r := recordtest.Grant(1, 1, "a"), recordtest.Grant(2, 2, "b")
	r.Attempt = 2
	o := recordtest.Outcome(before, recordtest.Minutes(6), store.Failed)
	o.Attempt = 2
	told := recordtest.Told(r, 3, o)
	told.Metadata = o.Metadata()
	l.Put(r)
	l.Put(told)
	got, err := shown(t, l, Options{WorkerType: "export", Last: 9, Timeout: time.Minute})
	for line := range strings.Lines(got) {
		if f := strings.Fields(line); len(f) > 2 && f[0] == "12:05:00Z" && (f[2] != "a" || strings.Contains(line, "17724")) {
			t.Errorf("the attempt of a is shown as %q", line)
		}
	}
	if err != nil || !strings.Contains(got, "12:05:00Z") {
		t.Errorf("inspect slots = %s, %v, want the slot from 12:05", got, err)
	}
}
