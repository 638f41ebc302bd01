package app

import (
	"encoding/json"
	"errors"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/slotlease/slotlease/cmd/leasectl/internal/exit"
	"github.com/slotlease/slotlease/cmd/leasectl/internal/inspect"
	"github.com/slotlease/slotlease/cmd/leasectl/internal/storeuri"
	"github.com/slotlease/slotlease/cmd/leasectl/internal/testutil/golden"
	"github.com/slotlease/slotlease/cmd/leasectl/internal/testutil/procs"
	"github.com/slotlease/slotlease/internal/recordtest"
	"github.com/slotlease/slotlease/internal/suites"
	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/cosmos"
	"github.com/slotlease/slotlease/testutil/cosmospeer"
)

// onEachStore calls a test with an initialised ledger on each store, and its environment.
func onEachStore(t *testing.T, test func(t *testing.T, l store.Ledger, uri string, env []string)) {
	t.Helper()
	for name, open := range map[string]func(t *testing.T) (store.Ledger, string){
		"SQLite": newLedger, "MongoDB": mongoLedger,
		"CosmosDB": sharedCosmosLedger,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if name != "SQLite" {
				suites.SameGoroutines(t)
			}
			l, uri := open(t)
			env := []string{storeuri.Variable + "=" + uri, cosmos.KeyVariable + "=" + cosmospeer.Key()}
			mustRun(t, env, "init")
			test(t, l, uri, env)
		})
	}
}

// masked is what inspect workers shows, without what differs each time.
func masked(text string) string {
	for pattern, by := range map[string]string{
		`(?m)^(workers of .*?) · [\s\S]*?\n\n`:    "$1\n\n",
		`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z`: "TIME",
		`(?m)\s+(now|\S+ ago)  `:                  "  SEEN  ",
		`(?m)\s+SEEN  NOTE`:                       "  SEEN  NOTE",
		`(?m)"store": ".*"`:                       `"store": "STORE"`,
		`(?m)\n\nlooking at it cost .*`:           "",
		`(?s),\s*"warning": "[^"]*"`:              "",
		`overdue by [0-9hms.]+`:                   "overdue for long",
		`(?s),\s*"requestUnits": \{.*?\}\s*\}`:    "",
	} {
		text = regexp.MustCompile(pattern).ReplaceAllString(text, by)
	}
	return text
}

func TestInspectWorkersOnEachStore(t *testing.T) {
	t.Parallel()
	onEachStore(t, func(t *testing.T, l store.Ledger, _ string, env []string) {
		now := storeTime(t, l)
		r := recordtest.Grant(1, 0, "worker-b")
		r.SlotStart, r.SlotEnd = now.Add(-time.Minute), now.Add(time.Hour)
		r.WindowStart, r.WindowEnd, r.Worker = r.SlotStart, r.SlotEnd, store.Worker{Host: "vm-2", PID: 7}
		p := store.Presence{
			WorkerType: "export", ID: "1", Client: "1", InstanceID: "worker-a", Host: "vm-1", PID: 7, Version: "v1.2.3", Schedule: "every 5m",
			Labels: map[string]string{"region": "eu"}, Priority: 1, Effective: 1, Phase: store.PhaseCandidate, Missed: "worker-b has it, with priority 0",
			Offset: 12 * time.Millisecond, Uncertainty: 3 * time.Millisecond, Since: now, Seen: now, Next: now.Add(5 * time.Minute),
		}
		score := 0.5
		q, gone := p, p
		q.ID, q.InstanceID, q.Host, q.Phase, q.Missed, q.Priority, q.Effective, q.Score = "2", "worker-b", "vm-2", store.PhaseHolder, "", 0, 0, &score
		gone.ID, gone.InstanceID, gone.Seen, gone.Next = "3", "worker-c", now.Add(-time.Hour), now.Add(-30*time.Minute)
		must(t, errors.Join(l.Append(t.Context(), r), l.(store.Roster).Attend(t.Context(), []store.Presence{p, q, gone})))
		for _, output := range []string{"table", "json"} {
			got := leasectl(t, env, "inspect", "workers", "--worker-type", "export", "--output", output)
			if got.code != exit.OK {
				t.Fatalf("leasectl inspect workers = %+v", got)
			}
			golden.Compare(t, "workers."+output, masked(got.stdout))
		}
	})
}

// crew is what leasectl inspect workers finds, by instance.
func crew(t *testing.T, env []string) map[string]inspect.Worker {
	t.Helper()
	got := leasectl(t, env, "inspect", "workers", "--output", "json")
	var c inspect.Crew
	if err := json.Unmarshal([]byte(got.stdout), &c); got.code != exit.OK || err != nil {
		t.Fatalf("leasectl inspect workers = %+v, %v", got, err)
	}
	all := map[string]inspect.Worker{}
	for _, w := range c.Workers {
		all[w.InstanceID] = w
	}
	return all
}

// Workers of leasectl run show who they are, what they do, and that they have left.
func TestWorkersThatRunAreInTheRoster(t *testing.T) {
	t.Parallel()
	onEachStore(t, func(t *testing.T, _ store.Ledger, uri string, env []string) {
		a := startRun(t, uri, "a", []string{"--every", "5s", "--label", "region=eu"}, "sleep", "1000")
		a.await("started")
		b := startRun(t, uri, "b", []string{"--every", "5s", "--priority", "3"}, "sleep", "1000")
		c := startRun(t, uri, "c", []string{"--every", "5s", "--priority", "7", "--no-roster"}, "sleep", "1000")
		b.await("ready")
		c.await("ready")
		var all map[string]inspect.Worker
		defer func() {
			if t.Failed() {
				t.Logf("at last there were %+v", all)
			}
		}()
		// A worker says no sooner than 10 s later what has changed.
		procs.Eventually(t, "a holds, and b is there", func() bool {
			all = crew(t, env)
			return all["a"].Holds && all["a"].Labels["region"] == "eu" && all["b"].Present && all["b"].Priority == 3 && all["b"].Missed != "" && len(all) == 2
		})
		b.signal(syscall.SIGTERM)
		if code := b.wait(); code != exit.OK {
			t.Errorf("b ended with %d: %s", code, b.output())
		}
		if all := crew(t, env); len(all) != 1 || all["a"].InstanceID != "a" {
			t.Errorf("when b has stopped, there are %+v", all)
		}
		for _, p := range []*process{a, c} {
			if strings.Contains(p.output(), "the roster can't be kept") {
				t.Errorf("its log says: %s", p.output())
			}
		}
	})
}
