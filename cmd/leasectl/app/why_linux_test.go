package app

import (
	"errors"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/slotlease/slotlease/cmd/leasectl/internal/exit"
	"github.com/slotlease/slotlease/cmd/leasectl/internal/testutil/golden"
	"github.com/slotlease/slotlease/internal/recordtest"
	"github.com/slotlease/slotlease/slots"
	"github.com/slotlease/slotlease/store"
)

func TestWhyOnEachStore(t *testing.T) {
	t.Parallel()
	onEachStore(t, func(t *testing.T, l store.Ledger, _ string, env []string) {
		const every = 24 * time.Hour
		now := storeTime(t, l)
		began := now.Add(-time.Minute).Truncate(time.Second) // whatever the time, the slot has begun, and goes on
		schedule := slots.Must(slots.EveryFrom(every, began.Sub(began.Truncate(every)))).String()
		r := recordtest.Grant(1, 0, "worker-b")
		r.SlotStart, r.SlotEnd, r.Schedule = began, began.Add(every), schedule
		r.WindowStart, r.WindowEnd, r.Token, r.FixedAt = r.SlotStart, r.SlotEnd.Add(time.Hour), r.SlotStart.UnixMilli(), r.SlotStart.Add(-9*time.Second)
		r.Worker = store.Worker{Host: "vm-2", PID: 7}
		p := store.Presence{
			WorkerType: "export", ID: "1", Client: "1", InstanceID: "worker-a", Host: "vm-1", PID: 7, Schedule: schedule,
			Priority: 1, Effective: 1, Phase: store.PhaseCandidate, Since: now.Add(-time.Hour), Seen: now, Next: now.Add(5 * time.Minute),
		}
		if err := errors.Join(l.Append(t.Context(), r), l.(store.Roster).Attend(t.Context(), []store.Presence{p})); err != nil {
			t.Fatal(err)
		}
		at := r.SlotStart.Add(time.Second).Format(time.RFC3339)
		for _, output := range []string{"table", "json"} {
			got := leasectl(t, env, "why", "--worker-type", "export", "--at", at, "--output", output)
			if got.code != exit.OK {
				t.Fatalf("leasectl why = %+v", got)
			}
			got.stdout = strings.ReplaceAll(got.stdout, strconv.FormatInt(r.Token, 10), "1")
			got.stdout = strings.ReplaceAll(got.stdout, schedule, "every 5m")
			text := masked(got.stdout)
			if _, rest, found := strings.Cut(text, "\n\n"); found && output == "table" {
				text = strings.Join(strings.Fields(clockTimes.ReplaceAllString(rest, "TIME")), " ")
			} else {
				text = clockTimes.ReplaceAllString(text, "TIME")
			}
			golden.Compare(t, "why."+output, text)
		}
		for args, want := range map[string]string{
			"--worker-type exprot":                        "--worker-type export",
			"--worker-type export --instance-id worker-x": "--instance-id worker-a",
			"--worker-type export --at noon":              "must be a time of day",
			"":                                            "--worker-type is missing",
		} {
			if got := leasectl(t, env, append([]string{"why"}, strings.Fields(args)...)...); got.code != exit.Usage || !strings.Contains(got.stderr, want) {
				t.Errorf("leasectl why %s = %+v, want %q", args, got, want)
			}
		}
		if got := leasectl(t, env, "__complete", "why", "--worker-type", "export", "--instance-id", "work"); got.stdout != "worker-a\nworker-b\n:4\n" {
			t.Errorf("--instance-id is completed by %q, want worker-a and worker-b", got.stdout)
		}
	})
}

// clockTimes are times without a date.
var clockTimes = regexp.MustCompile(`\d\d:\d\d:\d\d(\.\d+)?Z`)
