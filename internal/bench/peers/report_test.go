//go:build linux

package main

import (
	"testing"
	"time"
)

func TestAPercentileIsTheLeastThatSoManyDontExceed(t *testing.T) {
	var sorted []time.Duration
	for i := range 20 {
		sorted = append(sorted, time.Duration(i+1))
	}
	for p, want := range map[int]time.Duration{1: 1, 5: 1, 50: 10, 51: 11, 95: 19, 99: 20, 100: 20} {
		if got := percentile(sorted, p); got != want {
			t.Errorf("percentile %d of 1 to 20 is %d, want %d", p, got, want)
		}
	}
	if got := percentile(sorted[:1], 1); got != 1 {
		t.Errorf("percentile 1 of 1 is %d, want 1", got)
	}
}

func TestRunsAreCountedInThePeriodsTheyFallInto(t *testing.T) {
	const s = time.Second
	var r row
	r.setRuns([]time.Duration{-s, 0, 4 * s, 5 * s, 6 * s, 9 * s, 10 * s, 15 * s}, 5*s, 3)
	if r.Rounds != 3 || r.Runs != 2 || r.Fewest != 1 || r.Most != 3 {
		t.Errorf("%d periods with %v runs each, %d to %d; want 3 with 2, 1 to 3", r.Rounds, r.Runs, r.Fewest, r.Most)
	}
}
