package runlog

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
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

// noon is a boundary of the schedule "every 5m".
var noon = time.Date(2026, time.March, 2, 12, 0, 0, 0, time.UTC)

// worker is the worker of the events.
var worker = workerlease.Worker{WorkerType: "t", InstanceID: "a"}

// happen lets everything happen that a log shows.
func happen(j *Log) {
	slot := slots.Slot{Start: noon, End: noon.Add(5 * time.Minute)}
	lease := workerlease.Lease{WorkerType: "t", InstanceID: "a", Slot: slot, Start: slot.Start, Expiry: slot.End, Token: 7}
	down := errors.New("dial mongodb://user:c4n4ry@host: refused")
	j.Began(workerlease.Options{WorkerType: "t", InstanceID: "a", Group: "north", Schedule: slots.Must(slots.Every(5 * time.Minute))})
	j.Began(workerlease.Options{WorkerType: "t", InstanceID: "a", FailoverWithin: 20 * time.Second, Continuous: true, NoFailback: true, Schedule: slots.Must(slots.Every(5 * time.Minute))})
	j.Began(workerlease.Options{WorkerType: "t", InstanceID: "a", FailoverWithin: time.Minute, Job: &workerlease.Job{MaxAttempts: 3, RunMissed: true}, Schedule: slots.Must(slots.Every(5 * time.Minute))})
	sample := workerlease.ClockSample{Worker: worker, StoreTime: noon, Uncertainty: time.Millisecond, RoundTrip: 2 * time.Millisecond}
	noted := sample
	noted.Note = "no clock can be asked for of b"
	for _, e := range []workerlease.Event{
		sample, noted,
		workerlease.Claimed{Worker: worker, Slot: slot, Seq: 1, Token: 7, Early: 9 * time.Second},
		workerlease.Claimed{Worker: worker, Slot: slot, Seq: 1, Token: 7, Early: -2 * time.Second},
		workerlease.Claimed{Worker: worker, Slot: slot, Joined: true},
		workerlease.Lost{Worker: worker, Slot: slot, Holder: store.Record{InstanceID: "b", Priority: 1, Token: 6, WindowEnd: slot.End}, Inversion: true},
		workerlease.Lost{Worker: worker, Slot: slot, Holder: store.Record{InstanceID: "b", Priority: 1, Token: 6, WindowEnd: slot.End}},
		workerlease.HolderChanged{Worker: worker, Holder: workerlease.Holder{InstanceID: "c", Token: 7, From: noon.Add(time.Minute), Until: slot.Start.Add(2 * time.Minute)}},
		workerlease.Allocated{Worker: worker, Lease: lease},
		workerlease.HolderChanged{Worker: worker, Holder: workerlease.Holder{InstanceID: "a", Token: 7, From: noon, Until: slot.End}},
		workerlease.HolderChanged{Worker: worker, Holder: workerlease.Holder{InstanceID: "a", Token: 7, From: noon, Until: slot.Start.Add(time.Minute)}, Released: true},
		workerlease.Extended{Worker: worker, Lease: lease, Seq: 2},
	} {
		j.Observe(e)
	}
	j.Started(lease, 42, "process tree")
	j.NotStarted(lease, guard.ErrTooLate)
	j.Ended(lease, guard.Status{Code: 0, Reason: guard.Exited}, nil)
	j.Ended(lease, guard.Status{Code: 3, Reason: guard.Exited}, nil)
	j.Ended(lease, guard.Status{Code: -1, Signal: 9, Reason: guard.DeadlineReached}, guard.ErrSurvivors)
	j.Kept(lease)
	for _, e := range []workerlease.Event{
		workerlease.TaskFailed{Worker: worker, Lease: lease, Err: failed{guard.Status{Code: 3, Reason: guard.Exited}}},
		workerlease.TaskFailed{Worker: worker, Lease: lease, Err: errLate},
		workerlease.Exhausted{Worker: worker, Slot: slot, Attempts: 3},
		workerlease.Postponed{Worker: worker, Slot: slot, Attempts: 2, After: slot.Start.Add(2 * time.Second)},
		workerlease.Rested{Worker: worker, Lease: lease, Until: slot.End},
		workerlease.SlotDone{Worker: worker, Slot: slot, Seq: 3},
		workerlease.Lost{Worker: worker, Slot: slot, Holder: store.Record{InstanceID: "b", SlotStart: slot.Start, DoneUntil: slot.End}},
		workerlease.Panic{Worker: worker, Slot: slot, Err: errors.New("task: panicked: jam")},
	} {
		j.Observe(e)
	}
	j.Trouble("stop", errors.New("pipe\nis\x1b broken"))
	for _, e := range []workerlease.Event{
		workerlease.Expired{Worker: worker, Lease: lease, Why: workerlease.WindowEnded},
		workerlease.StoreFailed{Worker: worker, Operation: "tail", Err: down},
		workerlease.StoreFailed{Worker: worker, Operation: "now", Err: down},
		workerlease.Unknown{Worker: worker, Seq: 3, Err: down},
		workerlease.Throttled{Worker: worker, Operation: "append", RetryAfter: time.Second, Err: down},
		workerlease.Missed{Worker: worker, Slot: slot, Until: slot.End, Why: workerlease.Unreachable},
		workerlease.Missed{Worker: worker, Slot: slot, Until: slot.End.Add(time.Hour), Why: workerlease.TooLate},
		sample,
		workerlease.StoreFailed{Worker: worker, Operation: "tail", Err: down},
		workerlease.Conflict{Worker: worker, Seq: 3},
		workerlease.Overrun{Worker: worker, Slot: slot}, // its command has ended
		workerlease.Overrun{Worker: worker, Slot: slots.Slot{Start: slot.End, End: slot.End.Add(5 * time.Minute)}},
		workerlease.ClockJump{Worker: worker, Server: "s2", Verdict: workerlease.JumpConfirmed, StoreTime: noon, Uncertainty: time.Second},
		workerlease.Lapsed{Worker: worker, Outage: 12 * time.Second, Err: errors.New("t: the store took no appends for 12s, and the lease of slot 12:00 ended for that: FailoverWithin is 4s, and 50s would have held it")},
		workerlease.TooUncertain{Worker: worker, Uncertainty: time.Second, Err: errors.New("t: FailoverWithin is 1s: it should be at least 8 × that and 4 × Margin")},
		workerlease.Vanished{Worker: worker, Seq: 3, Err: errors.New("t: seq 3: lease record vanished")},
		workerlease.StoreWarning{Worker: worker, Text: "the machine's clock is 3h0m0s ahead of store time"},
		workerlease.WatchFailed{Worker: worker, Err: errors.New("sqlite: watch leases.db: unsupported operation")},
		workerlease.Charged{Worker: worker, Operation: "tail", Units: 2.894},
		workerlease.Trimmed{Worker: worker, Count: 5},
		workerlease.Poison{Worker: worker, Seq: 4, Err: errors.New("no token")},
		workerlease.Blocked{Worker: worker, Seq: 6, Until: noon.AddDate(1, 0, 0)},
		workerlease.Blocked{Worker: worker, Seq: 7, Until: noon.AddDate(1, 0, 0), Done: true},
		workerlease.PoisonReset{Worker: worker, Seq: 5, Reason: "supersedes seq 4"},
		workerlease.ScheduleMismatch{Worker: worker, Ours: "every 5m", Theirs: "every 10m", Holder: "b"},
		workerlease.Released{Worker: worker, Slot: slot, At: noon.Add(time.Minute)},
		workerlease.Released{Worker: worker, Slot: slots.Slot{Start: slot.End, End: slot.End.Add(5 * time.Minute)}, At: slot.End},
		workerlease.Missed{Worker: worker, Slot: slot, Until: slot.End.AddDate(0, 0, 1), Why: workerlease.TooLate},
	} {
		j.Observe(e)
	}
	j.Started(lease, 43, "cgroup and process tree")
	onward := lease
	onward.Slot = slots.Slot{Start: slot.End, End: slot.End.Add(5 * time.Minute)}
	onward.Expiry = onward.Slot.End
	j.Observe(workerlease.Extended{Worker: worker, Lease: onward, Seq: 9})
	j.ExtendedLate(onward)
	j.Stopping(nil)
	j.Ended(lease, guard.Status{Code: -1, Signal: 15, Reason: guard.Stopped}, nil)
	j.Observe(workerlease.Overrun{Worker: worker, Slot: onward.Slot}) // its command has ended
	j.Observe(workerlease.Released{Worker: worker, Slot: onward.Slot, At: slot.End.Add(-time.Second)})
	j.Observe(workerlease.StoreFailed{Worker: worker, Operation: "now", Err: down})
	j.Stopped()
}

// failed is a command that has failed.
type failed struct{ guard.Status }

func (f failed) Error() string { return f.Status.String() }

var errLate = errors.New("told to end, because the lease was extended late")

// logOf is what a log writes of all that can happen.
func logOf(format string, level zapcore.Level) string {
	var written bytes.Buffer
	happen(New(Options{To: secret.Writer{To: &written, Secrets: secret.InURI("mongodb://user:c4n4ry@host")}, JSON: format == "json", Level: level, Worker: worker}))
	return written.String()
}

func TestTheLogAsText(t *testing.T) {
	var b strings.Builder
	for line := range strings.Lines(logOf("text", zapcore.DebugLevel)) {
		at, rest, _ := strings.Cut(line, " ")
		if _, err := time.Parse("2006-01-02T15:04:05.000Z", at); err != nil {
			t.Errorf("line %q: %v", line, err)
		}
		b.WriteString(rest)
	}
	golden.Compare(t, "run.text", b.String())
}

func TestTheLogKeepsToItsLevelAndShowsNoSecrets(t *testing.T) {
	for _, format := range []string{"text", "json"} {
		var lines []int
		for _, level := range []zapcore.Level{zapcore.DebugLevel, zapcore.InfoLevel, zapcore.WarnLevel, zapcore.ErrorLevel} {
			text := logOf(format, level)
			if strings.ContainsAny(text, "\x1b\r") || strings.Contains(text, "c4n4ry") {
				t.Errorf("the log as %s shows what it must not:\n%s", format, text)
			}
			lines = append(lines, strings.Count(text, "\n"))
			for line := range strings.Lines(text) {
				if format == "json" && !json.Valid([]byte(line)) {
					t.Errorf("line %q is no JSON", line)
				}
			}
		}
		if lines[0] <= lines[1] || lines[1] <= lines[2] || lines[2] <= lines[3] || lines[3] == 0 {
			t.Errorf("the log as %s has %s lines at the four levels, want ever fewer", format, fmt.Sprint(lines))
		}
	}
}

// A worker that could not be stopped goes on, but leasectl has said its last word.
func TestAClosedLogSaysNothingMore(t *testing.T) {
	for _, asJSON := range []bool{false, true} {
		var out bytes.Buffer
		j := New(Options{To: &out, JSON: asJSON, Worker: worker})
		j.Warn("before the end")
		j.Close()
		j.Observe(workerlease.RosterFailed{Worker: worker, Err: errors.New("too late")})
		j.Stopped()
		if got := out.String(); strings.Count(got, "\n") != 1 || !strings.Contains(got, "before the end") {
			t.Errorf("the log, closed after a warning, is %q, want the warning alone", got)
		}
	}
}

func TestAFailedJobIsLoggedOnce(t *testing.T) {
	status, lease := guard.Status{Code: 3, Reason: guard.Exited}, workerlease.Lease{Slot: slots.Slot{Start: noon, End: noon.Add(time.Minute)}, Token: 7}
	for job, want := range map[*workerlease.Job][]string{
		nil: {"WARN slot 12:00:00.000Z: command: exit code 3, ended by itself"},
		{}:  {"ERROR slot 12:00:00.000Z: failed: exit code 3, ended by itself"},
	} {
		var stderr bytes.Buffer
		j := New(Options{To: &stderr, Level: zapcore.WarnLevel, Worker: worker})
		j.Began(workerlease.Options{Schedule: slots.Must(slots.Every(time.Minute)), Job: job})
		j.Ended(lease, status, nil)
		if job != nil {
			j.Observe(workerlease.TaskFailed{Worker: worker, Lease: lease, Err: failed{status}})
		}
		var got []string
		for line := range strings.Lines(stderr.String()) {
			_, rest, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
			got = append(got, strings.Join(strings.Fields(rest), " "))
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("the log of exit code 3 (-want +got):\n%s", diff)
		}
	}
}

func TestAJobWhoseCommandIsNotStartedIsLoggedOnce(t *testing.T) {
	lease := workerlease.Lease{Slot: slots.Slot{Start: noon, End: noon.Add(time.Minute)}, Token: 7}
	for err, want := range map[error]string{
		fs.ErrNotExist:     "slot 12:00:00.000Z: failed: file does not exist",
		guard.ErrTooLate:   "slot 12:00:00.000Z: command not started: too late to start",
		guard.ErrSurvivors: "slot 12:00:00.000Z: command not started: processes could not be killed",
	} {
		var stderr bytes.Buffer
		j := New(Options{To: &stderr, Level: zapcore.InfoLevel, Worker: worker})
		j.Began(workerlease.Options{Schedule: slots.Must(slots.Every(time.Minute)), Job: &workerlease.Job{}})
		stderr.Reset()
		j.NotStarted(lease, err)
		if errors.Is(err, fs.ErrNotExist) { // With the others the job goes on, or leasing ends.
			j.Observe(workerlease.TaskFailed{Worker: worker, Lease: lease, Err: err})
		}
		if got := stderr.String(); strings.Count(got, "\n") != 1 || !strings.HasSuffix(got, "ERROR "+want+"\n") {
			t.Errorf("the log of %v: %q, want one line, %q", err, got, want)
		}
	}
}

// wordy is an error with a detail.
type wordy struct{ error }

func (wordy) Detail() string { return "not primary, topology { … }" }

func TestTheWholeOfAnErrorIsLoggedForDebuggingOnly(t *testing.T) {
	for _, json := range []bool{false, true} {
		for level, want := range map[zapcore.Level]bool{zapcore.DebugLevel: true, zapcore.InfoLevel: false} {
			var stderr bytes.Buffer
			l := New(Options{To: &stderr, Level: level, JSON: json, Worker: worker})
			l.Observe(workerlease.StoreFailed{Worker: worker, Operation: "now", Err: fmt.Errorf("now: %w", wordy{errors.New("no primary")})})
			l.Observe(workerlease.StoreFailed{Worker: worker, Operation: "now", Err: errors.New("plain")})
			if got := strings.Count(stderr.String(), "topology"); (got == 1) != want || got > 1 || !strings.Contains(stderr.String(), "no primary") {
				t.Errorf("JSON %v, level %v: %q, want the detail once: %v", json, level, stderr.String(), want)
			}
		}
	}
}

// entry is a line in JSON.
type entry struct {
	Level, Time, Message, WorkerType, InstanceID, Slot, SlotStart, SlotEnd, Error string

	ExitCode *int
	Attempts int
	line     string
}

// entries are the lines in JSON of all that can happen.
func entries(t *testing.T, level zapcore.Level) (found []entry) {
	t.Helper()
	for line := range strings.Lines(logOf("json", level)) {
		e := entry{line: line}
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			t.Fatal(err)
		}
		found = append(found, e)
	}
	return found
}

func TestEveryLineInJSONHasItsWorkerItsSlotAndAConstantMessage(t *testing.T) {
	slotted, begun, messages := 0, false, map[string]bool{}
	for _, e := range entries(t, zapcore.DebugLevel) {
		if _, err := time.Parse("2006-01-02T15:04:05.000Z", e.Time); err != nil || e.Level == "" {
			t.Errorf("line %q: %v, want a time and a level", e.line, err)
		}
		if begun = begun || e.Message == "lease allocated"; begun && e.Slot == "" {
			t.Errorf("line %q: no slot, although a lease has begun", e.line)
		}
		if strings.ContainsAny(e.Message, "0123456789:\"") {
			t.Errorf("the message %q holds what belongs in fields", e.Message)
		}
		messages[e.Message] = true
		for _, field := range []string{"message", "workerType", "instanceId", "slot", "slotStart", "slotEnd", "token", "error"} {
			if n := strings.Count(e.line, `"`+field+`":`); n > 1 {
				t.Errorf("line %q has %s %d times", e.line, field, n)
			}
		}
		if e.WorkerType != "t" || e.InstanceID != "a" {
			t.Errorf("line %q: not of the worker", e.line)
		}
		if e.SlotStart == "" {
			continue
		}
		slotted++
		start, err := time.Parse(time.RFC3339, e.SlotStart)
		if err != nil || e.SlotEnd != store.Format(start.Add(5*time.Minute)) || e.Slot == "" {
			t.Errorf("line %q: no slot, slotStart and slotEnd", e.line)
		}
	}
	if slotted < 15 {
		t.Errorf("%d lines are about a slot, want at least 15", slotted)
	}
	for _, want := range []string{
		"worker began", "ready", "command started", "command not started", "command ended", "lease kept", "extended late", "order to the guard failed",
		"stopping", "stopping command", "stopped", "lease allocated", "lease extended", "lease expired", "slot lost",
	} {
		if !messages[want] {
			t.Errorf("no line with the message %q", want)
		}
	}
}

func TestAFailedCommandInJSONHasItsExitCode(t *testing.T) {
	var failed []string
	for _, e := range entries(t, zapcore.ErrorLevel) {
		switch {
		case e.Message == "task failed" && e.ExitCode != nil:
			failed = append(failed, fmt.Sprintf("%d: %s", *e.ExitCode, e.Error))
		case e.Message == "task failed":
			failed = append(failed, e.Error)
		case e.Message == "slot not done":
			failed = append(failed, fmt.Sprintf("attempts: %d", e.Attempts))
		}
	}
	want := []string{"3: exit code 3, ended by itself", errLate.Error(), "attempts: 3"}
	if diff := cmp.Diff(want, failed); diff != "" {
		t.Errorf("the log (-want +got):\n%s", diff)
	}
}
