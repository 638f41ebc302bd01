package workerlease_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"github.com/slotlease/slotlease/slots"
	"github.com/slotlease/slotlease/store/memory"
	"github.com/slotlease/slotlease/testutil/faultstore"
	"github.com/slotlease/slotlease/workerlease"
)

// names are the types of the events that a worker's observer got since d, but for Operated, which
// comes with each operation.
func (w *worker) names(d time.Duration) []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	var out []string
	for _, e := range w.events {
		if _, operated := e.Event.(workerlease.Operated); e.at >= d && !operated {
			out = append(out, reflect.TypeOf(e.Event).Name())
		}
	}
	return out
}

func TestTheEventsOfASlotComeInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ledger := memory.New(memory.Options{})
		winner := start(t, setup{ledger: ledger, Options: named("winner", 0)})
		loser := start(t, setup{ledger: ledger, Options: named("loser", 1)})
		at(11 * time.Minute)
		equal(t, "events of the winner", winner.names(6*time.Minute),
			"ClockSample", "ClockSample", "Claimed", "Expired", "Returned", "Allocated")
		equal(t, "events of the loser", loser.names(6*time.Minute), "ClockSample", "ClockSample", "Lost")
		winner.stop(t)
		equal(t, "events of stopping", winner.names(11*time.Minute), "Expired", "Returned", "ClockSample", "HolderChanged", "Released")

		c := observed[workerlease.Claimed](winner)[1]
		if c.Seq != 2 || c.Joined || since(c.Slot.Start) != 10*time.Minute || c.Token != t0.Add(10*time.Minute).UnixMilli() {
			t.Errorf("Claimed = %+v", c)
		}
		if c.Early > lead+time.Microsecond || c.Early < lead-1100*time.Microsecond {
			t.Errorf("claimed %v early, want %v less 1 ms at most", c.Early, lead)
		}
		a := observed[workerlease.Allocated](winner)[1]
		near(t, "allocated late", a.Late, begin(10*time.Minute)-10*time.Minute)
		if u := winner.turn(t, 1); a.Lease != u.lease {
			t.Errorf("Allocated has %+v, want %+v", a.Lease, u.lease)
		}
		l := observed[workerlease.Lost](loser)[1]
		if l.Holder.InstanceID != "winner" || l.Inversion || since(l.Slot.Start) != 10*time.Minute {
			t.Errorf("Lost = %+v", l)
		}
		if e := observed[workerlease.Expired](winner); len(e) != 2 || e[0].Why != workerlease.WindowEnded || e[1].Why != workerlease.Stopped {
			t.Errorf("Expired = %+v", e)
		}
		s := observed[workerlease.ClockSample](winner)[0]
		if s.Server != "memory" || s.Uncertainty > time.Microsecond || s.RoundTrip != 0 || s.StoreTime.Sub(t0).Abs() > time.Microsecond {
			t.Errorf("ClockSample = %+v", s)
		}
		if s := loser.Status(); s.Lost != 2 || s.Allocated != 0 || !s.Healthy() {
			t.Errorf("loser: Lost %d, Allocated %d, healthy %v", s.Lost, s.Allocated, s.Healthy())
		}
	})
}

func TestALowerPriorityThatWonIsAnInversion(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ledger := memory.New(memory.Options{})
		start(t, setup{ledger: ledger, Options: named("low", 2)})
		at(4*time.Minute + 58*time.Second)
		high := start(t, setup{ledger: ledger, Options: named("high", 0)})
		at(6 * time.Minute)
		if e := observed[workerlease.Lost](high); len(e) != 1 || !e[0].Inversion {
			t.Errorf("Lost = %+v, want one inversion", e)
		}
	})
}

func TestStatusShowsThePhase(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := start(t, setup{Options: named("me", 0)})
		phase := func(d time.Duration, holding bool, lease, won, contending time.Duration, text string) {
			t.Helper()
			at(d)
			s := w.Status()
			start := func(slot slots.Slot) time.Duration {
				if slot.IsZero() {
					return -1
				}
				return since(slot.Start)
			}
			if s.Holding != holding || s.Running != holding || start(s.Lease.Slot) != lease || start(s.Won) != won || start(s.Contending) != contending {
				t.Errorf("at %v: %+v, want holding %v of %v, won %v, contending for %v", d, s, holding, lease, won, contending)
			}
			if !s.Healthy() || s.WorkerType != "job" || s.InstanceID != "me" || !strings.HasPrefix(s.String(), "job: me: "+text) {
				t.Errorf("at %v: healthy %v, %q; want %q", d, s.Healthy(), s, text)
			}
			if off := s.StoreTime.Sub(time.Now()).Abs(); off > s.Uncertainty {
				t.Errorf("at %v: store time is off by %v, uncertainty %v", d, off, s.Uncertainty)
			}
		}
		const none, five, ten, fifteen = -1, 5 * time.Minute, 10 * time.Minute, 15 * time.Minute
		phase(time.Second, false, none, none, five, "waiting for [2000-01-01T00:05:00Z")
		if age := w.Status().SampleAge; age != time.Second {
			t.Errorf("SampleAge = %v, want 1s", age)
		}
		phase(5*time.Minute-time.Second, false, none, five, ten, "waiting")
		phase(6*time.Minute, true, five, none, ten, "holding [2000-01-01T00:05:00Z")
		phase(10*time.Minute-time.Second, true, five, ten, fifteen, "holding")
		phase(10*time.Minute-100*time.Millisecond, false, none, ten, fifteen, "waiting")
		phase(11*time.Minute, true, ten, none, fifteen, "holding")
		w.stop(t)
		if s := w.Status(); !s.Stopped || s.Holding || !s.Won.IsZero() || s.String() != "job: me: stopped" {
			t.Errorf("after StopLeasing: %+v, %q", s, s)
		}
	})
}

func TestStatusNeverShowsALeaseOfBefore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var self atomic.Pointer[worker]
		self.Store(start(t, setup{
			Options: workerlease.Options{LeaseInterval: time.Second},
			work: func(_ context.Context, l workerlease.Lease) {
				if s := self.Load().Status(); s.Holding && s.Lease != l {
					t.Errorf("in LeaseAllocated of %v, Status shows the lease of %v", l.Slot, s.Lease.Slot)
				}
			},
		}))
		at(time.Minute)
	})
}

// strange is an event of nobody's.
type strange struct{ workerlease.Worker }

func TestEveryEventIsLogged(t *testing.T) {
	me := workerlease.Worker{WorkerType: "job", InstanceID: "me"}
	why := errors.New("why")
	tests := []struct {
		event   workerlease.Event
		level   zapcore.Level
		message string
		fields  []string
	}{
		{workerlease.Started{Worker: me}, zap.DebugLevel, "worker started", nil},
		{workerlease.Claimed{Worker: me}, zap.DebugLevel, "slot claimed", []string{"slot", "seq", "token", "joined", "early"}},
		{workerlease.Lost{Worker: me}, zap.DebugLevel, "slot lost", []string{"slot", "holder", "holderPriority", "inversion"}},
		{workerlease.Allocated{Worker: me}, zap.InfoLevel, "lease allocated", []string{"slot", "token", "late"}},
		{workerlease.Expired{Worker: me}, zap.InfoLevel, "lease expired", []string{"slot", "token", "why"}},
		{workerlease.Extended{Worker: me}, zap.DebugLevel, "lease extended", []string{"slot", "token", "seq", "expiry"}},
		{workerlease.HolderChanged{Worker: me}, zap.DebugLevel, "holder changed", []string{"holder", "token", "from", "until", "released"}},
		{workerlease.TaskSucceeded{Worker: me}, zap.DebugLevel, "task succeeded", []string{"slot", "token", "took"}},
		{workerlease.Faltered{Worker: me}, zap.DebugLevel, "work failed", []string{"slot", "token"}},
		{workerlease.TaskFailed{Worker: me, Err: why}, zap.ErrorLevel, "task failed", []string{"slot", "token", "error"}},
		{workerlease.SlotDone{Worker: me}, zap.InfoLevel, "slot done", []string{"slot", "seq"}},
		{workerlease.Exhausted{Worker: me}, zap.ErrorLevel, "slot not done", []string{"slot", "attempts"}},
		{workerlease.Postponed{Worker: me}, zap.InfoLevel, "next attempt postponed", []string{"slot", "attempts", "after"}},
		{workerlease.Rested{Worker: me}, zap.InfoLevel, "task rests", []string{"slot", "token", "until"}},
		{workerlease.Returned{Worker: me}, zap.DebugLevel, "code returned", []string{"slot", "token"}},
		{workerlease.Missed{Worker: me}, zap.WarnLevel, "slot missed", []string{"slot", "until", "count", "why"}},
		{workerlease.BecameIneligible{Worker: me}, zap.WarnLevel, "not eligible", []string{"slot", "error"}},
		{workerlease.SteppedBack{Worker: me}, zap.WarnLevel, "stepped back", []string{"slot", "failures", "until"}},
		{workerlease.Ranked{Worker: me}, zap.DebugLevel, "ranked", []string{"priority", "first", "why"}},
		{workerlease.RosterFailed{Worker: me}, zap.WarnLevel, "roster failed", []string{"error"}},
		{workerlease.BecameEligible{Worker: me}, zap.InfoLevel, "eligible again", []string{"slot"}},
		{workerlease.Released{Worker: me}, zap.InfoLevel, "lease released", []string{"slot", "seq", "at"}},
		{workerlease.Overrun{Worker: me}, zap.WarnLevel, "callback overruns its lease", []string{"slot"}},
		{workerlease.Panic{Worker: me, Err: why}, zap.ErrorLevel, "callback panicked", []string{"slot", "error"}},
		{workerlease.StopFailed{Worker: me, Err: why}, zap.WarnLevel, "stopping failed", []string{"error"}},
		{workerlease.Conflict{Worker: me}, zap.DebugLevel, "append conflict", []string{"seq"}},
		{workerlease.Unknown{Worker: me, Err: why}, zap.WarnLevel, "append outcome unknown", []string{"seq", "error"}},
		{workerlease.Throttled{Worker: me, Err: why}, zap.WarnLevel, "store throttles", []string{"operation", "retryAfter", "error"}},
		{workerlease.Operated{Worker: me, Err: why}, zap.DebugLevel, "operation ended", []string{"operation", "took", "error"}},
		{workerlease.StoreFailed{Worker: me, Err: why}, zap.WarnLevel, "store failed", []string{"operation", "error"}},
		{workerlease.ClockSample{Worker: me}, zap.DebugLevel, "clock sample", []string{"server", "roundTrip", "uncertainty"}},
		{workerlease.ClockJump{Worker: me}, zap.WarnLevel, "clock jump", []string{"server", "verdict", "storeTime", "uncertainty"}},
		{workerlease.Lapsed{Worker: me, Err: why}, zap.WarnLevel, "lease lapsed in an outage", []string{"outage", "error"}},
		{workerlease.TooUncertain{Worker: me, Err: why}, zap.ErrorLevel, "time too uncertain", []string{"uncertainty", "error"}},
		{workerlease.StoreWarning{Worker: me}, zap.WarnLevel, "store warning", []string{"warning"}},
		{workerlease.WatchFailed{Worker: me, Err: why}, zap.DebugLevel, "watch failed", []string{"error"}},
		{workerlease.Charged{Worker: me}, zap.DebugLevel, "operation charged", []string{"operation", "units"}},
		{workerlease.Trimmed{Worker: me}, zap.DebugLevel, "ledger trimmed", []string{"count"}},
		{workerlease.Poison{Worker: me, Err: why}, zap.WarnLevel, "ledger poisoned", []string{"seq", "error"}},
		{workerlease.Blocked{Worker: me}, zap.WarnLevel, "ledger blocked", []string{"seq", "until", "done"}},
		{workerlease.PoisonReset{Worker: me}, zap.WarnLevel, "ledger reset", []string{"seq", "reason"}},
		{workerlease.Vanished{Worker: me, Err: why}, zap.ErrorLevel, "record vanished", []string{"seq", "error"}},
		{workerlease.ScheduleMismatch{Worker: me}, zap.WarnLevel, "schedule mismatch", []string{"ours", "theirs", "holder"}},
		{strange{me}, zap.DebugLevel, "event", nil},
	}
	operations, err := os.ReadFile(filepath.Join("..", "docs", "monitoring.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(operations), "| Event | Message | Level | Meaning |\n|---|---|---|---|\n")
	table, _, _ = strings.Cut(table, "\n\n")
	if listed := strings.Count("\n"+table, "\n| "); listed != len(tests)-1 {
		t.Errorf("docs/monitoring.md lists %d events, want the %d that there are", listed, len(tests)-1)
	}
	covered := map[string]bool{}
	for _, test := range tests {
		name := reflect.TypeOf(test.event).Name()
		covered[name] = true
		t.Run(name, func(t *testing.T) {
			core, logs := observer.New(zap.DebugLevel)
			workerlease.LogTo(zap.New(core)).Observe(test.event)
			if logs.Len() != 1 {
				t.Fatalf("%d lines, want one", logs.Len())
			}
			line := logs.All()[0]
			var keys []string
			for _, f := range line.Context {
				keys = append(keys, f.Key)
			}
			equal(t, "fields", keys, append(test.fields, "workerType", "instanceId")...)
			if line.Level != test.level || line.Message != test.message {
				t.Errorf("logged %q at %v, want %q at %v", line.Message, line.Level, test.message, test.level)
			}
			if m := line.ContextMap(); m["workerType"] != "job" || m["instanceId"] != "me" {
				t.Errorf("logged of %v/%v", m["workerType"], m["instanceId"])
			}
			if row := fmt.Sprintf("| `%s` | %s | %v |", name, test.message, test.level); name != "strange" && !strings.Contains(table, row) {
				t.Errorf("docs/monitoring.md doesn't list it as %s", row)
			}
			var text bytes.Buffer
			workerlease.LogToSlog(slog.New(slog.NewJSONHandler(&text, &slog.HandlerOptions{Level: slog.LevelDebug}))).Observe(test.event)
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

func TestATroubleOfTheStoreReachesErrorTheObserverAndTheLogger(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		core, logs := observer.New(zap.WarnLevel)
		down := errors.New("no route")
		ledger := faulty(t, nil)
		w := start(t, setup{ledger: ledger, logger: zap.New(core)})
		at(6 * time.Minute)
		if w.reported(down) || logs.Len() > 0 {
			t.Fatalf("before the trouble: %v, %v", w.errs, logs.All())
		}
		ledger.Break(faultstore.Fault{Effect: faultstore.Dropped, Err: down})
		at(11 * time.Minute)
		if !w.reported(down) || !errors.Is(w.Status().LastError, down) {
			t.Errorf("Callbacks.Error got %v, LastError is %v, want %v", w.errs, w.Status().LastError, down)
		}
		if e := observed[workerlease.StoreFailed](w); len(e) == 0 || !errors.Is(e[0].Err, down) {
			t.Errorf("StoreFailed = %v, want one of %v", e, down)
		}
		if n := logs.FilterMessage("store failed").Len(); n == 0 {
			t.Errorf("the log has no line of it: %v", logs.All())
		}
		ledger.Mend()
	})
}
