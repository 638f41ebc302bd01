//go:build linux

package main

import (
	"strings"
	"testing"
	"time"

	"github.com/slotlease/slotlease/store"
)

func TestADeploymentMustLeaveALeader(t *testing.T) {
	const s = time.Second
	for name, test := range map[string]struct {
		lines  []line
		stalls []stall
		wrong  string
	}{
		"one after the other":   {byTime(beats(0, 7*s, 10, 1), beats(10*s, 18*s, 20, 2)), nil, ""},
		"one that leads on":     {beats(0, 18*s, 10, 1), nil, ""},
		"too long a gap":        {byTime(beats(0, 7*s, 10, 1), beats(12*s, 18*s, 20, 2)), nil, "nobody led for 5s"},
		"nobody at the end":     {byTime(beats(0, 7*s, 10, 1), beats(9*s, 13*s, 20, 2)), nil, "nobody led for 4.98"},
		"nobody at the start":   {beats(5*s, 18*s, 10, 1), nil, "nobody led for 5s"},
		"nobody at all":         {nil, nil, "nobody led for 17.98"},
		"two, and one is brief": {byTime(beats(0, 18*s, 10, 1), beats(9*s, 10*s, 20, 2)), nil, ""}, // Two at once are told by others.
		"a busy machine":        {byTime(beats(0, 7*s, 10, 1), beats(12*s, 18*s, 20, 2)), []stall{{8 * s, 300 * ms}, {9 * s, 400 * ms}}, ""},
		"busy at another time":  {byTime(beats(0, 7*s, 10, 1), beats(12*s, 18*s, 20, 2)), []stall{{6 * s, s}}, "nobody led for 5s"},
	} {
		t.Run(name, func(t *testing.T) {
			v := &rollingVerdict{}
			v.judgeLeader(workerType{}, chronicleOf(test.lines).turns, 0, 18*s, &gauge{stalls: test.stalls})
			told(t, v, test.wrong, strings.HasPrefix(name, "a busy"))
		})
	}
}

func TestADeploymentMustNeitherLoseNorRepeatARun(t *testing.T) {
	const s, boundary = time.Second, 40 * time.Second
	// event is what a command for the slot of a boundary writes, so long after that began.
	event := func(what string, slot, after time.Duration) line {
		return line{event: what, boot: slot + after, start: slot.Milliseconds(), role: asCommand}
	}
	for name, test := range map[string]struct {
		lines             []line
		stalls            []stall
		wrong             string
		lost, twice, late int
	}{
		"done":                       {lines: []line{event(began, boundary, 4900*ms), event(ended, boundary, 5500*ms)}},
		"failed, cut, and then done": {lines: []line{event(began, boundary, 0), event(failed, boundary, 100*ms), event(began, boundary, s), event(stopped, boundary, 2*s), event(began, boundary, 6*s), event(ended, boundary, 7*s)}},
		"never begun":                {wrong: "was not done", lost: 1},
		"never begun, and busy":      {stalls: []stall{{boundary + s, 400 * ms}}},
		"another slot":               {lines: []line{event(began, boundary-rollingSlot, 0), event(ended, boundary-rollingSlot, s)}, wrong: "was not done", lost: 1},
		"cut":                        {lines: []line{event(began, boundary, 0), event(stopped, boundary, s)}, wrong: "was not done", lost: 1},
		"late":                       {lines: []line{event(began, boundary, 5100*ms), event(ended, boundary, 6*s)}, wrong: "5.1s after its start", late: 1},
		"late on a busy machine":     {lines: []line{event(began, boundary, 5100*ms), event(ended, boundary, 6*s)}, stalls: []stall{{boundary + s, 400 * ms}}},
		"twice":                      {lines: []line{event(began, boundary, 0), event(ended, boundary, s), event(began, boundary, 2*s), event(ended, boundary, 3*s)}, wrong: "which was done", twice: 1},
		"the slot before, twice": {
			lines: []line{event(began, boundary-rollingSlot, 0), event(began, boundary-rollingSlot, s), event(ended, boundary-rollingSlot, 2*s), event(ended, boundary-rollingSlot, 2*s), event(began, boundary, 0), event(ended, boundary, s)},
			wrong: "done twice", twice: 1,
		},
	} {
		t.Run(name, func(t *testing.T) {
			v := &rollingVerdict{}
			v.judgeJob(workerType{}, test.lines, store.FromMillis(0), boundary, &gauge{stalls: test.stalls})
			told(t, v, test.wrong, strings.Contains(name, "busy"))
			if v.lost != test.lost || v.twice != test.twice || v.late != test.late {
				t.Errorf("lost, twice, late: %d, %d, %d, want %d, %d, %d", v.lost, v.twice, v.late, test.lost, test.twice, test.late)
			}
		})
	}
}

func told(t *testing.T, v *rollingVerdict, want string, busy bool) {
	t.Helper()
	if v.busy > 0 != busy {
		t.Errorf("too busy to tell: %d times, want that it is: %v", v.busy, busy)
	}
	if text := strings.Join(v.wrong, "\n"); v.failed() != (want != "") || !strings.Contains(text, want) {
		t.Errorf("it says %q, want %q", v.wrong, want)
	}
}

func TestARunThatItsSlotIsTooShortForMustEndWellAndTheOthersBeSkipped(t *testing.T) {
	of := overrunType(0)
	// event is what a command writes for the n-th slot, so long after that began. The boot clock never shows 0.
	event := func(what, instance string, n int, after time.Duration) line {
		slot := time.Duration(n) * overrunSlot
		return line{event: what, boot: slot + after + 1, instance: instance, start: slot.Milliseconds(), role: asCommand}
	}
	run := func(n int) []line { return []line{event(began, "a", n, 0), event(ended, "a", n, 10*time.Second)} }
	skipped := map[int64]string{8000: "skipped", 24000: "skipped"}
	for name, test := range map[string]struct {
		lines   []line
		shown   map[int64]string
		stalled time.Duration // at the start of the slots that nobody ran
		told    []history
		wrong   string
	}{
		"every other one":               {lines: byTime(run(0), run(2)), shown: skipped},
		"not shown":                     {lines: byTime(run(0), run(2)), shown: map[int64]string{8000: "skipped", 24000: "missed"}, wrong: `the slot 24000, and it is shown as "missed"`},
		"without a line":                {lines: byTime(run(0), run(2)), shown: map[int64]string{8000: "skipped"}, wrong: `the slot 24000, and it is shown as ""`},
		"the machine was busy":          {lines: byTime(run(0), run(2)), shown: map[int64]string{8000: "skipped"}, stalled: 600 * ms},
		"shown as skipped, and was run": {lines: byTime(run(0), run(2)), shown: map[int64]string{8000: "skipped", 16000: "skipped", 24000: "skipped"}, wrong: "the slot 16000 is shown as skipped, and was run"},
		"cut":                           {lines: byTime(run(0), []line{event(began, "a", 2, 0), event(stopped, "a", 2, 3900*ms)}), shown: skipped, wrong: "was cut at 19.9"},
		"cut when the store had failed": {
			lines: byTime(run(0), []line{event(began, "a", 2, 0), event(stopped, "a", 2, 3900*ms)}), shown: skipped,
			told: []history{{name: "a", lives: []life{{said: []said{{Message: "store failed", boot: 19 * time.Second}}}}}},
		},
		"cut at the end":                {lines: byTime(run(0), []line{event(began, "a", 2, 0), event(stopped, "a", 2, 16100*ms)}), shown: skipped},
		"cut, and of the older version": {lines: byTime(run(0), []line{event(began, "older", 2, 0), event(stopped, "older", 2, 3900*ms)}), shown: skipped},
		"once more when that has ended": {lines: append(byTime(run(0), run(2)), event(began, "b", 2, 11*time.Second)), shown: skipped, wrong: "which was done"},
	} {
		t.Run(name, func(t *testing.T) {
			v := &overrunVerdict{}
			g := &gauge{stalls: []stall{{25 * time.Second, test.stalled}}}
			v.judgeRuns(evidence{chronicle: chronicle{lines: test.lines}, histories: test.told}, test.shown, slotsOf(of, 0, 4*overrunSlot, store.FromMillis(0)), 4*overrunSlot, "older", g)
			if text := strings.Join(v.wrong, "\n"); v.failed() != (test.wrong != "") || !strings.Contains(text, test.wrong) {
				t.Errorf("it says %q, want %q", v.wrong, test.wrong)
			}
		})
	}
}
