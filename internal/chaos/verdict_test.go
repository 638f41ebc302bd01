//go:build linux

package main

import (
	"strings"
	"testing"
	"time"

	"github.com/slotlease/slotlease/store"
)

func strikeOf(k kind, guard int, begin, end time.Duration) *strike {
	return &strike{Kind: k, Type: "alpha", Worker: "alpha-0", family: family{leasectl: guard - 1, guard: guard}, Begin: begin, End: end}
}

func TestAnOverlapIsExcusedOnlyByAGuardThatCouldNotBeHelped(t *testing.T) {
	// The guard of pid 10 is 9. It should have killed at 900 ms; the next began at
	// 1000 ms; 10 wrote on until 1500 ms.
	c := chronicleOf(byTime(beats(0, 1500*ms, 10, 1), beats(1000*ms, 1900*ms, 20, 2)))
	for name, test := range map[string]struct {
		strikes  []*strike
		expected bool
	}{
		"no fault":                               {nil, false},
		"guard and leasectl stopped":             {[]*strike{strikeOf(stopBoth, 9, 500*ms, 1500*ms)}, true},
		"all stopped, the command wakes first":   {[]*strike{strikeOf(stopTree, 9, 500*ms, 1490*ms)}, true},
		"leasectl killed above a stopped guard":  {[]*strike{strikeOf(killAbove, 9, 500*ms, 1500*ms)}, true},
		"still stopped":                          {[]*strike{strikeOf(stopBoth, 9, 500*ms, endless)}, true},
		"stopped twice in a row":                 {[]*strike{strikeOf(stopBoth, 9, 1200*ms, 1500*ms), strikeOf(stopBoth, 9, 500*ms, 1100*ms)}, true},
		"the guard alone, for which leasectl is": {[]*strike{strikeOf(stopGuard, 9, 500*ms, 1500*ms)}, false},
		"leasectl alone":                         {[]*strike{strikeOf(stopLeasectl, 9, 500*ms, 1500*ms)}, false},
		"another guard":                          {[]*strike{strikeOf(stopBoth, 19, 500*ms, 1500*ms)}, false},
		"too early":                              {[]*strike{strikeOf(stopBoth, 9, 100*ms, 700*ms)}, false},
		"only for a part of it":                  {[]*strike{strikeOf(stopBoth, 9, 500*ms, 990*ms)}, false},
		"begun when it overlapped already":       {[]*strike{strikeOf(stopBoth, 9, 1100*ms, 1500*ms)}, false},
	} {
		t.Run(name, func(t *testing.T) {
			expected, bugs := judgeOverlaps(c.overlaps, test.strikes)
			if got := len(expected) == 1 && len(bugs) == 0; got != test.expected || len(expected)+len(bugs) != 1 {
				t.Errorf("judgeOverlaps() = %v, %v, want expected: %v", expected, bugs, test.expected)
			}
		})
	}
}

func TestTokensMustGrowWithEachBegin(t *testing.T) {
	late := say(began, 2500*ms, 10, 1)
	for name, test := range map[string]struct {
		lines    []line
		strikes  []*strike
		problems []string
	}{
		"they do":         {lines: byTime(beats(0, 900*ms, 10, 1), beats(1000*ms, 1900*ms, 20, 2))},
		"twice one token": {lines: byTime(beats(0, 900*ms, 10, 1), beats(950*ms, 990*ms, 20, 1)), problems: []string{"began with the token of"}},
		"a lower one":     {lines: byTime(beats(1000*ms, 1900*ms, 20, 2), []line{late}), problems: []string{"when command of alpha-0 (pid 20"}},
		"a lower one, stopped before its first line": {
			lines:   byTime(beats(1000*ms, 1900*ms, 20, 2), []line{late}),
			strikes: []*strike{strikeOf(stopTree, 9, 500*ms, 2490*ms)},
		},
	} {
		t.Run(name, func(t *testing.T) {
			v, c := &chaosVerdict{}, chronicleOf(test.lines)
			v.judgeTokens(evidence{chronicle: c})
			_, bugs := judgeOverlaps(c.overlaps, test.strikes)
			got := v.wrong
			for _, o := range bugs {
				got = append(got, o.String())
			}
			if len(got) != len(test.problems) {
				t.Fatalf("judged: %q, want %q", got, test.problems)
			}
			for i, want := range test.problems {
				if !strings.Contains(got[i], want) {
					t.Errorf("judged: %q, want %q", got[i], want)
				}
			}
		})
	}
}

func TestAFenceThatWasNeverAskedProvesNothing(t *testing.T) {
	silent := byTime(beats(0, 9000*ms, 10, 1), beats(1000*ms, 1900*ms, 20, 2))
	strikes := []*strike{strikeOf(stopBoth, 9, 500*ms, 9000*ms)}
	for name, test := range map[string]struct {
		lines []line
		want  bool
	}{
		"never asked": {silent, true},
		"asked":       {append(silent, say(stale, 9001*ms, 10, 1)), false},
		"no overlap":  {beats(0, 900*ms, 10, 1), false},
	} {
		t.Run(name, func(t *testing.T) {
			c := chronicleOf(test.lines)
			expected, _ := judgeOverlaps(c.overlaps, strikes)
			if got := unfenced(expected, c.count(stale)); got != test.want {
				t.Errorf("unfenced() = %v, want %v", got, test.want)
			}
		})
	}
}

// grant is a record that grants the slot n, whose token is n: slots of a second.
func grant(seq, n int64, instance string) store.Record {
	start := store.FromMillis(1000 * n)
	return store.Record{
		WorkerType: "alpha", Seq: seq, Kind: store.KindGrant, InstanceID: instance, Claim: string(rune('a' + n)), Token: n,
		SlotStart: start, SlotEnd: start.Add(time.Second), WindowStart: start, WindowEnd: start.Add(time.Second), Worker: store.Worker{PID: 100},
	}
}

func TestWorkMustBeInsideItsWindow(t *testing.T) {
	zero := store.FromMillis(0)
	granted := windows([]store.Record{grant(1, 1, "alpha-0")})
	for name, test := range map[string]struct {
		lines   []line
		strikes []*strike
		bugs    int
	}{
		"inside":                        {beats(1000*ms, 1990*ms, 10, 1), nil, 0},
		"late, as on a busy machine":    {beats(1000*ms, 2101*ms, 10, 1), nil, 0},
		"early":                         {beats(900*ms, 1900*ms, 10, 1), nil, 1},
		"early, which nothing excuses":  {beats(900*ms, 1900*ms, 10, 1), []*strike{strikeOf(stopBoth, 9, 0, 3000*ms)}, 1},
		"late":                          {beats(1000*ms, 2300*ms, 10, 1), nil, 1},
		"late, with the guard stopped":  {beats(1000*ms, 2300*ms, 10, 1), []*strike{strikeOf(stopBoth, 9, 1500*ms, 2300*ms)}, 0},
		"late, the guard stopped later": {beats(1000*ms, 2300*ms, 10, 1), []*strike{strikeOf(stopBoth, 9, 2050*ms, 2300*ms)}, 1},
		"never granted":                 {beats(1000*ms, 1100*ms, 10, 2), nil, 1},
		"granted to another":            {by("alpha-1", beats(1000*ms, 1100*ms, 10, 1)), nil, 1},
	} {
		t.Run(name, func(t *testing.T) {
			_, _, bugs := judgeOutside(checkTurns(chronicleOf(test.lines).turns, granted, zero, ms), test.strikes)
			if len(bugs) != test.bugs {
				t.Errorf("judgeOutside() = %v, want %d", bugs, test.bugs)
			}
		})
	}
}

func TestARunThatShowsTooLittleFails(t *testing.T) {
	// A minute of workerTypes has 60, 30 and 20 slots.
	type extent struct{ faults, alpha, beta, gamma, unknown int }
	for name, test := range map[string]struct {
		extent
		wrong string
	}{
		"as usual":                       {extent{40, 54, 27, 18, 0}, ""},
		"one fault":                      {extent{1, 54, 27, 18, 0}, ""},
		"no fault":                       {extent{0, 60, 30, 20, 0}, "no fault struck"},
		"work in half of the slots":      {extent{40, 30, 15, 10, 0}, ""},
		"work in less":                   {extent{40, 30, 15, 9, 0}, "worked in 54 slots, of the 110"},
		"none of a worker type":          {extent{40, 60, 30, 0, 0}, "gamma: nobody worked"},
		"two slots missed without cause": {extent{40, 54, 27, 18, 2}, ""},
		"three of them":                  {extent{40, 54, 27, 18, 3}, "3 of 110 slots were missed"},
	} {
		t.Run(name, func(t *testing.T) {
			v := &chaosVerdict{verdict: verdict{settings: settings{duration: time.Minute}}, missed: map[string]int{unexplained: test.unknown, noWorker: 4}, struck: map[kind]int{killLeasectl: test.faults}}
			for i, worked := range []int{test.alpha, test.beta, test.gamma} {
				v.types = append(v.types, typeVerdict{workerType: workerTypes[i], slots: int(time.Minute / workerTypes[i].interval), worked: worked})
			}
			v.judgeExtent()
			text := strings.Join(v.wrong, "\n")
			if v.failed() != (test.wrong != "") || !strings.Contains(text, test.wrong) || len(v.wrong) > 1 {
				t.Errorf("judgeExtent() says %q, want %q", v.wrong, test.wrong)
			}
		})
	}
}
