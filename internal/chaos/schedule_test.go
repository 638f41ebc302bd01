//go:build linux

package main

import (
	"slices"
	"testing"
	"time"
)

func TestThePlanIsThatOfItsSeed(t *testing.T) {
	for _, store := range []string{"sqlite", "mongo", "postgres"} {
		first := plan(7, store, 10*time.Minute, workerTypes)
		if !slices.Equal(first, plan(7, store, 10*time.Minute, workerTypes)) {
			t.Errorf("plan(7, %s) differs from itself", store)
		}
		if slices.Equal(first, plan(8, store, 10*time.Minute, workerTypes)) {
			t.Errorf("plan(7, %s) is that of seed 8", store)
		}
	}
}

func TestALongPlanHasEveryFaultAndEnoughOfThem(t *testing.T) {
	for store, more := range storeFaults {
		const duration = 30 * time.Minute
		faults := plan(1, store, duration, workerTypes)
		if len(faults) < 800 {
			t.Errorf("plan(1, %s, %v) has %d faults, want at least 800", store, duration, len(faults))
		}
		counts := map[kind]int{}
		for _, f := range faults {
			counts[f.Kind]++
			if f.At < 0 || f.At > duration || f.For < 0 || f.For > 20*time.Second {
				t.Fatalf("plan(1, %s) has %+v", store, f)
			}
		}
		for _, c := range slices.Concat(processFaults, more) {
			if counts[c.kind] == 0 {
				t.Errorf("plan(1, %s) never has %q", store, c.kind)
			}
		}
	}
}

func TestTheIntervalsShareACycle(t *testing.T) {
	for _, w := range workerTypes {
		if cycle%w.interval != 0 {
			t.Errorf("%v is no multiple of %v", cycle, w.interval)
		}
	}
}
