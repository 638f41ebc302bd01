package app

import (
	"fmt"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/slotlease/slotlease/cmd/leasectl/internal/exit"
	"github.com/slotlease/slotlease/cmd/leasectl/internal/testutil/golden"
	"github.com/slotlease/slotlease/cmd/leasectl/internal/testutil/procs"
	"github.com/slotlease/slotlease/internal/recordtest"
	"github.com/slotlease/slotlease/slots"
	"github.com/slotlease/slotlease/store"
)

// slotAt is the slot of oneSlot at a time.
func slotAt(at time.Time) slots.Slot {
	return slots.Must(slots.Parse("every " + oneSlot)).At(at)
}

// differs are what differs from run to run in what leasectl prints, other than the bounds of the slots.
var differs = []struct{ of, by string }{
	{`sqlite:[^\s"]+|mongodb://[^\s"]+|cosmos://[^\s"]+`, "STORE"},
	{`127\.0\.0\.1:\d+`, "ADDRESS"},
	{`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z`, "TIME"},
	{`(until|at) \d\d:\d\d:\d\d\.\d+Z`, "$1 TIME"},
	{`\b1[789]\d{11}\b`, "TOKEN"},
	{`pid \d+`, "pid N"},
	{`("(?:pid|inMs|nextInMs|nextSlotInMs|uncertaintyMs|sampleAgeMs|requestUnits)": ?)-?[\d.]+`, "${1}N"},
	{`("(?:late|uncertainty|guardedBy)": ?)"[^"]*"`, `${1}"VARIES"`},
	{`\bin (?:\d+h)?(?:\d+m)?\d+s\b|\bin \d+h(?:\d+m)?\b`, "in D"},
	{`(?m)^(SLOT\+\d) +\S+`, "$1  D"}, // the column IN
	{`"version": ?"[^"]*"`, `"version":"VERSION"`},
	{`± [\d.]+[mµn]?s`, "± D"},
	{`[\d.]+ (?:RU|request units)`, "N RU"},
	{`(\b(?:total|now|tail|workerTypes|presences|roster|append|get)"?:? )[\d.]+`, "${1}N"},
	{`(\S) {2,}`, "$1  "}, // Columns are as wide as what differs.
	{` +\n`, "\n"},
}

// normal is a text of leasectl's without what differs from run to run: the boundaries around a slot are SLOT and SLOT±N.
func normal(text string, slot slots.Slot) string {
	length := slot.Length()
	var names []string
	for n := -1; n <= 3; n++ {
		at, name := slot.Start.Add(time.Duration(n)*length), fmt.Sprintf("SLOT%+d", n)
		if n == 0 {
			name = "SLOT"
		}
		names = append(names, store.Format(at), name, at.Format(time.RFC3339), name)
	}
	text = strings.NewReplacer(names...).Replace(text)
	for _, d := range differs {
		text = regexp.MustCompile(d.of).ReplaceAllString(text, d.by)
	}
	return strings.ReplaceAll(text, operator(), "OPERATOR")
}

// compare compares a transcript on a store with its golden file, unless the store is a real one, which says more of itself.
func compare(t *testing.T, name, transcript string) {
	t.Helper()
	kind := t.Name()[strings.LastIndexByte(t.Name(), '/')+1:]
	if kind == "MongoDB" && os.Getenv("MONGODB_URI") != "" {
		t.Skip("MONGODB_URI is set: a real server says more of itself")
	}
	golden.Compare(t, name+"."+kind, transcript)
}

// unordered are lines of a log that may come at any time, or not: what the store warns of is found out while the slot is
// claimed, and on a busy machine a server may answer too late once.
var unordered = regexp.MustCompile(`(?m)^.*(?:the account's default consistency|store failed|store: \w+ failed|store: reached again|store works again).*\n`)

// grantOf is a grant of a slot of oneSlot.
func grantOf(seq int64, workerType string, slot slots.Slot, holder string) store.Record {
	r := recordtest.Grant(seq, 0, holder)
	r.WorkerType, r.Schedule, r.Token = workerType, "every "+oneSlot, slot.Start.UnixMilli()
	r.SlotStart, r.SlotEnd, r.WindowStart, r.WindowEnd = slot.Start, slot.End, slot.Start, slot.End
	r.FixedAt, r.ReadAt = slot.Start.Add(-9234*time.Millisecond), slot.Start.Add(-9*time.Second)
	r.Claim = fmt.Sprintf("claim %d of %s", seq, holder)
	return r
}

// All that status and next show of three worker types: one is held, one has failed, and one waits for its first slot.
func TestStatusAndNextOnEachStore(t *testing.T) {
	t.Parallel()
	onEachStore(t, func(t *testing.T, l store.Ledger, _ string, env []string) {
		now := storeTime(t, l)
		slot := slotAt(now)
		before := slotAt(slot.Start.Add(-time.Second))
		lost := grantOf(1, "mail", before, "worker-c")
		o := recordtest.Outcome(lost, before.Start.Add(13*time.Second), store.Failed)
		o.Exited, o.ExitCode, o.Error = true, 3, "exit code 3, ended by itself"
		present := store.Presence{
			WorkerType: "export", ID: "1", Client: "1", InstanceID: "worker-b", Host: "vm-1", PID: 7, Schedule: "every " + oneSlot,
			Phase: store.PhaseHolder, Since: now, Seen: now, Next: now.Add(5 * time.Minute),
		}
		gone, waits := present, present
		gone.ID, gone.InstanceID, gone.Phase, gone.Seen, gone.Next = "2", "worker-a", store.PhaseCandidate, now.Add(-time.Hour), now.Add(-30*time.Minute)
		waits.ID, waits.WorkerType, waits.InstanceID, waits.Schedule, waits.Phase = "3", "nightly", "worker-d", "every 57600m", store.PhaseCandidate
		for _, r := range []store.Record{
			grantOf(1, "export", before, "worker-a"), grantOf(2, "export", slot, "worker-b"), lost, recordtest.Told(lost, 2, o),
		} {
			must(t, l.Append(t.Context(), r))
		}
		must(t, l.(store.Roster).Attend(t.Context(), []store.Presence{present, gone, waits}))
		var told strings.Builder
		for _, args := range []string{
			"prefer --worker-type export --instance-id worker-b --for 1h --reason upgrade",
			"status", "status --output json", "status --worker-type mail",
			"next --worker-type export --count 3", "next --worker-type export --count 2 --output json",
			"next --worker-type nightly --count 1", "pause --worker-type nightly --for 1h --reason upgrade",
			"next --worker-type nightly --count 1", "next --worker-type nightly --count 1 --output json", "next --worker-type exprot", "status --worker-type exprot",
		} {
			got := leasectl(t, env, strings.Fields(args)...)
			if want := strings.Contains(args, "exprot"); (got.code == exit.OK) == want {
				t.Errorf("leasectl %s = %+v", args, got)
			}
			fmt.Fprintf(&told, "$ leasectl %s\n%s%s", args, got.stdout, got.stderr)
		}
		compare(t, "status", normal(told.String(), slot))
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

// All that run --once logs, for people and as JSON: of a job, when it is done already, and of a command that fails.
func TestWhatRunsOnceLogsOnEachStore(t *testing.T) {
	t.Parallel()
	onEachStore(t, func(t *testing.T, l store.Ledger, uri string, _ []string) {
		slot := slotAt(storeTime(t, l))
		var told strings.Builder
		type call struct {
			args string
			code int
		}
		// Those of a stage disturb each other in nothing, and run at once.
		for _, stage := range [][]call{
			{
				{"--instance-id a --worker-type job --once-per-slot --failover-within 1200h -- true", exit.OK},
				{"--instance-id a --worker-type json --once-per-slot --failover-within 1200h --log-format json -- true", exit.OK},
				{"--instance-id a --worker-type command -- false", 1},
			},
			{
				{"--instance-id b --worker-type job --once-per-slot --failover-within 1200h -- true", exit.OK},
				{"--instance-id c --worker-type job --once-per-slot --failover-within 1200h --log-format json -- true", exit.OK},
				{"--instance-id b --worker-type command --log-format json -- false", 1},
			},
		} {
			var ps []*process
			for _, c := range stage {
				ps = append(ps, start(t, append([]string{"run", "--store", uri, "--once", "--every", oneSlot}, strings.Fields(c.args)...)...))
			}
			for i, c := range stage {
				if code := ps[i].wait(); code != c.code {
					t.Errorf("leasectl run --once %s = %d, want %d", c.args, code, c.code)
				}
				logged := unordered.ReplaceAllString(ps[i].output(), "")
				fmt.Fprintf(&told, "$ leasectl run --once --every %s %s\n%sexit code %d\n", oneSlot, c.args, logged, c.code)
			}
		}
		compare(t, "once", normal(told.String(), slot))
	})
}

// metricNames are the names of a scrape with their types, but for those that Go and Linux make.
func metricNames(scrape string) string {
	var names []string
	for line := range strings.Lines(scrape) {
		if rest, ok := strings.CutPrefix(line, "# TYPE "); ok && strings.HasPrefix(rest, "slotlease_") {
			names = append(names, rest)
		}
	}
	slices.Sort(names)
	return strings.Join(names, "")
}

// All that run --listen answers, while the command runs and while another worker has the lease.
func TestWhatIsAnsweredOnEachStore(t *testing.T) {
	t.Parallel()
	onEachStore(t, func(t *testing.T, l store.Ledger, uri string, _ []string) {
		slot := slotAt(storeTime(t, l))
		flags := []string{"--every", oneSlot, "--failover-within", "1200h", "--listen", "0"}
		a := startRun(t, uri, "a", flags, "sleep", "1000")
		a.await("command started")
		b := startRun(t, uri, "b", flags, "sleep", "1000")
		b.await("standby: held by \"a\"")
		var told strings.Builder
		for _, c := range []struct {
			p    *process
			name string
			says string
		}{{a, "a", "holds the slot "}, {b, "b", "a holds the lease"}} {
			procs.Eventually(t, "it is ready", func() bool {
				ok, body := probed(t, c.p, "/readyz")
				return ok && strings.Contains(body, c.says)
			})
			for _, path := range []string{"/healthz", "/readyz", "/status"} {
				ok, body := probed(t, c.p, path)
				if !ok {
					t.Errorf("GET %s of %s: %s, want %d", path, c.name, body, http.StatusOK)
				}
				fmt.Fprintf(&told, "$ GET %s of %s\n%s\n", path, c.name, strings.ReplaceAll(strings.TrimSpace(body), `,"`, ",\n\""))
			}
		}
		_, scrape := probed(t, a, "/metrics")
		fmt.Fprintf(&told, "$ GET /metrics of a\n%s", metricNames(scrape))
		compare(t, "listen", normal(told.String(), slot))
		ends(t, a, b)
	})
}
