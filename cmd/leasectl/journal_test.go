package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"go.uber.org/zap/zapcore"

	"github.com/slotlease/slotlease/cmd/leasectl/internal/guard"
	"github.com/slotlease/slotlease/slots"
	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/workerlease"
)

// happen lets everything happen that a journal is told of.
func happen(j journal) {
	slot := slots.Slot{Start: noon, End: noon.Add(5 * time.Minute)}
	lease := workerlease.Lease{WorkerType: "t", InstanceID: "a", Slot: slot, Start: slot.Start, Expiry: slot.End, Token: 7}
	down := errors.New("dial mongodb://user:c4n4ry@host: refused")
	j.began(workerlease.Status{WorkerType: "t", InstanceID: "a"}, workerlease.Options{Group: "north", Schedule: slots.Must(slots.Every(5 * time.Minute))})
	sample := workerlease.ClockSample{StoreTime: noon, Uncertainty: time.Millisecond, RoundTrip: 2 * time.Millisecond}
	for _, e := range []workerlease.Event{
		sample, sample,
		workerlease.Claimed{Slot: slot, Seq: 1, Token: 7, Early: 9 * time.Second},
		workerlease.Claimed{Slot: slot, Joined: true},
		workerlease.Lost{Slot: slot, Holder: store.Record{InstanceID: "b", Priority: 1}, Inversion: true},
		workerlease.Allocated{Lease: lease},
	} {
		j.Observe(e)
	}
	j.started(lease, 42)
	j.notStarted(lease, guard.ErrTooLate)
	j.ended(lease, guard.Status{Code: 0, Reason: guard.Exited}, nil)
	j.ended(lease, guard.Status{Code: 3, Reason: guard.Exited}, nil)
	j.ended(lease, guard.Status{Code: -1, Signal: 9, Reason: guard.DeadlineReached}, guard.ErrSurvivors)
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
		workerlease.Overrun{Slot: slot},
		workerlease.ClockJump{Server: "s2", StoreTime: noon, Uncertainty: time.Second},
		workerlease.Trimmed{Count: 5},
		workerlease.Poison{Seq: 4, Err: errors.New("no token")},
		workerlease.PoisonReset{Seq: 5, Reason: "supersedes seq 4"},
		workerlease.ScheduleMismatch{Ours: "every 5m", Theirs: "every 10m", Holder: "b"},
		workerlease.Released{Slot: slot, At: noon.Add(time.Minute)},
	} {
		j.Observe(e)
	}
	j.stopping(nil)
	j.stopped()
}

// journalOf is what a journal writes of all that can happen.
func journalOf(format string, level zapcore.Level) string {
	var stderr bytes.Buffer
	happen((&app{stderr: &stderr, secrets: secrets{"c4n4ry"}}).newJournal(format, level))
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
	golden(t, "journal.text", b.String())
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
