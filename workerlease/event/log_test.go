package event_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"github.com/slotlease/slotlease/workerlease/event"
)

// strange is an event of nobody's.
type strange struct{ event.Worker }

func TestEveryEventIsLogged(t *testing.T) {
	me := event.Worker{WorkerType: "job", InstanceID: "me"}
	why := errors.New("why")
	tests := []struct {
		event   event.Event
		level   zapcore.Level
		message string
		fields  []string
	}{
		{event.Started{Worker: me}, zap.DebugLevel, "worker started", nil},
		{event.Claimed{Worker: me}, zap.DebugLevel, "slot claimed", []string{"slot", "seq", "token", "joined", "early"}},
		{event.Lost{Worker: me}, zap.DebugLevel, "slot lost", []string{"slot", "holder", "holderPriority", "inversion", "done"}},
		{event.Allocated{Worker: me}, zap.InfoLevel, "lease allocated", []string{"slot", "token", "late"}},
		{event.Expired{Worker: me}, zap.InfoLevel, "lease expired", []string{"slot", "token", "why"}},
		{event.Extended{Worker: me}, zap.DebugLevel, "lease extended", []string{"slot", "token", "seq", "expiry"}},
		{event.HolderChanged{Worker: me}, zap.DebugLevel, "holder changed", []string{"holder", "token", "from", "until", "released"}},
		{event.TaskSucceeded{Worker: me}, zap.DebugLevel, "task succeeded", []string{"slot", "token", "took"}},
		{event.Faltered{Worker: me}, zap.DebugLevel, "work failed", []string{"slot", "token"}},
		{event.TaskFailed{Worker: me, Err: why, Cause: "timed out", GivenUp: true}, zap.WarnLevel, "task failed", []string{"slot", "token", "error", "cause", "givenUp"}},
		{event.WorkerDied{Worker: me, Attempt: 1}, zap.WarnLevel, "worker died", []string{"slot", "holder", "attempt", "givenUp"}},
		{event.Skipped{Worker: me, Row: 1}, zap.InfoLevel, "slot skipped", []string{"slot", "running", "since", "row"}},
		{event.SlotDone{Worker: me}, zap.InfoLevel, "slot done", []string{"slot", "seq"}},
		{event.Exhausted{Worker: me}, zap.WarnLevel, "slot given up", []string{"slot", "attempts"}},
		{event.Postponed{Worker: me}, zap.InfoLevel, "next attempt postponed", []string{"slot", "attempts", "after"}},
		{event.Rested{Worker: me}, zap.InfoLevel, "task rests", []string{"slot", "token", "until"}},
		{event.Returned{Worker: me}, zap.DebugLevel, "code returned", []string{"slot", "token"}},
		{event.Missed{Worker: me}, zap.WarnLevel, "slot missed", []string{"slot", "until", "count", "why"}},
		{event.BecameIneligible{Worker: me}, zap.WarnLevel, "not eligible", []string{"slot", "error"}},
		{event.SteppedBack{Worker: me}, zap.WarnLevel, "stepped back", []string{"slot", "failures", "until"}},
		{event.Ranked{Worker: me}, zap.DebugLevel, "ranked", []string{"priority", "first", "why"}},
		{event.RosterFailed{Worker: me}, zap.WarnLevel, "roster failed", []string{"error"}},
		{event.BecameEligible{Worker: me}, zap.InfoLevel, "eligible again", []string{"slot"}},
		{event.Released{Worker: me}, zap.InfoLevel, "lease released", []string{"slot", "seq", "at"}},
		{event.Overrun{Worker: me}, zap.WarnLevel, "callback overruns its lease", []string{"slot"}},
		{event.Panic{Worker: me, Err: why}, zap.ErrorLevel, "callback panicked", []string{"slot", "error"}},
		{event.Stuck{Worker: me}, zap.ErrorLevel, "worker was stuck", []string{"in", "took"}},
		{event.StopFailed{Worker: me, Err: why}, zap.WarnLevel, "stopping failed", []string{"error"}},
		{event.Conflict{Worker: me}, zap.DebugLevel, "append conflict", []string{"seq"}},
		{event.Unknown{Worker: me, Err: why}, zap.WarnLevel, "append outcome unknown", []string{"seq", "error"}},
		{event.Throttled{Worker: me, Err: why}, zap.WarnLevel, "store throttles", []string{"operation", "retryAfter", "error"}},
		{event.Operated{Worker: me, Err: why}, zap.DebugLevel, "operation ended", []string{"operation", "took", "error"}},
		{event.StoreFailed{Worker: me, Err: why}, zap.WarnLevel, "store failed", []string{"operation", "error"}},
		{event.StoreRecovered{Worker: me}, zap.InfoLevel, "store works again", []string{"took", "failures", "missed", "lapsed"}},
		{event.ClockSample{Worker: me}, zap.DebugLevel, "clock sample", []string{"server", "roundTrip", "uncertainty"}},
		{event.ClockJump{Worker: me}, zap.WarnLevel, "clock jump", []string{"server", "verdict", "storeTime", "uncertainty"}},
		{event.Lapsed{Worker: me, Err: why}, zap.WarnLevel, "lease lapsed in an outage", []string{"outage", "error"}},
		{event.TooUncertain{Worker: me, Err: why}, zap.ErrorLevel, "time too uncertain", []string{"uncertainty", "error"}},
		{event.StoreWarning{Worker: me}, zap.WarnLevel, "store warning", []string{"warning"}},
		{event.WatchFailed{Worker: me, Err: why}, zap.DebugLevel, "watch failed", []string{"error"}},
		{event.Charged{Worker: me}, zap.DebugLevel, "operation charged", []string{"operation", "units"}},
		{event.Trimmed{Worker: me}, zap.DebugLevel, "ledger trimmed", []string{"count"}},
		{event.Poison{Worker: me, Err: why}, zap.WarnLevel, "ledger poisoned", []string{"seq", "error"}},
		{event.Blocked{Worker: me}, zap.WarnLevel, "ledger blocked", []string{"seq", "until", "done"}},
		{event.PoisonReset{Worker: me}, zap.WarnLevel, "ledger reset", []string{"seq", "reason"}},
		{event.WentBack{Worker: me, Err: why}, zap.ErrorLevel, "store went back", []string{"seq", "until", "error"}},
		{event.Vanished{Worker: me, Err: why}, zap.ErrorLevel, "record vanished", []string{"seq", "error"}},
		{event.ScheduleMismatch{Worker: me}, zap.WarnLevel, "schedule mismatch", []string{"ours", "theirs", "holder", "ourSlot", "theirSlot"}},
		{event.WorkMismatch{Worker: me}, zap.WarnLevel, "work mismatch", []string{"ours", "theirs", "holder"}},
		{strange{me}, zap.DebugLevel, "event", nil},
	}
	operations, err := os.ReadFile(filepath.Join("..", "..", "docs", "metrics.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(operations), "| Event | Message | Level | Meaning |\n|---|---|---|---|\n")
	table, _, _ = strings.Cut(table, "\n\n")
	if listed := strings.Count("\n"+table, "\n| "); listed != len(tests)-1 {
		t.Errorf("docs/metrics.md lists %d events, want the %d that there are", listed, len(tests)-1)
	}
	covered := map[string]bool{}
	for _, test := range tests {
		name := reflect.TypeOf(test.event).Name()
		covered[name] = true
		t.Run(name, func(t *testing.T) {
			core, logs := observer.New(zap.DebugLevel)
			event.LogToZap(zap.New(core)).Observe(test.event)
			if logs.Len() != 1 {
				t.Fatalf("%d lines, want one", logs.Len())
			}
			line := logs.All()[0]
			var keys []string
			for _, f := range line.Context {
				keys = append(keys, f.Key)
			}
			if want := append(test.fields, "workerType", "instanceId"); !slices.Equal(keys, want) {
				t.Errorf("fields = %v, want %v", keys, want)
			}
			if line.Level != test.level || line.Message != test.message {
				t.Errorf("logged %q at %v, want %q at %v", line.Message, line.Level, test.message, test.level)
			}
			if m := line.ContextMap(); m["workerType"] != "job" || m["instanceId"] != "me" {
				t.Errorf("logged of %v/%v", m["workerType"], m["instanceId"])
			}
			if row := fmt.Sprintf("| `%s` | %s | %v |", name, test.message, test.level); name != "strange" && !strings.Contains(table, row) {
				t.Errorf("docs/metrics.md doesn't list it as %s", row)
			}
			var text bytes.Buffer
			event.LogTo(slog.New(slog.NewJSONHandler(&text, &slog.HandlerOptions{Level: slog.LevelDebug}))).Observe(test.event)
			var said map[string]any
			if err := json.Unmarshal(text.Bytes(), &said); err != nil {
				t.Fatalf("slog: %v of %q", err, text.String())
			}
			if said["level"] != line.Level.CapitalString() || said["msg"] != line.Message || said["workerType"] != "job" || said["instanceId"] != "me" {
				t.Errorf("slog has %s, want what zap has", text.String())
			}
			for _, key := range test.fields {
				if _, ok := said[key]; !ok {
					t.Errorf("slog has no %s: %s", key, text.String())
				}
				switch want := line.ContextMap()[key].(type) {
				case string, bool:
					if said[key] != want {
						t.Errorf("%s: slog has %v, zap %v", key, said[key], want)
					}
				}
			}
		})
	}
	names := eventTypes(t)
	for _, name := range names {
		if !covered[name] {
			t.Errorf("no test for the log line of %s", name)
		}
	}
	if len(names) != len(tests)-1 {
		t.Errorf("found the events %v, want those of the table", names)
	}
}

// eventTypes are the exported structs of the package that embed Worker.
func eventTypes(t *testing.T) (names []string) {
	t.Helper()
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	declared := regexp.MustCompile(`(?m)^(?:type |\t)([A-Z]\w*) struct \{\n\t+Worker\b`)
	for _, path := range files {
		source, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range declared.FindAllStringSubmatch(string(source), -1) {
			names = append(names, m[1])
		}
	}
	return names
}

// One slot that is skipped may be a run that took long; the next one is a job that its slots are too short for. A lease ends with its
// slot; before that, the store took no extension, or its worker stood still.
func TestWhatIsNotUsualIsAWarning(t *testing.T) {
	for _, c := range []struct {
		event event.Event
		want  string
	}{
		{event.Skipped{Row: 1}, ""},
		{event.Skipped{Row: 2}, "slot skipped"},
		{event.Skipped{Row: 3}, "slot skipped"},
		{event.Expired{}, ""},
		{event.Expired{Early: true}, "lease expired"},
	} {
		var out strings.Builder
		event.LogTo(slog.New(slog.NewTextHandler(&out, &slog.HandlerOptions{Level: slog.LevelWarn}))).Observe(c.event)
		if got := out.String(); !strings.Contains(got, c.want) || c.want == "" && got != "" {
			t.Errorf("%+v: %q, want %q", c.event, got, c.want)
		}
	}
}
