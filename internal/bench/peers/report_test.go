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
