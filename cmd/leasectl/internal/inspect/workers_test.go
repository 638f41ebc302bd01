package inspect

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/benbjohnson/clock"

	"github.com/slotlease/slotlease/cmd/leasectl/internal/storeuri"
	"github.com/slotlease/slotlease/cmd/leasectl/internal/testutil/golden"
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
		at("9", "worker-b", func(p *store.Presence) { p.WorkerType, p.Missed = "mail", "nobody had it: too late" }),
	})
	if err != nil {
		t.Fatal(err)
	}
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

func TestInspectWorkersShowsWhoIsThere(t *testing.T) {
	for name, o := range map[string]Options{
		"workers.table":     {WorkerType: "export", Output: Table},
		"workers-all.table": {Output: Table},
		"workers.json":      {WorkerType: "export", Output: JSON},
	} {
		got, err := crewOf(t, attended(t), o)
		if err != nil {
			t.Fatal(err)
		}
		if strings.ContainsAny(got, "\x1b\a") {
			t.Errorf("control characters of the roster are let through: %q", got)
		}
		golden.Compare(t, name, got)
	}
	got, err := crewOf(t, memory.New(memory.Options{}), Options{Output: Table})
	if err != nil || !strings.HasPrefix(got, "workers of all types · sqlite:leases.db · ") || !strings.HasSuffix(got, "\n\nno workers are known\n") {
		t.Errorf("inspect workers of an empty ledger = %q, %v", got, err)
	}
}

// Whatever is written in a roster: HOLDS comes from the ledger, and no number breaks the form of a column.
func TestWhatARosterSaysIsNotTakenForWhatTheLedgerSays(t *testing.T) {
	l := attended(t)
	all, err := l.Presences(t.Context(), "mail")
	if err != nil {
		t.Fatal(err)
	}
	for phase, want := range map[store.Phase]string{
		"holds": `"holds"`, "gone": `"gone"`, "not eligible": `"not eligible"`, "candidate ": `"candidate "`, "holds\u200b": `"holds\u200b"`,
		store.PhaseHolder: "candidate", store.PhaseStandby: "standby",
	} {
		p := all[0]
		p.Phase, p.Offset, p.Uncertainty = phase, math.MinInt64, -time.Millisecond
		if err := l.Attend(t.Context(), []store.Presence{p}); err != nil {
			t.Fatal(err)
		}
		text, err := crewOf(t, l, Options{WorkerType: "mail", Output: JSON})
		var c Crew
		if err = errors.Join(err, json.Unmarshal([]byte(text), &c)); err != nil {
			t.Fatal(err)
		}
		if w := c.Workers[0]; w.State != want || w.Holds {
			t.Errorf("a worker whose presence says %q has the state %s, holds %v; want %s, false", phase, w.State, w.Holds, want)
		}
		text, err = crewOf(t, l, Options{WorkerType: "mail", Output: Table})
		if err != nil || strings.Contains(text, "--") || !strings.Contains(text, "-2562047h47m16.854775807s ±1ms") {
			t.Errorf("inspect workers of a time of day that can't be = %s, %v", text, err)
		}
	}
}

// A presence may be older than the newest slot, which the ledger knows.
func TestWhoHoldsHasNotMissedItsNewestSlot(t *testing.T) {
	l := attended(t)
	all, err := l.Presences(t.Context(), "export")
	if err != nil {
		t.Fatal(err)
	}
	all[1].Phase, all[1].Missed = store.PhaseStandby, "worker-a has it"
	if err := l.Attend(t.Context(), all[1:2]); err != nil {
		t.Fatal(err)
	}
	for _, output := range []string{Table, JSON} {
		text, err := crewOf(t, l, Options{WorkerType: "export", Output: output})
		if err != nil || strings.Contains(text, "worker-a has it") {
			t.Errorf("inspect workers --output %s of a worker that holds since = %s, %v", output, text, err)
		}
	}
}

func TestInspectWorkersNeedsARoster(t *testing.T) {
	_, err := crewOf(t, struct{ store.Ledger }{memory.New(memory.Options{})}, Options{Output: Table})
	if err == nil || !strings.Contains(err.Error(), "keeps no roster") {
		t.Errorf("inspect workers of a ledger without a roster: %v", err)
	}
}

// Only what is new is printed: a worker that was seen again is not.
func TestInspectWorkersPrintsChanges(t *testing.T) {
	l := attended(t)
	var stdout bytes.Buffer
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	looks := 0
	o := Options{WorkerType: "mail", Output: JSON, Watch: true, Interval: time.Millisecond, Timeout: time.Minute}
	watched := looking{l, func() {
		switch looks++; looks {
		case 3:
			all, _ := l.Presences(ctx, "mail")
			all[0].Ineligible = "disk full"
			_ = l.Attend(ctx, all)
		case 4:
			all, _ := l.Presences(ctx, "mail")
			all[0].Seen = all[0].Seen.Add(time.Second)
			_ = l.Attend(ctx, all)
		case 6:
			cancel()
		}
	}}
	if err := showWorkers(ctx, storeuri.Target{Shown: "s"}, watched, o, Screen{Writer: &stdout, Report: func(err error) { t.Error(err) }}); err != nil {
		t.Fatal(err)
	}
	var states []string
	for line := range strings.Lines(stdout.String()) {
		var c Crew
		if err := json.Unmarshal([]byte(line), &c); err != nil {
			t.Fatal(err)
		}
		states = append(states, c.Workers[0].State)
	}
	if got := strings.Join(states, ", "); got != "candidate, not eligible" {
		t.Errorf("printed %s", got)
	}
}

// looking is a ledger that calls a function each time its roster is read.
type looking struct {
	*memory.Ledger

	looked func()
}

func (l looking) Presences(ctx context.Context, workerType string) ([]store.Presence, error) {
	l.looked()
	return l.Ledger.Presences(ctx, workerType)
}

// A holder of an earlier version, or without a roster, is named nevertheless.
func TestInspectWorkersNamesHoldersThatAreNotInTheRoster(t *testing.T) {
	l := attended(t)
	r := recordtest.Grant(1, 8, "old\x1b[2J")
	r.WorkerType = "mail"
	l.Put(r)
	for _, o := range []Options{{Output: Table}, {WorkerType: "mail", Output: Table}} {
		got, err := crewOf(t, l, o)
		if err != nil || strings.Count(got, " holds mail, and isn't in the roster\n") != 1 || strings.Contains(got, "\x1b") || strings.Contains(got, "holds export") {
			t.Errorf("inspect workers = %s, %v", got, err)
		}
	}
	got, err := crewOf(t, l, Options{WorkerType: "mail", Output: JSON})
	var c Crew
	if err := errors.Join(err, json.Unmarshal([]byte(got), &c)); err != nil || len(c.Absent) != 1 || c.Absent[0].WorkerType != "mail" {
		t.Errorf("inspect workers = %s, %v", got, err)
	}
}

// The lease of a holder that died is still in force.
func TestAHolderThatIsGoneIsShownToHaveTheLease(t *testing.T) {
	w := workerlease.Candidate{Presence: store.Presence{InstanceID: "worker-b", Phase: store.PhaseHolder}, Holds: true}
	if got, note := stateOf(w), noteOfWorker(w, recordtest.Noon); got != gone || note != "its lease is in force" {
		t.Errorf("a holder that is gone is %q, %q, want that its lease is in force", got, note)
	}
	w.Present = true
	if note := noteOfWorker(w, recordtest.Noon); note != "" {
		t.Errorf("the note of a holder that is there is %q, want none", note)
	}
}
