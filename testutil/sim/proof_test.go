package sim_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/slotlease/slotlease/internal/figures"
	"github.com/slotlease/slotlease/testutil/sim"
	"github.com/slotlease/slotlease/workerlease"
)

// enough is the number of seeds in which each kind of fault strikes often.
const enough = 2000

// This is the main promise. Whatever goes wrong within the assumptions, at most one holder
// works at any moment of true time, tokens only grow, callbacks come in pairs, and the ledger
// obeys its rules.
func TestNoTwoHoldersWorkAtOnce(t *testing.T) {
	random := func(seed int64) sim.Options { return stretched(sim.Random(seed)) }
	sum, all := sharded(t, number(t), random, func(o sim.Options, r *sim.Result, sum *tally) {
		for _, l := range r.Leases {
			if l.End-l.Start > 24*time.Hour {
				sum.Long++
			}
		}
		r.Violations = append(r.Violations, unsound(o, r)...)
		longest, at, looked := idle(o, r)
		sum.Looked = looked.Hours()
		if longest > mostIdle(o) {
			r.Violations = append(r.Violations, fmt.Sprintf("seed %d: at %v, nobody had a slot for %v while the store was up, want %v at most", o.Seed, at, longest, mostIdle(o)))
		}
	})
	if !all {
		return
	}
	faults := 0
	for _, f := range sim.Within() {
		faults += sum.Struck[f]
		least := 0
		switch {
		case sum.Seeds >= enough:
			least = 1000
		case sum.Seeds >= 100:
			least = 1
		}
		if sum.Struck[f] < least {
			t.Errorf("%s struck %d times, want at least %d", f, sum.Struck[f], least)
		}
	}
	years := sum.Hours / 24 / 365.25
	t.Logf("%d seeds, %.1f simulated years of 8 workers, %d leases, %d of them longer than a day, %d violations; faults that struck:\n%vwhat had to happen:\n%v",
		sum.Seeds, years, sum.Leases, sum.Long, len(sum.Violations), sum.Struck, sum.Demands)
	demanded(t, sum)
	// Most of a few seeds may have long slots or an unlucky store; over many seeds there are about
	// 300 leases each.
	least := 10
	if sum.Seeds >= 100 {
		least = 200
	}
	if sum.Leases < sum.Seeds*least {
		t.Errorf("%d leases in %d runs, want at least %d in each, on average: too little went on", sum.Leases, sum.Seeds, least)
	}
	if sum.Seeds >= 100 && sum.Looked < sum.Hours/4 {
		t.Errorf("whether slots go to somebody was looked at for %.0f of %.0f hours only", sum.Looked, sum.Hours)
	}
	if sum.Seeds >= 100 && sum.Long == 0 {
		t.Error("nobody worked in a window of more than a day")
	}
	name := "simulation"
	if *hours > 6 {
		name = "simulation-long"
	}
	save(t, figures.Proof{
		Name: name, Command: fmt.Sprintf("make sim SEEDS=%d HOURS=%d", sum.Seeds, *hours),
		Figures: []figures.Figure{
			{What: "seeds", Value: fmt.Sprint(sum.Seeds)},
			{What: "simulated years of 8 workers", Value: fmt.Sprintf("%.1f", years)},
			{What: "slots", Value: slotLengths()},
			{What: "leases", Value: fmt.Sprint(sum.Leases)},
			{What: "faults of " + fmt.Sprint(len(sim.Within())) + " kinds", Value: fmt.Sprint(faults)},
			{What: "demands on who gets a slot", Value: fmt.Sprint(sum.Demands.All())},
			{What: "violations", Value: fmt.Sprint(len(sum.Violations))},
		},
	})
}

// demanded checks that demands on who gets slots applied often enough.
func demanded(t *testing.T, sum tally) {
	t.Helper()
	if sum.Seeds < 100 {
		return
	}
	d := sum.Demands
	for _, x := range []struct {
		what    string
		got, of int // at least one in this number of seeds
	}{
		{"claims at their turn", d.Turns / 50, 1},
		{"leases, none of the first slot", d.Entries / 50, 1},
		{"boundaries by which a slot was had", d.Boundaries / 50, 1},
		{"slots and their calls", d.Costs / 50, 1},
		{"outages after which one was had", d.Outages, 4},
		{"members that have joined", d.Joined, 4},
		{"claims beside a higher priority", d.Passed, 20},
		// Where a record claims a window of years, poison stands for a day, in which something
		// nearly always goes wrong. TestPoisonClearsWithinItsBound has quiet worlds for it.
		{"poisons that were cleared", d.Cleared, 400},
	} {
		if x.got < sum.Seeds/x.of {
			t.Errorf("%s were looked at %d times in %d runs: too seldom", x.what, x.got, sum.Seeds)
		}
	}
}

// slotLengths lists the lengths of the slots of most runs.
func slotLengths() string {
	seen := map[time.Duration]bool{}
	for seed := range int64(1000) {
		seen[stretched(sim.Random(seed)).Worker(0).LeaseInterval] = true
	}
	var out []string
	for _, d := range slices.Sorted(maps.Keys(seen)) {
		out = append(out, strings.Replace(d.String(), "m0s", "m", 1))
	}
	return strings.Join(out, ", ")
}

// stretched is a run of the asked number of hours. Slots are longer by the same factor, so a day
// has as many of them as six hours otherwise, and more time for appends that land late.
func stretched(o sim.Options) sim.Options { return stretchedTo(*hours, o) }

func stretchedTo(hours int, o sim.Options) sim.Options {
	return stretchedBy(time.Duration(hours)*time.Hour/time.Minute, o.Length/time.Minute, o)
}

// stretchedBy makes a run and its slots longer by a factor, which is a fraction.
func stretchedBy(by, usual time.Duration, o sim.Options) sim.Options {
	inner := o.Worker
	o.Length = o.Length * by / usual
	o.Worker = func(worker int) workerlease.Options {
		w := inner(worker)
		if w.LeaseInterval < 24*time.Hour {
			w.LeaseInterval = w.LeaseInterval * by / usual
			w.FailoverWithin = w.FailoverWithin * by / usual
		}
		return w
	}
	return o
}

func save(t *testing.T, p figures.Proof) {
	t.Helper()
	if err := figures.Save(p); err != nil {
		t.Error(err)
	}
}

// Beyond the assumptions, holders may overlap. Workers report that, and a resource that checks
// tokens accepts no stale write.
func TestBeyondTheAssumptionsOverlapsAreReportedAndFenced(t *testing.T) {
	skipUnderRace(t)
	sum, all := sharded(t, eighth(t), sim.RandomBeyond, func(o sim.Options, r *sim.Result, sum *tally) {
		for _, f := range sim.Beyond() {
			if r.Struck[f] == 0 {
				continue
			}
			for _, x := range r.Overlaps {
				sum.Overlaps[f]++
				switch {
				case x.Deaf:
					sum.Deaf[f]++
				case !x.Reported:
					sum.Unreported[f]++
					r.Violations = append(r.Violations, fmt.Sprintf("seed %d: at %v, an overlap went unreported: %s, %s", o.Seed, x.At, x.Older, x.Newer))
				}
			}
		}
	})
	if !all {
		return
	}
	overlaps, unreported, deaf := 0, 0, 0
	for _, f := range sim.Beyond() {
		n := sum.Overlaps[f]
		overlaps += n
		unreported += sum.Unreported[f]
		deaf += sum.Deaf[f]
		t.Logf("%-22s struck %6d times: %5d overlaps, %d of them unreported, and %d that no worker could have known of",
			f, sum.Struck[f], n, sum.Unreported[f], sum.Deaf[f])
		if sum.Seeds < 100 {
			continue
		}
		least := 10 * sum.Seeds
		if f == sim.Jump { // It strikes all workers at once.
			least = 4 * sum.Seeds
		}
		if sum.Struck[f] < least || n < sum.Seeds/5 {
			t.Errorf("%s struck %d times and made %d overlaps, want %d and %d: the world hardly breaks the assumptions", f, sum.Struck[f], n, least, sum.Seeds/5)
		}
		if sum.Deaf[f] > n/4 {
			t.Errorf("%s: of %d overlaps, nobody could know in %d: too little is left to be reported", f, n, sum.Deaf[f])
		}
	}
	t.Logf("%d writes refused as stale, %d stale ones accepted", sum.Refused, sum.Stale)
	if sum.Seeds >= 100 && sum.Refused == 0 {
		t.Error("the fenced resource refused nothing: stale writes don't arrive")
	}
	if unreported > 0 || sum.Stale > 0 {
		t.Errorf("%d overlaps went unreported, %d stale writes were accepted", unreported, sum.Stale)
	}
	save(t, figures.Proof{
		Name: "simulation-beyond", Command: "make sim SEEDS=2000 HOURS=6",
		Figures: []figures.Figure{
			{What: "seeds", Value: fmt.Sprint(sum.Seeds)},
			{What: "overlaps, as the assumptions were broken", Value: fmt.Sprint(overlaps)},
			{What: "unreported", Value: fmt.Sprint(unreported)},
			{What: "that no worker could have known of", Value: fmt.Sprint(deaf)},
			{What: "stale writes refused", Value: fmt.Sprint(sum.Refused)},
			{What: "accepted", Value: fmt.Sprint(sum.Stale)},
		},
	})
}

// longOrShort is a run in which leases are extended: of 90 minutes, or, every fifth, of
// six hours with the least retention, so that records are trimmed.
func longOrShort(seed int64) sim.Options {
	o := sim.RandomExtended(seed)
	if seed%5 != 4 {
		o.Length = 90 * time.Minute
		return o
	}
	inner := o.Worker
	o.Worker = func(worker int) workerlease.Options {
		w := inner(worker)
		w.Retention = 2 * time.Hour
		return w
	}
	return o
}

// The same as TestNoTwoHoldersWorkAtOnce, where leases are extended: to take over
// within a slot, or to go on from slot to slot.
func TestNoTwoHoldersWorkAtOnceWhereLeasesAreExtended(t *testing.T) {
	skipUnderRace(t)
	// A slot has many windows, so a run takes longer; of fewer seeds, few have slots that are extended.
	sum, all := sharded(t, max(eighth(t), 10), longOrShort, func(_ sim.Options, r *sim.Result, sum *tally) {
		for _, l := range r.Leases {
			sum.Extensions += l.Extensions
		}
		if sum.Extensions > 0 {
			sum.Trims, sum.LandedOnTrims = r.Struck[sim.Trim], r.Struck[sim.LandedOnTrim]
		}
	})
	if !all {
		return
	}
	t.Logf("%d seeds, %.0f hours of 8 workers, %d leases, extended %d times, %d violations; trimmed %d times, and %d appends landed on a trimmed key; what had to happen:\n%v",
		sum.Seeds, sum.Hours, sum.Leases, sum.Extensions, len(sum.Violations), sum.Trims, sum.LandedOnTrims, sum.Demands)
	save(t, figures.Proof{
		Name: "simulation-extended", Command: "make sim SEEDS=2000 HOURS=6",
		Figures: []figures.Figure{
			{What: "seeds", Value: fmt.Sprint(sum.Seeds)},
			{What: "simulated hours of 8 workers", Value: fmt.Sprintf("%.0f", sum.Hours)},
			{What: "leases", Value: fmt.Sprint(sum.Leases)},
			{What: "extensions", Value: fmt.Sprint(sum.Extensions)},
			{What: "violations", Value: fmt.Sprint(len(sum.Violations))},
		},
	})
	if sum.Leases < sum.Seeds*5 || sum.Extensions < sum.Leases {
		t.Errorf("%d leases and %d extensions in %d runs: too little went on", sum.Leases, sum.Extensions, sum.Seeds)
	}
	if d := sum.Demands; sum.Seeds >= 100 && (d.Turns < sum.Seeds || d.Boundaries < 4*sum.Seeds || d.Succeeded < sum.Seeds/100) {
		t.Errorf("%d claims, %d boundaries and %d deaths were looked at: too few", d.Turns, d.Boundaries, d.Succeeded)
	}
	if sum.Seeds >= 100 && (sum.Trims == 0 || sum.LandedOnTrims == 0) {
		t.Errorf("%d trims, and %d appends landed on a trimmed key, want some of both", sum.Trims, sum.LandedOnTrims)
	}
}
