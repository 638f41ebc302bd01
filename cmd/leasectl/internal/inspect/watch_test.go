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
	"github.com/slotlease/slotlease/cmd/leasectl/internal/exit"
	"github.com/slotlease/slotlease/cmd/leasectl/internal/storeuri"
	"github.com/slotlease/slotlease/cmd/leasectl/internal/testutil/golden"
	"github.com/slotlease/slotlease/internal/recordtest"
	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/workerlease/history"
)

func TestWatchPrintsOnlyWhatChanged(t *testing.T) {
	for _, output := range []string{"table", "json"} {
		var stdout, stderr bytes.Buffer
		screen := Screen{Writer: &stdout, Report: func(err error) {
			e, _ := errors.AsType[*exit.Error](err)
			fmt.Fprintf(&stderr, "leasectl: %v\ntry: %s\n", err, e.Try)
		}}
		ctx, cancel := context.WithCancel(t.Context())
		tail := []store.Record{recordtest.Grant(1, 0, "a")}
		looks := 0
		err := watchSlots(ctx, Options{Output: output, Interval: time.Millisecond}, screen, func() (snapshot, error) {
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
			return snapshot{at: recordtest.Noon, store: "s", workerType: "export", rows: history.Read(tail, recordtest.Noon, nil)}, nil
		})
		if err != nil {
			t.Errorf("watch() = %v, want nil", err)
		}
		if got := stderr.String(); got != "leasectl: store is down\ntry: check that the server runs and that host and port are right\n" {
			t.Errorf("watch() reported an outage that lasted: %q", got)
		}
		golden.Compare(t, "watch."+output, stdout.String())
	}
}

func TestWatchPrintsAnExtensionOnlyWhereItShows(t *testing.T) {
	first := recordtest.Part(1, recordtest.Grant(1, 0, "a"), 0, 1)
	tail := []store.Record{first}
	for output, want := range map[string]bool{"table": false, "json": true} {
		var stdout bytes.Buffer
		shown := printed{rows: map[string]string{}}
		print := func(tail []store.Record) string {
			stdout.Reset()
			s := snapshot{at: recordtest.Noon, rows: history.Read(tail, recordtest.Noon, nil)}
			if err := shown.print(s, Options{Output: output}, Screen{Writer: &stdout}); err != nil {
				t.Fatal(err)
			}
			return stdout.String()
		}
		if got := print(tail); got == "" {
			t.Errorf("as %s: nothing was printed at first", output)
		}
		if got := print(append([]store.Record{recordtest.Part(2, first, 1, 2)}, tail...)); (got != "") != want {
			t.Errorf("as %s: an extension printed %q", output, got)
		}
	}
}

// The first frame clears the screen, and each is drawn over the last.
func TestEachFrameShowsTheWarningThatLasts(t *testing.T) {
	var stdout bytes.Buffer
	screen := Screen{Writer: &stdout, Terminal: true, Report: func(err error) { t.Errorf("beside the frames was reported %v", err) }}
	ctx, cancel := context.WithCancel(t.Context())
	looks := 0
	err := watchSlots(ctx, Options{Output: Table, Interval: time.Millisecond}, screen, func() (snapshot, error) {
		s := snapshot{at: recordtest.Noon, store: "s", workerType: "export"}
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
		if warns := strings.Contains(frame, "\x1b[K\nwarning: the clock is wrong \ufffd[2J\x1b[K\n"); warns != (i < 2) {
			t.Errorf("frame %d is %q, which warns: %v", i, frame, warns)
		}
		if notes := strings.Contains(frame, "\nnote: b doesn't answer \ufffd[2J\x1b[K\n"); notes != (i < 2) {
			t.Errorf("frame %d is %q, which has a note: %v", i, frame, notes)
		}
	}
}

func TestWatchTellsOfAWarningAsOfAChange(t *testing.T) {
	for output, want := range map[string]int{"table": 1, "json": 3} {
		var stdout bytes.Buffer
		var told []string
		screen := Screen{Writer: &stdout, Report: func(err error) { told = append(told, err.Error()) }}
		ctx, cancel := context.WithCancel(t.Context())
		looks := 0
		err := watchSlots(ctx, Options{Output: output, Interval: time.Millisecond}, screen, func() (snapshot, error) {
			s := snapshot{at: recordtest.Noon, rows: history.Read([]store.Record{recordtest.Grant(1, 0, "a")}, recordtest.Noon, nil)}
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
		if output == JSON && strings.Count(stdout.String(), `"warning":"the clock is wrong by 2 s"`) != 1 {
			t.Errorf("watch() printed %s, want the warning", stdout.String())
		}
	}
}

func TestWatchFailsIfTheFirstLookDoes(t *testing.T) {
	want := errors.New("no")
	err := watchSlots(t.Context(), Options{Interval: time.Hour}, Screen{Writer: &bytes.Buffer{}}, func() (snapshot, error) { return snapshot{}, want })
	if !errors.Is(err, want) {
		t.Errorf("watch() = %v, want %v", err, want)
	}
}
