package main

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/slotlease/slotlease/cmd/leasectl/internal/exit"
	"github.com/slotlease/slotlease/cmd/leasectl/internal/firings"
	"github.com/slotlease/slotlease/cmd/leasectl/internal/inspect"
	"github.com/slotlease/slotlease/internal/recordtest"
	"github.com/slotlease/slotlease/store"
)

func TestStatusAndNextOnEachStore(t *testing.T) {
	t.Parallel()
	onEachStore(t, func(t *testing.T, l store.Ledger, _ string, env []string) {
		now := storeTime(t, l)
		r := recordtest.Grant(1, 0, "worker-b")
		r.SlotStart = now.Truncate(5 * time.Minute)
		r.SlotEnd = r.SlotStart.Add(5 * time.Minute)
		r.WindowStart, r.WindowEnd, r.Token = r.SlotStart, now.Add(time.Hour), r.SlotStart.UnixMilli()
		if err := l.Append(t.Context(), r); err != nil {
			t.Fatal(err)
		}
		got := leasectl(t, env, "status", "--output", "json")
		var s inspect.Overview
		if err := json.Unmarshal([]byte(got.stdout), &s); got.code != exit.OK || err != nil {
			t.Fatalf("leasectl status = %+v, %v", got, err)
		}
		if len(s.Types) != 1 || s.Types[0].WorkerType != "export" || s.Types[0].Holder == nil || s.Types[0].Holder.InstanceID != "worker-b" || s.Types[0].Schedule != "every 5m" || s.Types[0].NextStart == "" {
			t.Errorf("leasectl status = %s", got.stdout)
		}
		got = leasectl(t, env, "next", "--worker-type", "export", "--count", "2", "--output", "json")
		var next firings.Report
		if err := json.Unmarshal([]byte(got.stdout), &next); got.code != exit.OK || err != nil {
			t.Fatalf("leasectl next = %+v, %v", got, err)
		}
		if next.Schedule != "every 5m" || len(next.Slots) != 2 || next.Slots[0].Start != s.Types[0].NextStart && next.Slots[0].InMs > (5*time.Minute).Milliseconds() {
			t.Errorf("leasectl next = %s", got.stdout)
		}
		waits := store.Presence{
			WorkerType: "nightly", ID: "1", Client: "1", InstanceID: "worker-a", Schedule: "every 1440m", Phase: store.PhaseCandidate,
			Since: now, Seen: now, Next: now.Add(5 * time.Minute),
		}
		if err := l.(store.Roster).Attend(t.Context(), []store.Presence{waits}); err != nil {
			t.Fatal(err)
		}
		got = leasectl(t, env, "status", "--output", "json")
		if err := json.Unmarshal([]byte(got.stdout), &s); err != nil || len(s.Types) != 2 || s.Types[1].WorkerType != "nightly" || s.Types[1].NextStart == "" || s.Types[1].Note != "no slot yet" {
			t.Errorf("leasectl status of a type that has workers and no records = %+v, %v", got, err)
		}
		for _, args := range [][]string{{"status", "--worker-type", "nightly"}, {"next", "--worker-type", "nightly"}} {
			if got := leasectl(t, env, args...); got.code != exit.OK || !strings.Contains(got.stdout, "every 1440m") && !strings.Contains(got.stdout, "every 24h") {
				t.Errorf("leasectl %s = %+v, want the schedule that its worker has", strings.Join(args, " "), got)
			}
		}
		if got := leasectl(t, env, "next", "--worker-type", "exprot"); got.code != exit.Usage || !strings.Contains(got.stderr, "--worker-type export") {
			t.Errorf("leasectl next of another worker type = %+v", got)
		}
	})
}

func TestNextNeedsNoStore(t *testing.T) {
	got := leasectl(t, nil, "next", "--cron", "0 2 * * *", "--zone", "Europe/Berlin", "--count", "3")
	if got.code != exit.OK || strings.Count(got.stdout, "02:00:00 CE") != 3 {
		t.Errorf("leasectl next = %+v", got)
	}
	for _, args := range [][]string{
		{"next"}, {"next", "--every", "5m", "--worker-type", "x"}, {"next", "--every", "5m", "--store", "sqlite:x.db"}, {"next", "--cron", "nonsense"},
	} {
		if got := leasectl(t, nil, args...); got.code != exit.Usage {
			t.Errorf("leasectl %s = %+v, want that it is refused", strings.Join(args, " "), got)
		}
	}
}
