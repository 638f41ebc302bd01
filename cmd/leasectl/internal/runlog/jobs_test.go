package runlog

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"time"

	"go.uber.org/zap/zapcore"

	"github.com/slotlease/slotlease/slots"
	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/workerlease"
	"github.com/slotlease/slotlease/workerlease/event"
)

// What is about the store, or about the process, is said once, by no name; what is about a job begins with its name.
func TestTheLinesOfSeveralWorkersNameThem(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	all := New(Options{To: &out, Level: zapcore.InfoLevel, Worker: event.Worker{InstanceID: "vm"}})
	at := time.Date(2026, time.March, 2, 12, 30, 0, 0, time.UTC)
	all.now = func() time.Time { return at }
	log := map[string]*Log{}
	begin := func(name string) {
		log[name] = all.Of(event.Worker{WorkerType: name, InstanceID: "vm"})
		// They claim nothing of the slot in which they start, so that the first one is told.
		log[name].Began(workerlease.Options{WorkerType: name, InstanceID: "vm", Schedule: slots.Must(slots.Every(time.Hour))}, true)
	}
	down := func(name string) event.StoreFailed {
		return event.StoreFailed{Worker: event.Worker{WorkerType: name, InstanceID: "vm"}, Operation: "now", Err: errors.New("down")}
	}
	slot := slots.Slot{Start: at.Truncate(time.Hour), End: at.Truncate(time.Hour).Add(time.Hour)}
	all.Jobs(2, []string{"jobs.yaml", "more"})
	begin("a")
	begin("b")
	log["a"].Observe(down("a"))
	log["b"].Observe(down("b"))
	log["b"].Observe(event.ClockSample{StoreTime: at})
	log["a"].Observe(event.SlotDone{Slot: slot})
	begin("c")
	log["c"].Stopping(errors.New("its file has it no more"))
	log["c"].Stopped()
	all.Reloaded(1, 0, 1, 1)
	all.Stopping(errors.New("terminated"))
	for _, name := range []string{"a", "b"} {
		log[name].Stopping(nil)
		log[name].Stopped()
	}
	all.Stopped()
	all.Close()
	var got []string
	for line := range strings.Lines(out.String()) {
		got = append(got, strings.Join(strings.Fields(line)[1:], " "))
	}
	want := []string{
		`INFO instance "vm": 2 jobs of jobs.yaml, more`,
		"INFO a: priority 0, every 1h",
		"INFO b: priority 0, every 1h",
		"WARN store not reached yet: down; trying on",
		"INFO ready: store time " + store.Format(at) + " ± 0s",
		"INFO a: first slot 2026-03-02T13:00:00.000Z in 30m",
		"INFO b: first slot 2026-03-02T13:00:00.000Z in 30m",
		"INFO a: slot 12:00:00.000Z: done",
		"INFO a: next slot 2026-03-02T13:00:00.000Z in 30m",
		"INFO c: priority 0, every 1h",
		"INFO c: first slot 2026-03-02T13:00:00.000Z in 30m",
		"INFO c: stopping: its file has it no more",
		"INFO c: stopped",
		"INFO reloaded: 1 job unchanged, 0 changed, 1 added, 1 removed",
		"INFO stopping: terminated",
		"INFO stopped",
	}
	if len(got) != len(want) {
		t.Fatalf("the log is\n%s\nwant %d lines", out.String(), len(want))
	}
	for i := range want {
		if got[i] != want[i] {
			t.Errorf("line %d is %q, want %q", i, got[i], want[i])
		}
	}
}
