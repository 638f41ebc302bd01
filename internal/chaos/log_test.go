//go:build linux

package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/memory"
	"github.com/slotlease/slotlease/workerlease/verify"
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

// by changes who writes.
func by(instance string, lines []line) []line {
	for i := range lines {
		lines[i].instance = instance
	}
	return lines
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
	text := string(want.append(nil))
	if got, err := parseLine(text); err != nil || got != want || len(text) != 128 {
		t.Errorf("parseLine(append(%+v)) = %+v, %v, of %d bytes, want 128", want, got, err, len(text))
	}
	for _, text := range []string{"", "beat 1 2", "beat x 2 3 4 5 6 a b c", "beat 1 2 3 4 5 6 a b c d"} {
		if _, err := parseLine(text); err == nil {
			t.Errorf("parseLine(%q) succeeded", text)
		}
	}
}

func TestOverlapsAreFound(t *testing.T) {
	first, second := beats(0, 900*ms, 10, 1), beats(1000*ms, 1900*ms, 20, 2)
	grandchild := beats(500*ms, 1050*ms, 12, 1)
	for i := range grandchild {
		grandchild[i].role = asGrandchild
	}
	for name, test := range map[string]struct {
		lines       []line
		turns       int
		first, last time.Duration // of an overlap with token 1, if count is above 0
		count       int
	}{
		"none of one after the other": {byTime(first, second), 2, 0, 0, 0},
		"none of a command that is started again under its token": {
			byTime(first, beats(1000*ms, 1900*ms, 20, 1)), 2, 0, 0, 0,
		},
		"none with the harness between them": {
			byTime(first, []line{{event: marked, boot: 950 * ms, pid: 1, token: 9, workerType: "alpha", role: asHarness}}, second), 2, 0, 0, 0,
		},
		"of beats": {
			byTime(beats(0, 1030*ms, 10, 1), beats(1005*ms, 1900*ms, 20, 2)), 2, 1010 * ms, 1030 * ms, 3,
		},
		"of beats under one token": {
			byTime(beats(0, 1050*ms, 10, 1), beats(1001*ms, 1900*ms, 20, 1)), 2, 1010 * ms, 1050 * ms, 5,
		},
		"of a grandchild whose command is gone": {
			byTime(first, grandchild, beats(1005*ms, 1900*ms, 20, 2)), 3, 1010 * ms, 1050 * ms, 5,
		},
		"of a line that was written late, although its time was taken before": {
			slices.Concat(first, second, []line{say(beat, 950*ms, 10, 1)}), 2, 950 * ms, 950 * ms, 1,
		},
		"of times, although the lines are in order": {
			slices.Concat(beats(0, 1000*ms, 10, 1), second), 2, 1000 * ms, 1000 * ms, 1,
		},
		"of one that was stopped through two others": {
			byTime(first, second, beats(2000*ms, 2900*ms, 30, 3), []line{say(beat, 2500*ms, 10, 1)}), 3, 2500 * ms, 2500 * ms, 1,
		},
		"of one that begins with a lower token": {
			byTime(beats(0, 900*ms, 10, 3), beats(1000*ms, 1900*ms, 20, 1)), 2, 1000 * ms, 1900 * ms, 91,
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := chronicleOf(test.lines)
			if len(c.turns) != test.turns || len(c.overlaps) != min(test.count, 1) {
				t.Fatalf("turns = %v, overlaps = %v, want %d turns, and %d lines that overlap", c.turns, c.overlaps, test.turns, test.count)
			}
			for _, o := range c.overlaps {
				if o.token != 1 || o.first != test.first || o.last != test.last || o.lines != test.count {
					t.Errorf("overlap = %v, want of token 1, %d lines from %v to %v", o, test.count, test.first, test.last)
				}
			}
		})
	}
	if c := chronicleOf(byTime(first, second)); c.turns[0].first != 0 || c.turns[0].last != 900*ms || c.turns[1].first != 1000*ms {
		t.Errorf("turns = %v, want from 0 to 900 ms, and from 1 s on", c.turns)
	}
}

func TestAFollowerTakesWholeLines(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	f := &follower{path: path}
	defer f.close()
	var text []byte
	for _, l := range beats(0, 100*ms, 10, 1) {
		text = l.append(text)
	}
	next := func(want int) {
		t.Helper()
		if lines, err := f.next(); err != nil || len(lines) != want {
			t.Fatalf("next() = %v, %v, want %d lines", lines, err, want)
		}
	}
	next(0) // nobody has written yet
	file, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	half := len(text) - 5
	for _, part := range []struct {
		text  []byte
		lines int
	}{{text[:half], 10}, {nil, 0}, {text[half:], 1}} {
		if _, err := file.Write(part.text); err != nil {
			t.Fatal(err)
		}
		next(part.lines)
	}
	if lines, err := linesOf(path); err != nil || len(lines) != 11 {
		t.Errorf("linesOf() = %v, %v, want 11 lines", lines, err)
	}
	if _, err := file.WriteString("beat 1 2 3\n"); err != nil {
		t.Fatal(err)
	}
	if lines, err := f.next(); err == nil {
		t.Errorf("next() over half a line = %v, want an error", lines)
	}
}

func TestTheArchiveHasWhatItTookOut(t *testing.T) {
	l := memory.New(memory.Options{})
	a := &archive{}
	const n = 200
	for i := range int64(n) {
		if err := l.Append(t.Context(), grant(i+1, i+1, "alpha-0")); err != nil {
			t.Fatal(err)
		}
		if i%20 == 0 {
			a.shorten(t.Context(), l.Handle(), second.name)
		}
	}
	left, _, err := l.Tail(t.Context(), second.name, n)
	if most := int(rested/time.Second) + 25; err != nil || len(left) > most || len(left) < int(rested/time.Second) {
		t.Errorf("Tail() = %d records, %v, want those of the last %v, and at most %d", len(left), err, rested, most)
	}
	all := a.all(left)
	if len(all) != n || all[0].Seq != 1 || all[n-1].Seq != n || len(a.wrong) > 0 {
		t.Errorf("all() = %d records, want all %d; wrong: %q", len(all), n, a.wrong)
	}
	if wrong := verify.Strict(all); len(wrong) > 0 {
		t.Errorf("verify.Strict(all()) = %q", wrong)
	}

	other := all[3]
	other.Claim = "another"
	a.take([]store.Record{other})
	if len(a.wrong) != 1 || !strings.Contains(a.wrong[0], "record 4 was") {
		t.Errorf("a key that holds another record now: wrong = %q", a.wrong)
	}
}
