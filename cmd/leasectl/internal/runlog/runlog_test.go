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
	"github.com/slotlease/slotlease/workerlease/event"
)

// noon is a boundary of the schedule "every 5m".
var noon = time.Date(2026, time.March, 2, 12, 0, 0, 0, time.UTC)

// worker is the worker of the events.
var worker = event.Worker{WorkerType: "t", InstanceID: "a"}

// happen lets everything happen that a log shows.
func happen(j *Log) {
	slot := slots.Slot{Start: noon, End: noon.Add(5 * time.Minute)}
	lease := workerlease.Lease{WorkerType: "t", InstanceID: "a", Slot: slot, Start: slot.Start, Expiry: slot.End, Token: 7}
	seen := event.Lease{WorkerType: "t", InstanceID: "a", Slot: slot, Start: slot.Start, Expiry: slot.End, Token: 7}
	down := errors.New("dial mongodb://user:c4n4ry@host: refused")
	j.Began(workerlease.Options{WorkerType: "t", InstanceID: "a", Group: "north", Schedule: slots.Must(slots.Every(5 * time.Minute))}, false)
	j.Began(workerlease.Options{WorkerType: "t", InstanceID: "a", FailoverWithin: 20 * time.Second, Continuous: true, NoFailback: true, Schedule: slots.Must(slots.Every(5 * time.Minute))}, false)
	j.Began(workerlease.Options{WorkerType: "t", InstanceID: "a", FailoverWithin: time.Minute, WaitForBoundary: true, Job: &workerlease.Job{StartWithin: time.Minute, Timeout: 3 * time.Hour, Overrun: workerlease.Stop, CatchUp: workerlease.CatchUpAll, CatchUpWithin: 24 * time.Hour, MaxAttempts: 3}, Work: "backup.sh 34cd", Schedule: slots.Must(slots.Every(5 * time.Minute))}, true)
	sample := event.ClockSample{Worker: worker, StoreTime: noon, Uncertainty: time.Millisecond, RoundTrip: 2 * time.Millisecond}
	noted := sample
	noted.Note = "no clock can be asked for of b"
	for _, e := range []event.Event{
		sample, noted,
		event.Claimed{Worker: worker, Slot: slot, Seq: 1, Token: 7, Early: 9 * time.Second},
		event.Claimed{Worker: worker, Slot: slot, Seq: 1, Token: 7, Early: -2 * time.Second},
		event.Claimed{Worker: worker, Slot: slot, Joined: true},
		event.Lost{Worker: worker, Slot: slot, Holder: store.Record{InstanceID: "b", Priority: 1, Token: 6, WindowEnd: slot.End}, Inversion: true},
		event.Lost{Worker: worker, Slot: slot, Holder: store.Record{InstanceID: "b", Priority: 1, Token: 6, WindowEnd: slot.End}},
		event.HolderChanged{Worker: worker, Holder: event.Holder{InstanceID: "c", Token: 7, From: noon.Add(time.Minute), Until: slot.Start.Add(2 * time.Minute)}},
		event.Allocated{Worker: worker, Lease: seen},
		event.HolderChanged{Worker: worker, Holder: event.Holder{InstanceID: "a", Token: 7, From: noon, Until: slot.End}},
		event.HolderChanged{Worker: worker, Holder: event.Holder{InstanceID: "a", Token: 7, From: noon, Until: slot.Start.Add(time.Minute)}, Released: true},
		event.Extended{Worker: worker, Lease: seen, Seq: 2},
	} {
		j.Observe(e)
	}
	j.Started(lease, 42, "process tree")
	j.NotStarted(lease, guard.ErrTooLate)
	j.Ended(lease, guard.Status{Code: 0, Reason: guard.Exited}, nil, nil)
	j.Ended(lease, guard.Status{Code: 3, Reason: guard.Exited}, nil, nil)
	j.Ended(lease, guard.Status{Code: -1, Signal: 9, Reason: guard.DeadlineReached}, nil, guard.ErrSurvivors)
	j.Kept(lease)
	for _, e := range []event.Event{
		event.TaskFailed{Worker: worker, Lease: seen, Err: failed{guard.Status{Code: 3, Reason: guard.Exited}}},
		event.TaskFailed{Worker: worker, Lease: seen, Err: errLate},
		event.TaskFailed{Worker: worker, Lease: seen, Err: workerlease.ErrTimedOut, Cause: store.TimedOut, GivenUp: true},
		event.TaskFailed{Worker: worker, Lease: seen, Err: workerlease.ErrStopped, Cause: store.Stopped},
		event.Exhausted{Worker: worker, Slot: slot, Attempts: 3},
		event.Postponed{Worker: worker, Slot: slot, Attempts: 2, After: slot.Start.Add(2 * time.Second)},
		event.Rested{Worker: worker, Lease: seen, Until: slot.End},
		event.SlotDone{Worker: worker, Slot: slot, Seq: 3},
		event.Lost{Worker: worker, Slot: slot, Holder: store.Record{InstanceID: "b", SlotStart: slot.Start, DoneUntil: slot.End}, Done: true},
		event.Lost{Worker: worker, Slot: slot, Holder: store.Record{InstanceID: "b", Token: 8, SlotStart: slot.Start.Add(-5 * time.Minute), DoneUntil: slot.End}, Done: true},
		event.Panic{Worker: worker, Slot: slot, Err: errors.New("task: panicked: jam")},
	} {
		j.Observe(e)
	}
	for _, e := range []event.Event{
		event.WorkerDied{Worker: worker, Slot: slot, Attempt: 2, Holder: "b"},
		event.WorkerDied{Worker: worker, Slot: slot, Attempt: 3, Holder: "b", GivenUp: true},
		event.Skipped{Worker: worker, Slot: slots.Slot{Start: slot.End, End: slot.End.Add(5 * time.Minute)}, Running: slot, Since: slot.Start.Add(time.Second), Row: 1},
		event.Skipped{Worker: worker, Slot: slots.Slot{Start: slot.End, End: slot.End.Add(5 * time.Minute)}, Running: slot, Since: slot.Start.Add(time.Second), Row: 2},
	} {
		if !j.json {
			j.Observe(e)
		}
	}
	j.Restarting(lease, 2*time.Second)
	for _, why := range []workerlease.Reason{workerlease.AlreadyDone, workerlease.HeldByAnother, workerlease.TooSoon, workerlease.PassedOver, workerlease.UsedUp} {
		j.Unclaimed(&workerlease.NotClaimed{Slot: slot, Why: why, Holder: "b", Until: slot.Start.Add(time.Minute)})
	}
	j.Unclaimed(&workerlease.NotClaimed{Slot: slot, Why: workerlease.HeldByAnother, Holder: "b", Work: "bill.sh 12ab"})
	j.Trouble("stop", errors.New("pipe\nis\x1b broken"))
	for _, e := range []event.Event{
		event.Expired{Worker: worker, Lease: seen, Why: workerlease.WindowEnded},
		event.StoreFailed{Worker: worker, Operation: "tail", Err: down},
		event.StoreFailed{Worker: worker, Operation: "now", Err: down},
		event.Unknown{Worker: worker, Seq: 3, Err: down},
		event.Throttled{Worker: worker, Operation: "append", RetryAfter: time.Second, Err: down},
		event.Missed{Worker: worker, Slot: slot, Until: slot.End, Why: workerlease.Unreachable},
		event.Missed{Worker: worker, Slot: slot, Until: slot.End, Why: workerlease.Unattended},
		event.Missed{Worker: worker, Slot: slot, Until: slot.End.Add(time.Hour), Why: workerlease.TooLate},
		sample,
		event.StoreFailed{Worker: worker, Operation: "tail", Err: down},
		event.Conflict{Worker: worker, Seq: 3},
		event.Overrun{Worker: worker, Slot: slot}, // its command has ended
		event.Overrun{Worker: worker, Slot: slots.Slot{Start: slot.End, End: slot.End.Add(5 * time.Minute)}},
		event.ClockJump{Worker: worker, Server: "s2", Verdict: event.JumpConfirmed, StoreTime: noon, Uncertainty: time.Second},
		event.Lapsed{Worker: worker, Outage: 12 * time.Second, Err: errors.New("t: the store took no appends for 12s, and the lease of slot 12:00 ended for that: FailoverWithin is 4s, and 50s would have held it")},
		event.TooUncertain{Worker: worker, Uncertainty: time.Second, Err: errors.New("t: FailoverWithin is 1s: it should be at least 8 × that and 4 × Margin")},
		event.WentBack{Worker: worker, Seq: 3, Err: errors.New("t: the store went back: record 3 is no longer in it")},
		event.Vanished{Worker: worker, Seq: 3, Err: errors.New("t: seq 3: lease record vanished")},
		event.StoreWarning{Worker: worker, Text: "the machine's clock is 3h0m0s ahead of store time"},
		event.WatchFailed{Worker: worker, Err: errors.New("sqlite: watch leases.db: unsupported operation")},
		event.Charged{Worker: worker, Operation: "tail", Units: 2.894},
		event.Trimmed{Worker: worker, Count: 5},
		event.Poison{Worker: worker, Seq: 4, Err: errors.New("no token")},
		event.Blocked{Worker: worker, Seq: 6, Until: noon.AddDate(1, 0, 0)},
		event.Blocked{Worker: worker, Seq: 7, Until: noon.AddDate(1, 0, 0), Done: true},
		event.PoisonReset{Worker: worker, Seq: 5, Reason: "supersedes seq 4"},
		event.ScheduleMismatch{Worker: worker, Ours: "every 5m", Theirs: "every 10m", Holder: "b"},
		event.Released{Worker: worker, Slot: slot, At: noon.Add(time.Minute)},
		event.Released{Worker: worker, Slot: slots.Slot{Start: slot.End, End: slot.End.Add(5 * time.Minute)}, At: slot.End},
		event.Missed{Worker: worker, Slot: slot, Until: slot.End.AddDate(0, 0, 1), Why: workerlease.TooLate},
	} {
		j.Observe(e)
	}
	j.Started(lease, 43, "cgroup and process tree")
	onward := lease
	onward.Slot = slots.Slot{Start: slot.End, End: slot.End.Add(5 * time.Minute)}
	onward.Expiry = onward.Slot.End
	seen.Slot, seen.Expiry = onward.Slot, onward.Expiry
	j.Observe(event.Extended{Worker: worker, Lease: seen, Seq: 9})
	j.ExtendedLate(onward)
	j.Stopping(nil)
	j.Ended(lease, guard.Status{Code: -1, Signal: 15, Reason: guard.Stopped}, nil, nil)
	j.Observe(event.Overrun{Worker: worker, Slot: onward.Slot}) // its command has ended
	j.Observe(event.Released{Worker: worker, Slot: onward.Slot, At: slot.End.Add(-time.Second)})
	j.Observe(event.StoreFailed{Worker: worker, Operation: "now", Err: down})
	j.Stopped()
}

// failed is a command that has failed.
type failed struct{ guard.Status }

func (f failed) Error() string { return f.Status.String() }

var errLate = errors.New("told to end, because the lease was extended late")

// logOf is what a log writes of all that can happen.
func logOf(format string, level zapcore.Level) string {
	var to bytes.Buffer
	j := New(Options{To: secret.Writer{To: &to, Secrets: secret.InURI("mongodb://user:c4n4ry@host")}, JSON: format == "json", Level: level, Worker: worker})
	happen(j)
	return written(j, &to)
}

// written is what a log has written so far.
func written(l *Log, to *bytes.Buffer) string {
	l.lines.flush(time.Minute)
	return to.String()
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
		j.Observe(event.StoreWarning{Worker: worker, Text: "before the end"})
		j.Close()
		j.Observe(event.RosterFailed{Worker: worker, Err: errors.New("too late")})
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
		{}:  {"WARN slot 12:00:00.000Z: failed: exit code 3, ended by itself"},
	} {
		var stderr bytes.Buffer
		j := New(Options{To: &stderr, Level: zapcore.WarnLevel, Worker: worker})
		j.Began(workerlease.Options{Schedule: slots.Must(slots.Every(time.Minute)), Job: job}, job != nil)
		j.Ended(lease, status, nil, nil)
		if job != nil {
			j.Observe(event.TaskFailed{Worker: worker, Lease: event.Lease{Slot: lease.Slot, Token: lease.Token}, Err: failed{status}})
		}
		var got []string
		for line := range strings.Lines(written(j, &stderr)) {
			_, rest, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
			got = append(got, strings.Join(strings.Fields(rest), " "))
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("the log of exit code 3 (-want +got):\n%s", diff)
		}
	}
}

// The worker gives a slot up as soon as its last attempt is out of time. What comes first is why.
func TestASlotIsGivenUpAfterItsLastAttemptHasFailed(t *testing.T) {
	lease := workerlease.Lease{Slot: slots.Slot{Start: noon, End: noon.Add(time.Minute)}, Token: 7}
	for name, last := range map[string]event.Event{
		"failed":   event.TaskFailed{Worker: worker, Lease: event.Lease{Slot: lease.Slot, Token: 7, Attempt: 1}, Err: workerlease.ErrTimedOut, Cause: store.TimedOut, GivenUp: true},
		"returned": event.Returned{Worker: worker, Lease: event.Lease{Slot: lease.Slot, Token: 7, Attempt: 1}},
	} {
		var stderr bytes.Buffer
		j := New(Options{To: &stderr, Level: zapcore.WarnLevel, Worker: worker})
		j.Began(workerlease.Options{Schedule: slots.Must(slots.Every(time.Minute)), Job: &workerlease.Job{}}, true)
		j.Started(lease, 42, "a group")
		j.Observe(event.Exhausted{Worker: worker, Slot: lease.Slot, Attempts: 1})
		j.Ended(lease, guard.Status{Signal: 15, Reason: guard.Stopped}, workerlease.ErrTimedOut, nil)
		j.Observe(last)
		j.Observe(event.Exhausted{Worker: worker, Slot: slots.Slot{Start: noon.Add(time.Minute), End: noon.Add(2 * time.Minute)}, Attempts: 1})
		got := written(j, &stderr)
		failed, givenUp := strings.Index(got, "failed: timed out"), strings.Index(got, "slot 12:00:00.000Z: given up")
		if (failed >= 0) != (name == "failed") || givenUp < failed || givenUp < 0 || strings.Count(got, "given up") != 2 {
			t.Errorf("%s: the log is %q, want that it is given up, after why", name, got)
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
		j.Began(workerlease.Options{Schedule: slots.Must(slots.Every(time.Minute)), Job: &workerlease.Job{}}, true)
		_ = written(j, &stderr)
		stderr.Reset()
		j.NotStarted(lease, err)
		if errors.Is(err, fs.ErrNotExist) { // With the others the job goes on, or leasing ends.
			j.Observe(event.TaskFailed{Worker: worker, Lease: event.Lease{Slot: lease.Slot, Token: lease.Token}, Err: err})
		}
		if got := written(j, &stderr); strings.Count(got, "\n") != 1 || !strings.HasSuffix(got, want+"\n") {
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
			l.Observe(event.StoreFailed{Worker: worker, Operation: "now", Err: fmt.Errorf("now: %w", wordy{errors.New("no primary")})})
			l.Observe(event.StoreFailed{Worker: worker, Operation: "now", Err: errors.New("plain")})
			text := written(l, &stderr)
			if got := strings.Count(text, "topology"); (got == 1) != want || got > 1 || !strings.Contains(text, "no primary") {
				t.Errorf("JSON %v, level %v: %q, want the detail once: %v", json, level, text, want)
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
	for _, e := range entries(t, zapcore.WarnLevel) {
		switch {
		case e.Message == "task failed" && e.ExitCode != nil:
			failed = append(failed, fmt.Sprintf("%d: %s", *e.ExitCode, e.Error))
		case e.Message == "task failed":
			failed = append(failed, e.Error)
		case e.Message == "slot given up":
			failed = append(failed, fmt.Sprintf("attempts: %d", e.Attempts))
		}
	}
	want := []string{"3: exit code 3, ended by itself", errLate.Error(), workerlease.ErrTimedOut.Error(), "attempts: 3"}
	if diff := cmp.Diff(want, failed); diff != "" {
		t.Errorf("the log (-want +got):\n%s", diff)
	}
}

// Nobody asked for the end of a command that took too long.
func TestACommandIsStoppedOnRequestOnlyIfSomebodyAsked(t *testing.T) {
	lease := workerlease.Lease{Slot: slots.Slot{Start: noon, End: noon.Add(time.Minute)}, Token: 7}
	killed := guard.Status{Code: -1, Signal: 9, Reason: guard.Stopped}
	for _, c := range []struct {
		status guard.Status
		cause  error
		want   string
	}{
		{killed, workerlease.ErrTimedOut, "stopped: job timed out"},
		{killed, workerlease.ErrStalled, "stopped: no progress"},
		{killed, workerlease.ErrIneligible, "stopped: worker not eligible"},
		{killed, workerlease.ErrPaused, "stopped on request"},
		{killed, workerlease.ErrStopped, "stopped on request"},
		{killed, nil, "stopped on request"},
		{guard.Status{Code: 3, Reason: guard.Exited}, workerlease.ErrTimedOut, "ended by itself"},
	} {
		for format, want := range map[string]string{"text": ", " + c.want + "\n", "json": `"reason":"` + c.want + `"`} {
			var stderr bytes.Buffer
			j := New(Options{To: &stderr, Level: zapcore.DebugLevel, Worker: worker, JSON: format == "json"})
			j.Ended(lease, c.status, c.cause, nil)
			if got := written(j, &stderr); !strings.Contains(got, want) {
				t.Errorf("%v because of %v is logged as %s, want %s", c.status, c.cause, got, want)
			}
		}
	}
}
