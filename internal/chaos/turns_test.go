//go:build linux

package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// by changes who writes.
func by(instance string, lines []line) []line {
	for i := range lines {
		lines[i].instance = instance
	}
	return lines
}

func TestCommandsTakeTurns(t *testing.T) {
	first, second := beats(0, 900*ms, 10, 1), beats(1000*ms, 1900*ms, 20, 2)
	for name, test := range map[string]struct {
		lines []line
		turns int
		wrong string
	}{
		"one after the other": {byTime(first, second), 2, ""},
		"started again under one token": {
			byTime(first, beats(1000*ms, 1900*ms, 20, 1)), 2, "",
		},
		"started again under one token, by another": {
			byTime(first, by("alpha-1", beats(1000*ms, 1900*ms, 20, 1))), 2, "began after",
		},
		"a lower token": {
			byTime(beats(0, 900*ms, 10, 3), second), 2, "began after",
		},
		"at once under one token": {
			byTime(beats(0, 1050*ms, 10, 1), beats(1001*ms, 1900*ms, 20, 1)), 2, "wrote on",
		},
		"at once": {
			byTime(beats(0, 1050*ms, 10, 1), beats(1001*ms, 1900*ms, 20, 2)), 2, "wrote on",
		},
		"at once by the clock, in order in the file": {
			slices.Concat(beats(0, 1050*ms, 10, 1), beats(1000*ms, 1900*ms, 20, 2)), 2, "had not ended",
		},
		"late in the file, in order by the clock": {
			slices.Concat(first, second, []line{say(beat, 950*ms, 10, 1)}), 2, "wrote on",
		},
		"the harness between them": {
			byTime(first, []line{{event: marked, boot: 950 * ms, pid: 1, token: 9, workerType: "alpha", role: asHarness}}, second), 2, "",
		},
	} {
		t.Run(name, func(t *testing.T) {
			turns, wrong := turnsOf(test.lines)
			text := strings.Join(wrong, "\n")
			if len(turns) != test.turns || (test.wrong == "") != (text == "") || !strings.Contains(text, test.wrong) {
				t.Errorf("turnsOf() = %v, %q, want %d turns, and %q", turns, wrong, test.turns, test.wrong)
			}
		})
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
}
