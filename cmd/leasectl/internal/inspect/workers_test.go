package inspect

import (
	"bytes"
	"encoding/json"
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/benbjohnson/clock"

	"github.com/slotlease/slotlease/cmd/leasectl/internal/storeuri"
	"github.com/slotlease/slotlease/internal/recordtest"
	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/memory"
	"github.com/slotlease/slotlease/workerlease"
)

// attended is a ledger in memory at 12:42:30, whose worker-b holds the lease of export, with workers in all states.
func attended(t *testing.T) *memory.Ledger {
	t.Helper()
	c := clock.NewMock()
	now := recordtest.Noon.Add(42*time.Minute + 30*time.Second)
	c.Set(now)
	l := memory.New(memory.Options{Clock: c})
	r := recordtest.Grant(1, 8, "worker-b")
	r.Worker = store.Worker{Host: "vm-2", PID: 7}
	l.Put(r)
	at := func(id, instance string, change func(*store.Presence)) store.Presence {
		p := store.Presence{
			WorkerType: "export", ID: id, Client: id, InstanceID: instance, Host: "vm-" + id, PID: 7, Version: "v1.2.3", Schedule: "every 5m",
			Priority: 1, Effective: 1, Phase: store.PhaseCandidate, Missed: "worker-b has it, with priority 0",
			Offset: 12 * time.Millisecond, Uncertainty: 3 * time.Millisecond,
			Since: recordtest.Noon, Seen: now.Add(-20 * time.Second), Next: now.Add(5 * time.Minute),
		}
		change(&p)
		return p
	}
	score := 0.42
	err := l.Attend(t.Context(), []store.Presence{
		at("1", "worker-a", func(p *store.Presence) {
			p.Phase, p.Labels, p.Effective, p.Why = store.PhaseStandby, map[string]string{"region": "us", "rack": "4"}, 2, "region is not eu"
		}),
		at("2", "worker-b", func(p *store.Presence) {
			p.Phase, p.Missed, p.Priority, p.Effective, p.Offset = store.PhaseHolder, "", 0, 0, -90*time.Minute
		}),
		at("3", "worker-c", func(p *store.Presence) { p.Ineligible, p.Score = "health score 0.42 is below 0.80", &score }),
		at("4", "worker-d", func(p *store.Presence) { p.Seen, p.Next = now.Add(-20*time.Minute), now.Add(-15*time.Minute) }),
		at("5", "worker-e", func(p *store.Presence) {
			p.Phase, p.Effective, p.Failures, p.StepsBackUntil = store.PhaseStepping, 7, 5, now.Add(10*time.Minute+30*time.Second)
		}),
		at("6", "worker-f", func(p *store.Presence) { p.Phase, p.Failures, p.Missed = store.PhaseStopped, 4, "" }),
		at("7", "evil\x1b[2J", func(p *store.Presence) { p.Group, p.Missed = "north", "two\nlines\x1b]0;owned\a" }),
		at("8", "long-gone", func(p *store.Presence) { p.Seen = now.Add(-25 * time.Hour) }),
		at("9", "worker-b", func(p *store.Presence) {
			p.WorkerType, p.Missed = "mail", "nobody had it: too late"
			p.Job = &store.JobTimes{StartWithin: 75 * time.Second, Overrun: "finish", Timeout: time.Hour, CatchUp: "newest", CatchUpWithin: 24 * time.Hour}
		}),
	})
	must(t, err)
	return l
}

// crewOf runs inspect workers on a ledger.
func crewOf(t *testing.T, l store.Ledger, o Options) (string, error) {
	t.Helper()
	var stdout bytes.Buffer
	o.Timeout = time.Minute
	err := showWorkers(t.Context(), storeuri.Target{Scheme: "sqlite", Shown: "sqlite:leases.db"}, l, o, Screen{Writer: &stdout})
	return stdout.String(), err
}

// Whatever is written in a roster: HOLDS comes from the ledger, and no number breaks the form of a column.
func TestWhatARosterSaysIsNotTakenForWhatTheLedgerSays(t *testing.T) {
	l := attended(t)
	all, err := l.Presences(t.Context(), "mail")
	must(t, err)
	for phase, want := range map[store.Phase]string{
		"holds": `"holds"`, "gone": `"gone"`, "not eligible": `"not eligible"`, "candidate ": `"candidate "`, "holds\u200b": `"holds\u200b"`,
		store.PhaseHolder: "candidate", store.PhaseStandby: "standby",
	} {
		p := all[0]
		p.Phase, p.Offset, p.Uncertainty = phase, math.MinInt64, -time.Millisecond
		must(t, l.Attend(t.Context(), []store.Presence{p}))
		text, err := crewOf(t, l, Options{WorkerType: "mail", JSON: true})
		var c Crew
		if err = errors.Join(err, json.Unmarshal([]byte(text), &c)); err != nil {
			t.Fatal(err)
		}
		if w := c.Workers[0]; w.State != want || w.Holds {
			t.Errorf("a worker whose presence says %q has the state %s, holds %v; want %s, false", phase, w.State, w.Holds, want)
		}
		text, err = crewOf(t, l, Options{WorkerType: "mail"})
		if err != nil || strings.Contains(text, "--") || !strings.Contains(text, "-2562047h47m16.854775807s ±1ms") {
			t.Errorf("inspect workers of a time of day that can't be = %s, %v", text, err)
		}
	}
}

// A presence may be older than the newest slot, which the ledger knows.
func TestWhoHoldsHasNotMissedItsNewestSlot(t *testing.T) {
	l := attended(t)
	all, err := l.Presences(t.Context(), "export")
	must(t, err)
	all[1].Phase, all[1].Missed = store.PhaseStandby, "worker-a has it"
	must(t, l.Attend(t.Context(), all[1:2]))
	for _, asJSON := range []bool{false, true} {
		text, err := crewOf(t, l, Options{WorkerType: "export", JSON: asJSON})
		if err != nil || strings.Contains(text, "worker-a has it") {
			t.Errorf("inspect workers, as JSON: %v, of a worker that holds since = %s, %v", asJSON, text, err)
		}
	}
}

// Who had the slot when a standby wrote that may have died, or lost it, since.
func TestAStandbySaysWhoHasTheSlotWhileThatIsTrue(t *testing.T) {
	for want, change := range map[string]func(l *memory.Ledger, holder *store.Presence){
		"worker-b has it, with priority 0": func(*memory.Ledger, *store.Presence) {},
		"worker-b had it, with priority 0": func(_ *memory.Ledger, holder *store.Presence) { holder.Next = holder.Next.Add(-time.Hour) },
		"worker-b had it, with priority 0 ": func(l *memory.Ledger, _ *store.Presence) {
			l.Put(recordtest.Release(recordtest.Grant(1, 8, "worker-b"), 2, recordtest.Minutes(42)))
		},
	} {
		l := attended(t)
		all, err := l.Presences(t.Context(), "export")
		must(t, err)
		change(l, &all[1])
		must(t, l.Attend(t.Context(), all[1:2]))
		for _, asJSON := range []bool{false, true} {
			text, err := crewOf(t, l, Options{WorkerType: "export", JSON: asJSON})
			if want := strings.TrimSpace(want); err != nil || strings.Count(text, want) < 2 || strings.Count(text, " it, with") != strings.Count(text, want) {
				t.Errorf("inspect workers, as JSON: %v, is %s, %v, want %q of all", asJSON, text, err, want)
			}
		}
	}
}

func TestInspectWorkersNeedsARoster(t *testing.T) {
	_, err := crewOf(t, struct{ store.Ledger }{memory.New(memory.Options{})}, Options{})
	if err == nil || !strings.Contains(err.Error(), "keeps no roster") {
		t.Errorf("inspect workers of a ledger without a roster: %v", err)
	}
}

// A holder of an earlier version, or without a roster, is named nevertheless.
func TestInspectWorkersNamesHoldersThatAreNotInTheRoster(t *testing.T) {
	l := attended(t)
	r := recordtest.Grant(1, 8, "old\x1b[2J")
	r.WorkerType = "mail"
	l.Put(r)
	for _, o := range []Options{{}, {WorkerType: "mail"}} {
		got, err := crewOf(t, l, o)
		if err != nil || strings.Count(got, " holds mail, and isn't in the roster\n") != 1 || strings.Contains(got, "\x1b") || strings.Contains(got, "holds export") {
			t.Errorf("inspect workers = %s, %v", got, err)
		}
	}
	got, err := crewOf(t, l, Options{WorkerType: "mail", JSON: true})
	var c Crew
	if err := errors.Join(err, json.Unmarshal([]byte(got), &c)); err != nil || len(c.Absent) != 1 || c.Absent[0].WorkerType != "mail" {
		t.Errorf("inspect workers = %s, %v", got, err)
	}
}

// The lease of a holder that died is still in force.
func TestAHolderThatIsGoneIsShownToHaveTheLease(t *testing.T) {
	seen := recordtest.Noon.Add(-3*time.Minute - 39*time.Second)
	w := workerlease.Candidate{Presence: store.Presence{InstanceID: "worker-b", Phase: store.PhaseHolder, Seen: seen, Next: seen.Add(15 * time.Second)}, Standing: workerlease.Gone, Holds: true}
	if note := noteOfWorker(w, recordtest.Noon); note != "overdue by 3m24s; its lease is in force" {
		t.Errorf("the note of a holder that is gone is %q, want by how much it is overdue, and that its lease is in force", note)
	}
	w.Next = recordtest.Noon.Add(-time.Millisecond)
	if note := noteOfWorker(w, recordtest.Noon); note != "overdue by 1s; its lease is in force" {
		t.Errorf("the note of a holder that has just become overdue is %q", note)
	}
	w.Next = recordtest.Noon.Add(time.Second)
	if note := noteOfWorker(w, recordtest.Noon); note != "fell silent at the end of its lease; its lease is in force" {
		t.Errorf("the note of a holder that fell silent, and isn't overdue yet, is %q", note)
	}
	w.Standing, w.Present = workerlease.Holds, true
	if note := noteOfWorker(w, recordtest.Noon); note != "" {
		t.Errorf("the note of a holder that is there is %q, want none", note)
	}
}
