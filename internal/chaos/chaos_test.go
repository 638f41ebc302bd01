//go:build linux

package main

import (
	"path/filepath"
	"slices"
	"testing"
	"time"
)

func TestTheFenceRefusesStaleTokens(t *testing.T) {
	path := filepath.Join(t.TempDir(), "fence.db")
	var handles [2]*fence
	for i := range handles {
		var err error
		if handles[i], err = openFence(t.Context(), path); err != nil {
			t.Fatal(err)
		}
		defer handles[i].close()
	}
	for i, step := range []struct {
		token int64
		want  bool
	}{{10, true}, {10, true}, {12, true}, {11, false}, {13, true}, {12, false}} {
		if got, err := handles[i%2].write(t.Context(), "a", step.token); err != nil || got != step.want {
			t.Errorf("write %d with token %d = %v, %v, want %v", i, step.token, got, err, step.want)
		}
	}
	tokens, err := handles[0].writes(t.Context(), "a")
	if wrong := staleWrites("a", tokens); err != nil || len(tokens) != 4 || len(wrong) > 0 {
		t.Errorf("writes() = %v, %v, want the four that were accepted; staleWrites() = %q", tokens, err, wrong)
	}
}

func TestAStaleWriteThatWasAcceptedIsFound(t *testing.T) {
	if wrong := staleWrites("a", []int64{1, 1, 3, 2, 3}); len(wrong) != 1 {
		t.Errorf("staleWrites() = %q, want one", wrong)
	}
}

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
