package app

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/slotlease/slotlease/cmd/leasectl/internal/exit"
	"github.com/slotlease/slotlease/cmd/leasectl/internal/testutil/golden"
	"github.com/slotlease/slotlease/internal/recordtest"
	"github.com/slotlease/slotlease/store"
)

// leverMasked is what levers print, without what differs each time.
func leverMasked(text string) string {
	for pattern, by := range map[string]string{
		`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z`: "TIME",
		regexp.QuoteMeta(operator()):              "OPERATOR",
		` --store [^\s"]+`:                        "",
	} {
		text = regexp.MustCompile(pattern).ReplaceAllString(text, by)
	}
	return text
}

// underWay puts a lease of "export" into a ledger that is in force for more than an hour, and its workers into the
// roster. The next slot begins within the hour, whatever the time of day.
func underWay(t *testing.T, l store.Ledger) {
	t.Helper()
	now := storeTime(t, l)
	r := recordtest.Grant(1, 0, "worker-b")
	r.SlotStart, r.SlotEnd, r.Schedule = now.Truncate(time.Hour), now.Truncate(time.Hour).Add(time.Hour), "every 1h"
	r.WindowStart, r.WindowEnd, r.ReadAt = r.SlotStart, r.SlotEnd.Add(2*time.Hour), r.SlotStart.Add(-time.Second)
	r.Token = r.WindowStart.UnixMilli()
	p := store.Presence{
		WorkerType: "export", ID: "1", Client: "1", InstanceID: "worker-a", Host: "vm-1", PID: 7, Schedule: "every 1h",
		Phase: store.PhaseCandidate, Since: now, Seen: now, Next: now.Add(5 * time.Minute),
	}
	q := p
	q.ID, q.InstanceID, q.Host, q.WorkerType = "2", "odd; rm", "vm-1", "mail"
	must(t, errors.Join(l.Append(t.Context(), r), l.(store.Roster).Attend(t.Context(), []store.Presence{p, q})))
}

// What each lever writes, and what is shown of it, on each store.
func TestLeversOnEachStore(t *testing.T) {
	t.Parallel()
	onEachStore(t, func(t *testing.T, l store.Ledger, _ string, env []string) {
		underWay(t, l)
		var told strings.Builder
		for n, args := range []string{
			"pause --worker-type export --for 2h --reason upgrade",
			"prefer --worker-type export --instance-id worker-a --for 24h --output json",
			"release --worker-type export",
			"drain --host vm-1 --for 1h --output json",
			"pause --worker-type export --for 1h --now --yes",
			"resume --worker-type export",
			"resume --worker-type export --kind release --output json",
			"pause --worker-type new --for 1h",
		} {
			got := leasectl(t, env, strings.Fields(args)...)
			if got.code != exit.OK || got.stderr != "" {
				t.Fatalf("leasectl %s = %+v", args, got)
			}
			fmt.Fprintf(&told, "$ leasectl %s\n%s", args, leverMasked(got.stdout))
			if head := headOf(t, l); n == 0 && (head.Kind != store.KindOrder || head.Claim != "claim-of-worker-b1200" || head.InstanceID != "worker-b" || len(head.OrdersAt(storeTime(t, l))) != 1) {
				t.Errorf("the record of the pause is %+v", head)
			}
		}
		golden.Compare(t, "levers", told.String())
		slots := leasectl(t, env, "inspect", "slots", "--worker-type", "export")
		status := leasectl(t, env, "status", "--worker-type", "export")
		for _, want := range []string{"paused until ", "prefers worker-a until ", "asks for the release of claim ", "no more pause by "} {
			if !strings.Contains(slots.stdout, want) {
				t.Errorf("leasectl inspect slots = %+v, want a row with %q", slots, want)
			}
		}
		if !strings.Contains(status.stdout, "prefers worker-a until ") || !strings.Contains(status.stdout, "drains host vm-1 until ") || strings.Contains(status.stdout, "paused") {
			t.Errorf("leasectl status = %+v, want the orders in force in its note", status)
		}
		for args, want := range map[string]string{
			"prefer --worker-type export --instance-id w": "worker-a\nworker-b\n:4\n",
			"prefer --instance-id ":                       "worker-a\nworker-b\n:4\n",
			"prefer --worker-type mail --instance-id ":    ":4\n",
		} {
			words := strings.Split(args, " ")
			if got := leasectl(t, env, append([]string{"__completeNoDesc"}, words...)...); got.code != exit.OK || !strings.HasSuffix(got.stdout, want) {
				t.Errorf("completing %q = %+v, want %q", args, got, want)
			}
		}
	})
}

// Hosts are completed by the roster, and by the drains in force: a drained host may be in no roster any more.
func TestHostsAreCompletedOnEachStore(t *testing.T) {
	t.Parallel()
	onEachStore(t, func(t *testing.T, l store.Ledger, _ string, env []string) {
		underWay(t, l)
		now := storeTime(t, l)
		var more []store.Presence
		for i, host := range []string{"vm-2", "vm-1", "odd; rm", ""} {
			more = append(more, store.Presence{
				WorkerType: "mail", ID: fmt.Sprint(9 + i), Client: "9", InstanceID: "w", Host: host, PID: 7, Schedule: "every 2h",
				Phase: store.PhaseCandidate, Since: now, Seen: now, Next: now.Add(5 * time.Minute),
			})
		}
		must(t, l.(store.Roster).Attend(t.Context(), more))
		if got := leasectl(t, env, "drain", "--host", "vm-9", "--for", "1h"); got.code != exit.Usage || !strings.Contains(got.stderr, `no worker on host "vm-9", but on odd; rm, vm-1, vm-2: name the worker type`) {
			t.Errorf("leasectl drain of a host without workers = %+v, want the hosts that there are", got)
		}
		mustRun(t, env, "drain", "--worker-type", "export", "--host", "vm-9", "--for", "1h")
		for args, want := range map[string]string{
			"drain --host ":                                     "vm-1\nvm-2\nvm-9\n:4\n",
			"drain --host vm-2":                                 "vm-2\n:4\n",
			"drain --worker-type export --host ":                "vm-1\nvm-9\n:4\n",
			"resume --kind drain --worker-type export --host v": "vm-1\nvm-9\n:4\n",
		} {
			if got := leasectl(t, env, append([]string{"__completeNoDesc"}, strings.Split(args, " ")...)...); got.code != exit.OK || got.stdout != want {
				t.Errorf("completing %q = %+v, want %q", args, got, want)
			}
		}
	})
}

// A worker type that is not there is mistyped: what is to end has not begun there.
func TestWhatEndsNamesTheWorkerTypesThatThereAre(t *testing.T) {
	l, storeArg := newLedger(t)
	env := []string{"LEASECTL_STORE=" + storeArg}
	if got := leasectl(t, env, "resume", "--worker-type", "export"); got.code != exit.Failure || !strings.Contains(got.stderr, `worker type "export" has no records, so no order is in force; nothing was written`) {
		t.Errorf("resume in an empty ledger = %+v", got)
	}
	underWay(t, l)
	for _, args := range []string{
		"resume --worker-type exprot", "resume --worker-type exprot --kind drain", "release --worker-type exprot", "release --worker-type exprot --force --yes",
		"inspect workers --worker-type exprot", "verify --worker-type exprot", "doctor --worker-type exprot",
	} {
		got := leasectl(t, env, strings.Fields(args)...)
		if got.code != exit.Usage || got.stdout != "" || !strings.Contains(got.stderr, `no such worker type "exprot": the ledger has export`) || !strings.Contains(got.stderr, "try: --worker-type export") {
			t.Errorf("leasectl %s = %+v, want the worker types that there are", args, got)
		}
	}
	if all, _, err := l.Tail(t.Context(), "exprot", 9); err != nil || len(all) != 0 {
		t.Errorf("the ledger has %v, %v, want nothing written", all, err)
	}
	mustRun(t, env, "drain", "--worker-type", "export", "--host", "vm-9", "--for", "1h")
	for args, want := range map[string]string{
		"resume --worker-type export":                          "warning: no pause was in force: nothing has changed; in force are: drains host vm-9 until ",
		"resume --worker-type export --kind drain --host vm-1": "warning: no drain of vm-1 was in force: nothing has changed; in force are: drains host vm-9 until ",
	} {
		if got := leasectl(t, env, strings.Fields(args)...); got.code != exit.OK || !strings.Contains(got.stdout, want) {
			t.Errorf("leasectl %s = %+v, want %q", args, got, want)
		}
	}
}

func TestTrimDeletesOldRecordsAndForceOverridesOnEachStore(t *testing.T) {
	t.Parallel()
	onEachStore(t, func(t *testing.T, l store.Ledger, _ string, env []string) {
		const count = 110
		for n := range count {
			must(t, l.Append(t.Context(), recordtest.Grant(int64(n+1), n-50_000, "w")))
		}
		got := leasectl(t, env, "trim", "--worker-type", "export", "--yes", "--output", "json")
		if want := "{\n  \"workerType\": \"export\",\n  \"deleted\": 9,\n  \"complete\": true\n}\n"; got.code != exit.OK || got.stdout != want {
			t.Errorf("leasectl trim = %+v, want %q", got, want)
		}
		got = leasectl(t, env, "trim", "--worker-type", "export", "--yes")
		if want := "deleted nothing of export: what is younger than 24h stays, and so do the newest 100 records\n"; got.code != exit.OK || got.stdout != want {
			t.Errorf("leasectl trim = %+v, want %q", got, want)
		}
		now := storeTime(t, l)
		r := recordtest.Grant(count+1, 0, "dead")
		r.SlotStart, r.SlotEnd, r.Token = now.Add(-time.Minute), now.Add(time.Hour), now.UnixMilli()
		r.WindowStart, r.WindowEnd, r.FixedAt, r.ReadAt = r.SlotStart, r.SlotEnd, r.SlotStart, r.SlotStart
		must(t, l.Append(t.Context(), r))
		if got := leasectl(t, env, "release", "--worker-type", "export", "--force", "--yes", "--reason", "its machine is gone"); got.code != exit.OK {
			t.Errorf("leasectl release --force = %+v", got)
		}
		if got, err := l.Get(t.Context(), "export", count+2); err != nil || got.Kind != store.KindOverride || !strings.Contains(got.Metadata, "its machine is gone") {
			t.Errorf("the newest record is %+v, %v, want an override with the reason", got, err)
		}
	})
}
