package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/zap/zapcore"

	"github.com/slotlease/slotlease/cmd/leasectl/internal/guard"
	"github.com/slotlease/slotlease/cmd/leasectl/internal/secret"
	"github.com/slotlease/slotlease/cmd/leasectl/internal/testutil/golden"
	"github.com/slotlease/slotlease/slots"
	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/workerlease"
)

// happen lets everything happen that a journal is told of.
func happen(j journal) {
	slot := slots.Slot{Start: noon, End: noon.Add(5 * time.Minute)}
	lease := workerlease.Lease{WorkerType: "t", InstanceID: "a", Slot: slot, Start: slot.Start, Expiry: slot.End, Token: 7}
	down := errors.New("dial mongodb://user:c4n4ry@host: refused")
	j.began(workerlease.Options{WorkerType: "t", InstanceID: "a", Group: "north", Schedule: slots.Must(slots.Every(5 * time.Minute))})
	j.began(workerlease.Options{WorkerType: "t", InstanceID: "a", FailoverWithin: 20 * time.Second, Continuous: true, NoFailback: true, Schedule: slots.Must(slots.Every(5 * time.Minute))})
	j.began(workerlease.Options{WorkerType: "t", InstanceID: "a", FailoverWithin: time.Minute, Job: &workerlease.Job{MaxAttempts: 3, RunMissed: true}, Schedule: slots.Must(slots.Every(5 * time.Minute))})
	sample := workerlease.ClockSample{StoreTime: noon, Uncertainty: time.Millisecond, RoundTrip: 2 * time.Millisecond}
	for _, e := range []workerlease.Event{
		sample, sample,
		workerlease.Claimed{Slot: slot, Seq: 1, Token: 7, Early: 9 * time.Second},
		workerlease.Claimed{Slot: slot, Joined: true},
		workerlease.Lost{Slot: slot, Holder: store.Record{InstanceID: "b", Priority: 1}, Inversion: true},
		workerlease.Allocated{Lease: lease},
		workerlease.HolderChanged{Holder: workerlease.Holder{InstanceID: "a", Token: 7, From: noon, Until: slot.End}},
		workerlease.HolderChanged{Holder: workerlease.Holder{InstanceID: "a", Token: 7, From: noon, Until: slot.Start.Add(time.Minute)}, Released: true},
		workerlease.Extended{Lease: lease, Seq: 2},
	} {
		j.Observe(e)
	}
	j.started(lease, 42)
	j.notStarted(lease, guard.ErrTooLate)
	j.ended(lease, guard.Status{Code: 0, Reason: guard.Exited}, nil)
	j.ended(lease, guard.Status{Code: 3, Reason: guard.Exited}, nil)
	j.ended(lease, guard.Status{Code: -1, Signal: 9, Reason: guard.DeadlineReached}, guard.ErrSurvivors)
	for _, e := range []workerlease.Event{
		workerlease.TaskFailed{Lease: lease, Err: failedError{guard.Status{Code: 3, Reason: guard.Exited}}},
		workerlease.TaskFailed{Lease: lease, Err: errExtendedLate},
		workerlease.Exhausted{Slot: slot, Attempts: 3},
		workerlease.SlotDone{Slot: slot, Seq: 3},
		workerlease.Lost{Slot: slot, Holder: store.Record{InstanceID: "b", DoneUntil: slot.End}},
		workerlease.Panic{Slot: slot, Err: errors.New("task: panicked: jam")},
	} {
		j.Observe(e)
	}
	j.trouble("stop the command", errors.New("pipe\nis\x1b broken"))
	for _, e := range []workerlease.Event{
		workerlease.Expired{Lease: lease, Why: workerlease.WindowEnded},
		workerlease.StoreFailed{Operation: "tail", Err: down},
		workerlease.StoreFailed{Operation: "now", Err: down},
		workerlease.Unknown{Seq: 3, Err: down},
		workerlease.Throttled{Operation: "append", RetryAfter: time.Second, Err: down},
		workerlease.Missed{Slot: slot, Until: slot.End, Why: workerlease.Unreachable},
		workerlease.Missed{Slot: slot, Until: slot.End.Add(time.Hour), Why: workerlease.TooLate},
		sample,
		workerlease.StoreFailed{Operation: "tail", Err: down},
		workerlease.Conflict{Seq: 3},
		workerlease.Overrun{Slot: slot}, // its command has ended
		workerlease.Overrun{Slot: slots.Slot{Start: slot.End, End: slot.End.Add(5 * time.Minute)}},
		workerlease.ClockJump{Server: "s2", StoreTime: noon, Uncertainty: time.Second},
		workerlease.TooUncertain{Uncertainty: time.Second, Err: errors.New("t: FailoverWithin is 1s: it should be at least 8 × that and 4 × Margin")},
		workerlease.Vanished{Seq: 3, Err: errors.New("t: seq 3: lease record vanished")},
		workerlease.Charged{Operation: "tail", Units: 2.894},
		workerlease.Trimmed{Count: 5},
		workerlease.Poison{Seq: 4, Err: errors.New("no token")},
		workerlease.PoisonReset{Seq: 5, Reason: "supersedes seq 4"},
		workerlease.ScheduleMismatch{Ours: "every 5m", Theirs: "every 10m", Holder: "b"},
		workerlease.Released{Slot: slot, At: noon.Add(time.Minute)},
		workerlease.Released{Slot: slots.Slot{Start: slot.End, End: slot.End.Add(5 * time.Minute)}, At: slot.End},
		workerlease.Missed{Slot: slot, Until: slot.End.AddDate(0, 0, 1), Why: workerlease.TooLate},
	} {
		j.Observe(e)
	}
	j.started(lease, 43)
	onward := lease
	onward.Slot = slots.Slot{Start: slot.End, End: slot.End.Add(5 * time.Minute)}
	onward.Expiry = onward.Slot.End
	j.Observe(workerlease.Extended{Lease: onward, Seq: 9})
	j.extendedLate(onward)
	j.stopping(nil)
	j.ended(lease, guard.Status{Code: -1, Signal: 15, Reason: guard.Stopped}, nil)
	j.Observe(workerlease.Overrun{Slot: onward.Slot}) // its command has ended
	j.Observe(workerlease.Released{Slot: onward.Slot, At: slot.End.Add(-time.Second)})
	j.Observe(workerlease.StoreFailed{Operation: "now", Err: down})
	j.stopped()
}

// journalOf is what a journal writes of all that can happen.
func journalOf(format string, level zapcore.Level) string {
	var stderr bytes.Buffer
	happen((&app{stderr: &stderr, secrets: secret.List{"c4n4ry"}}).newJournal(format, level))
	return stderr.String()
}

func TestTheJournalForPeople(t *testing.T) {
	var b strings.Builder
	for line := range strings.Lines(journalOf("text", zapcore.DebugLevel)) {
		at, rest, _ := strings.Cut(line, " ")
		if _, err := time.Parse("2006-01-02T15:04:05.000Z", at); err != nil {
			t.Errorf("line %q: %v", line, err)
		}
		b.WriteString(rest)
	}
	golden.Compare(t, "journal.text", b.String())
}

func TestTheJournalKeepsToItsLevelAndShowsNoSecrets(t *testing.T) {
	for _, format := range []string{"text", "json"} {
		var lines []int
		for _, level := range []zapcore.Level{zapcore.DebugLevel, zapcore.InfoLevel, zapcore.WarnLevel, zapcore.ErrorLevel} {
			text := journalOf(format, level)
			if strings.ContainsAny(text, "\x1b\r") || strings.Contains(text, "c4n4ry") {
				t.Errorf("the journal as %s shows what it must not:\n%s", format, text)
			}
			lines = append(lines, strings.Count(text, "\n"))
			for line := range strings.Lines(text) {
				if format == "json" && !json.Valid([]byte(line)) {
					t.Errorf("line %q is no JSON", line)
				}
			}
		}
		if lines[0] <= lines[1] || lines[1] <= lines[2] || lines[2] <= lines[3] || lines[3] == 0 {
			t.Errorf("the journal as %s has %s lines at the four levels, want ever fewer", format, fmt.Sprint(lines))
		}
	}
}

func TestAnOutageIsToldWhenItBeginsAndEveryMinute(t *testing.T) {
	var stderr bytes.Buffer
	j := (&app{stderr: &stderr}).newJournal("text", zapcore.InfoLevel)
	now := noon
	j.state.now = func() time.Time { return now }
	fail := func(err error) { j.Observe(workerlease.StoreFailed{Operation: "now", Err: err}) }
	down := errors.New("refused")
	fail(down)
	for range 20 {
		now = now.Add(10 * time.Second)
		fail(down)
	}
	if j.reached() {
		t.Error("reached() = true while the store is down")
	}
	j.Observe(workerlease.ClockSample{StoreTime: noon})
	if !j.reached() {
		t.Error("reached() = false when the store has answered")
	}
	fail(store.ErrDenied)
	var got []string
	for line := range strings.Lines(stderr.String()) {
		_, rest, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		got = append(got, strings.Join(strings.Fields(rest), " "))
	}
	want := []string{
		"WARN store not reached yet: refused; trying on",
		"WARN store still unreachable: refused", "WARN store still unreachable: refused", "WARN store still unreachable: refused",
		"INFO ready: store time 2026-03-02T12:00:00.000Z ± 0s", "INFO store: reached again",
		"WARN store: now failed: access denied",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the journal (-want +got):\n%s", diff)
	}
}

func TestEveryLineOfASlotInJSONHasItsTimes(t *testing.T) {
	slotted := 0
	for line := range strings.Lines(journalOf("json", zapcore.DebugLevel)) {
		var e struct{ Message, Slot, SlotStart, SlotEnd string }
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			t.Fatal(err)
		}
		if e.Slot == "" && !strings.HasPrefix(e.Message, "slot ") {
			continue
		}
		slotted++
		start, err := time.Parse(time.RFC3339, e.SlotStart)
		if err != nil || e.SlotEnd != store.Format(start.Add(5*time.Minute)) {
			t.Errorf("line %q: no slotStart and slotEnd", line)
		}
	}
	if slotted < 15 {
		t.Errorf("%d lines are about a slot, want at least 15", slotted)
	}
}

func TestAFailedCommandInJSONHasItsExitCode(t *testing.T) {
	var failed []string
	for line := range strings.Lines(journalOf("json", zapcore.ErrorLevel)) {
		var e struct {
			Message, Error string
			ExitCode       *int
			Attempts       int
		}
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			t.Fatal(err)
		}
		switch {
		case e.Message == "task failed" && e.ExitCode != nil:
			failed = append(failed, fmt.Sprintf("%d: %s", *e.ExitCode, e.Error))
		case e.Message == "task failed":
			failed = append(failed, e.Error)
		case e.Message == "slot not done":
			failed = append(failed, fmt.Sprintf("attempts: %d", e.Attempts))
		}
	}
	want := []string{"3: exit code 3, ended by itself", errExtendedLate.Error(), "attempts: 3"}
	if diff := cmp.Diff(want, failed); diff != "" {
		t.Errorf("the journal (-want +got):\n%s", diff)
	}
}
