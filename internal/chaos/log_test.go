//go:build linux

package main

import (
	"slices"
	"strings"
	"testing"
	"time"
)

// say is a line of a synthetic log: token and time decide.
func say(event string, at time.Duration, pid int, token int64) line {
	return line{
		event: event, boot: at, pid: pid, guard: pid - 1, token: token, start: 1000 * token, end: 1000*token + 1000,
		instance: "alpha-0", workerType: "alpha", role: asCommand,
	}
}

// beats are a command's lines from one time to another.
func beats(from, to time.Duration, pid int, token int64) (lines []line) {
	lines = append(lines, say(began, from, pid, token))
	for at := from + 10*ms; at <= to; at += 10 * ms {
		lines = append(lines, say(beat, at, pid, token))
	}
	return lines
}

func read(t *testing.T, lines ...line) *chronicle {
	t.Helper()
	var text []byte
	for _, l := range lines {
		text = l.append(text)
	}
	c, err := readLog(strings.NewReader(string(text)))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// byTime puts lines in the order of their time.
func byTime(lines ...[]line) []line {
	all := slices.Concat(lines...)
	slices.SortStableFunc(all, func(a, b line) int { return int(a.boot - b.boot) })
	return all
}

func TestALineIsReadAsItWasWritten(t *testing.T) {
	want := say(beat, 12345*time.Microsecond, 42, 7)
	want.role = asGrandchild
	got, err := parseLine(strings.TrimSuffix(string(want.append(nil)), "\n"))
	if err != nil || got != want {
		t.Errorf("parseLine(append(%+v)) = %+v, %v", want, got, err)
	}
	for _, text := range []string{"", "beat 1 2", "beat x 2 3 4 5 6 a b c", "beat 1 2 3 4 5 6 a b c d"} {
		if _, err := parseLine(text); err == nil {
			t.Errorf("parseLine(%q) succeeded", text)
		}
	}
}

func TestWorksInTurnDoNotOverlap(t *testing.T) {
	first, second := beats(0, 900*ms, 10, 1), beats(1000*ms, 1900*ms, 20, 2)
	other := beats(0, 2000*ms, 30, 3)
	for i := range other {
		other[i].workerType = "beta"
	}
	c := read(t, byTime(other, first, second)...)
	if len(c.overlaps) != 0 {
		t.Errorf("overlaps = %v, want none", c.overlaps)
	}
	works := c.works["alpha"]
	if len(works) != 2 || works[0].last != 900*ms || works[1].first != 1000*ms || works[0].commands != 1 {
		t.Errorf("works = %+v", works)
	}
}

func TestAnOverlapIsFound(t *testing.T) {
	grandchild := beats(500*ms, 1050*ms, 12, 1)
	for i := range grandchild {
		grandchild[i].role = asGrandchild
	}
	for name, test := range map[string]struct {
		lines       []line
		first, last time.Duration
		count       int
	}{
		"of beats": {
			byTime(beats(0, 1030*ms, 10, 1), beats(1005*ms, 1900*ms, 20, 2)), 1010 * ms, 1030 * ms, 3,
		},
		"of a grandchild whose command is gone": {
			byTime(beats(0, 900*ms, 10, 1), grandchild, beats(1005*ms, 1900*ms, 20, 2)), 1010 * ms, 1050 * ms, 5,
		},
		"of a line that was written late, although its time was taken before": {
			slices.Concat(beats(0, 900*ms, 10, 1), beats(1000*ms, 1100*ms, 20, 2), []line{say(beat, 950*ms, 10, 1)}), 950 * ms, 950 * ms, 1,
		},
		"of times, although the lines are in order": {
			slices.Concat(beats(0, 1000*ms, 10, 1), beats(1000*ms, 1100*ms, 20, 2)), 1000 * ms, 1000 * ms, 1,
		},
		"of one that was stopped through two others": {
			byTime(beats(0, 900*ms, 10, 1), beats(1000*ms, 1900*ms, 20, 2), beats(2000*ms, 2900*ms, 30, 3), []line{say(beat, 2500*ms, 10, 1)}), 2500 * ms, 2500 * ms, 1,
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := read(t, test.lines...)
			if len(c.overlaps) != 1 {
				t.Fatalf("overlaps = %v, want one", c.overlaps)
			}
			if o := c.overlaps[0]; o.older != 1 || o.first != test.first || o.last != test.last || o.lines != test.count {
				t.Errorf("overlap = %v, want of token 1, %d lines from %v to %v", o, test.count, test.first, test.last)
			}
		})
	}
}

func TestATornLogIsAnError(t *testing.T) {
	if _, err := readLog(strings.NewReader("beat 1 2 3\n")); err == nil {
		t.Error("readLog of half a line succeeded")
	}
}
