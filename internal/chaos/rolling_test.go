//go:build linux

package main

import (
	"strings"
	"testing"
	"time"

	"github.com/slotlease/slotlease/store"
)

func TestARollingRestartMustLoseNoSlot(t *testing.T) {
	const s = time.Second
	for name, test := range map[string]struct {
		lines  []line
		stalls []stall
		wrong  string
	}{
		"somebody in each slot": {byTime(beats(0, 7*s, 10, 1), beats(9*s, 17*s, 20, 2)), nil, ""},
		"nobody in the second":  {byTime(beats(0, 6*s-10*ms, 10, 1), beats(12010*ms, 17*s, 20, 2)), nil, "nobody worked in the slot 6s to 12s"},
		"too long a gap":        {byTime(beats(0, 7*s, 10, 1), beats(11*s, 17*s, 20, 2)), nil, "nobody worked for 4s"},
		"nobody at the end":     {byTime(beats(0, 7*s, 10, 1), beats(9*s, 14*s, 20, 2)), nil, "nobody worked for 4s"},
		"nobody at the start":   {byTime(beats(4*s, 7*s, 10, 1), beats(9*s, 17*s, 20, 2)), nil, "nobody worked for 4s"},
		"one term":              {beats(0, 17*s, 10, 1), nil, "show nothing"},
		"nothing":               {nil, nil, "nobody worked in the slot 0s to 6s"},
		"too long a gap on a machine that was busy": {byTime(beats(0, 7*s, 10, 1), beats(11*s, 17*s, 20, 2)), []stall{{8 * s, 300 * ms}, {9 * s, 400 * ms}}, ""},
		"too long a gap, and busy at another time":  {byTime(beats(0, 7*s, 10, 1), beats(11*s, 17*s, 20, 2)), []stall{{6 * s, s}}, "nobody worked for 4s"},
	} {
		t.Run(name, func(t *testing.T) {
			v := &rollingVerdict{}
			v.judgeGaps(chronicleOf(test.lines).turns, slotsOf(rollingType, 0, 18*s, store.FromMillis(0)), &gauge{stalls: test.stalls})
			text := strings.Join(v.wrong, "\n")
			if v.failed() != (test.wrong != "") || !strings.Contains(text, test.wrong) {
				t.Errorf("judgeGaps() says %q, want %q", v.wrong, test.wrong)
			}
		})
	}
}

func TestAShareIsWhatOfASlotWasWorkedIn(t *testing.T) {
	const s = time.Second
	c := chronicleOf(byTime(beats(0, 3*s, 10, 1), beats(4500*ms, 9*s, 20, 2)))
	for i, got := range sharesOf(c.turns, slotsOf(rollingType, 0, 18*s, store.FromMillis(0))) {
		if want := []float64{0.75, 0.5, 0}[i]; got != want {
			t.Errorf("share %d = %v, want %v", i, got, want)
		}
	}
}
