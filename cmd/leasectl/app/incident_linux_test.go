package app

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/benbjohnson/clock"

	"github.com/slotlease/slotlease/cmd/leasectl/internal/doctor"
	"github.com/slotlease/slotlease/cmd/leasectl/internal/exit"
	"github.com/slotlease/slotlease/cmd/leasectl/internal/inspect"
	"github.com/slotlease/slotlease/cmd/leasectl/internal/storeuri"
	"github.com/slotlease/slotlease/cmd/leasectl/internal/testutil/procs"
	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/testutil/clocks"
	"github.com/slotlease/slotlease/workerlease"
)

// The person on call has leasectl and the store: nobody does the work, since somebody has paused it.
// Once that has ended, the favourite is missed, whose machine has died, and a worker whose time of day is
// off has the work, which another one is to do.
func TestAnIncidentIsFoundAndMendedWithLeasectlAlone(t *testing.T) {
	t.Parallel()
	_, uri := newLedger(t)
	env := []string{storeuri.Variable + "=" + uri}
	favourite := start(t, "run", "--store", uri, "--worker-type", "report", "--every", "2s", "--instance-id", "favourite", "--", "sleep", "60")
	favourite.await("command started")
	start(t, "run", "--store", uri, "--worker-type", "report", "--every", "2s", "--priority", "4", "--instance-id", "spare", "--", "sleep", "60").await("ready")
	leaseByAWrongClock(t, uri)

	mustRun(t, env, "pause", "--worker-type", "report", "--for", "1h", "--reason", "the database moves")
	favourite.signal(syscall.SIGKILL)

	procs.Eventually(t, "nobody holds, which leasectl status shows with the reason", func() bool {
		s := statusOfType(t, env, "report")
		return s.Holder == nil && strings.Contains(s.Note, "paused") && strings.Contains(s.Note, "the database moves")
	})
	if got := strings.Join(strings.Fields(mustRun(t, env, "why", "--worker-type", "report")), " "); !strings.Contains(got, "paused") || !strings.Contains(got, "the database moves") {
		t.Errorf("leasectl why = %s, want that it is paused, and why", got)
	}
	mustRun(t, env, "resume", "--worker-type", "report")
	awaitHolder(t, env, "clockless")

	wantOfDoctor(t, env, "worker-clocks", "clockless")
	procs.Eventually(t, "the favourite is found to be gone", func() bool {
		time.Sleep(500 * time.Millisecond)
		return slices.ContainsFunc(checks(t, env), func(f store.Finding) bool { return f.Check == "workers" && strings.Contains(f.Text, "favourite") })
	})
	if got := mustRun(t, env, "why", "--worker-type", "report", "--instance-id", "favourite"); !strings.Contains(got, "last seen") {
		t.Errorf("leasectl why --instance-id favourite = %s, want when it was last seen", got)
	}
	mustRun(t, env, "prefer", "--worker-type", "report", "--instance-id", "spare", "--for", "1h", "--reason", "the other clock is wrong")
	awaitHolder(t, env, "spare")
	mustRun(t, env, "verify", "--worker-type", "report")
}

// leaseByAWrongClock lets a worker take part whose time of day is a minute and a half ahead.
func leaseByAWrongClock(t *testing.T, uri string) {
	t.Helper()
	target, err := storeuri.Parse(uri, func(string) string { return "" })
	must(t, err)
	ledger, err := target.Open(t.Context(), false)
	must(t, err)
	client := workerlease.NewClient(ledger, workerlease.ClientOptions{Clock: clocks.Skewed(clock.New(), 90*time.Second), Roster: true})
	worker, err := client.StartLeasing(context.Background(), workerlease.Options{WorkerType: "report", LeaseInterval: 2 * time.Second, Priority: 2, InstanceID: "clockless"},
		workerlease.Callbacks{LeaseAllocated: func(context.Context, workerlease.Lease) {}})
	must(t, err)
	t.Cleanup(func() {
		limited, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		if err := worker.StopLeasing(limited); err != nil {
			t.Error(err)
		}
		_ = ledger.Close(limited)
	})
}

// mustRun runs leasectl, which must succeed, and returns its output.
func mustRun(t *testing.T, env []string, args ...string) string {
	t.Helper()
	got := leasectl(t, env, args...)
	if got.code != exit.OK {
		t.Fatalf("leasectl %s = %+v", strings.Join(args, " "), got)
	}
	return got.stdout
}

// statusOfType is what leasectl status says of a worker type, a moment after it was last asked.
func statusOfType(t *testing.T, env []string, workerType string) inspect.TypeStatus {
	t.Helper()
	time.Sleep(100 * time.Millisecond)
	var s inspect.Overview
	if err := json.Unmarshal([]byte(mustRun(t, env, "status", "--worker-type", workerType, "--output", "json")), &s); err != nil || len(s.Types) != 1 {
		t.Fatalf("leasectl status has %d types, %v, want 1", len(s.Types), err)
	}
	return s.Types[0]
}

// awaitHolder waits until a worker holds.
func awaitHolder(t *testing.T, env []string, instance string) {
	t.Helper()
	procs.Eventually(t, instance+" holds", func() bool {
		s := statusOfType(t, env, "report")
		return s.Holder != nil && s.Holder.InstanceID == instance
	})
}

// checks are those of leasectl doctor, none of which must have failed.
func checks(t *testing.T, env []string) []store.Finding {
	t.Helper()
	var r doctor.JSON
	must(t, json.Unmarshal([]byte(mustRun(t, env, "doctor", "--output", "json")), &r))
	return r.Checks
}

// wantOfDoctor demands a warning that names something.
func wantOfDoctor(t *testing.T, env []string, check, names string) {
	t.Helper()
	found := checks(t, env)
	if !slices.ContainsFunc(found, func(f store.Finding) bool {
		return f.Check == check && f.Level == store.LevelWarn && strings.Contains(f.Text, names) && f.Remedy != ""
	}) {
		t.Errorf("leasectl doctor = %+v, want that %s warns of %s, with a remedy", found, check, names)
	}
}
