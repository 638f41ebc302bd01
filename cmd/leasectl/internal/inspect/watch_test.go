package inspect

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/slotlease/slotlease/cmd/leasectl/internal/advice"
	"github.com/slotlease/slotlease/cmd/leasectl/internal/storeuri"
	"github.com/slotlease/slotlease/cmd/leasectl/internal/testutil/golden"
	"github.com/slotlease/slotlease/internal/recordtest"
	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/workerlease/history"
)

func TestWatchPrintsOnlyAfterAChange(t *testing.T) {
	for _, output := range []string{"table", "json"} {
		var stdout, stderr bytes.Buffer
		screen := Screen{Writer: &stdout, Report: func(err error) {
			fmt.Fprintf(&stderr, "leasectl: %v\n", err)
		}}
		ctx, cancel := context.WithCancel(t.Context())
		tail := []store.Record{recordtest.Grant(1, 0, "a")}
		looks := 0
		err := glance(ctx, Options{Watch: true, JSON: output == "json", Interval: time.Millisecond}, screen, func() (snapshot, error) {
			looks++
			switch looks {
			case 3:
				return snapshot{}, advice.ForStore(storeuri.Target{}, errors.New("store is down"))
			case 4:
				return snapshot{}, advice.ForStore(storeuri.Target{}, errors.New("store is down"))
			case 5:
				tail = append([]store.Record{recordtest.Grant(2, 1, "b")}, tail...)
			case 7:
				cancel()
			}
			return snapshot{glimpse: glimpse{at: recordtest.Noon, store: "s"}, workerType: "export", rows: history.Read(tail, recordtest.Noon, nil)}, nil
		})
		if err != nil {
			t.Errorf("watch() = %v, want nil", err)
		}
		if got := stderr.String(); got != "leasectl: store is down\n" {
			t.Errorf("watch() reported an outage that lasted: %q", got)
		}
		golden.Compare(t, "watch."+output, stdout.String())
	}
}

func TestAnExtensionMattersOnlyWhereItShows(t *testing.T) {
	first := recordtest.Part(1, recordtest.Grant(1, 0, "a"), 0, 1)
	of := func(tail ...store.Record) snapshot { return snapshot{rows: history.Read(tail, recordtest.Noon, nil)} }
	before, after := of(first), of(recordtest.Part(2, first, 1, 2), first)
	if before.matters(false) != after.matters(false) || before.matters(true) == after.matters(true) {
		t.Errorf("an extension matters in the table: %q", after.matters(false))
	}
}

// The first frame clears the screen, and each is drawn over the last.
func TestEachFrameShowsTheWarningThatLasts(t *testing.T) {
	var stdout bytes.Buffer
	screen := Screen{Writer: &stdout, Terminal: true, Report: func(err error) { t.Errorf("beside the frames was reported %v", err) }}
	ctx, cancel := context.WithCancel(t.Context())
	looks := 0
	err := glance(ctx, Options{Watch: true, Interval: time.Millisecond}, screen, func() (snapshot, error) {
		s := snapshot{glimpse: glimpse{at: recordtest.Noon, store: "s"}, workerType: "export"}
		if looks++; looks < 3 {
			s.warning = "the clock is wrong\n\x1b[2J"
			s.note = "b doesn't answer\n\x1b[2J"
		}
		if looks == 4 {
			cancel()
		}
		return s, nil
	})
	frames := strings.Split(stdout.String(), "\x1b[H")[1:]
	if err != nil || len(frames) != 3 {
		t.Fatalf("watch() = %v, and drew %q, want 3 frames", err, frames)
	}
	for i, frame := range frames {
		if warns := strings.Contains(frame, "\n\x1b[Kwarning: the clock is wrong \ufffd[2J\n"); warns != (i < 2) {
			t.Errorf("frame %d is %q, which warns: %v", i, frame, warns)
		}
		if notes := strings.Contains(frame, "\n\x1b[Knote: b doesn't answer \ufffd[2J\n"); notes != (i < 2) {
			t.Errorf("frame %d is %q, which has a note: %v", i, frame, notes)
		}
	}
}

// Half a number looks like a whole one: a line that is cut must show it. One that just fits stays whole.
func TestAFrameShowsWhichLinesAreCut(t *testing.T) {
	const plain = "four\n12345\nab\n"
	const want = "\x1b[?7l\x1b[H\x1b[Kfour\n\x1b[K\x1b[31m12345\x1b[0m…\n\x1b[Kab\n\x1b[K\x1b[J\x1b[?7h"
	if got := frame("four\n\x1b[31m12345\x1b[0m\nab\n", plain, 4); got != want {
		t.Errorf("frame() = %q, want %q", got, want)
	}
	if got := frame(plain, plain, 0); strings.Contains(got, "…") {
		t.Errorf("of a terminal whose width isn't known: %q", got)
	}
}

func TestWatchTellsOfAWarningAsOfAChange(t *testing.T) {
	for output, want := range map[string]int{"table": 1, "json": 3} {
		var stdout bytes.Buffer
		var told []string
		screen := Screen{Writer: &stdout, Report: func(err error) { told = append(told, err.Error()) }}
		ctx, cancel := context.WithCancel(t.Context())
		looks := 0
		err := glance(ctx, Options{Watch: true, JSON: output == "json", Interval: time.Millisecond}, screen, func() (snapshot, error) {
			s := snapshot{glimpse: glimpse{at: recordtest.Noon}, rows: history.Read([]store.Record{recordtest.Grant(1, 0, "a")}, recordtest.Noon, nil)}
			switch looks++; looks {
			case 2, 3:
				s.warning = fmt.Sprintf("the clock is wrong by %d s", looks) // it drifts
			case 6:
				cancel()
			}
			return s, nil
		})
		if err != nil || len(told) != 1 || told[0] != "warning: the clock is wrong by 2 s" {
			t.Errorf("as %s: watch() = %v, and told %q, want the warning once", output, err, told)
		}
		if got := strings.Count(stdout.String(), map[string]string{"table": "SLOT START", "json": "{\"storeTime\""}[output]); got != want {
			t.Errorf("as %s: watch() printed %s, want it %d times", output, stdout.String(), want)
		}
		if output == "json" && strings.Count(stdout.String(), `"warning":"the clock is wrong by 2 s"`) != 1 {
			t.Errorf("watch() printed %s, want the warning", stdout.String())
		}
	}
}
