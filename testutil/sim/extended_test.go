package sim_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/slotlease/slotlease/internal/figures"
	"github.com/slotlease/slotlease/testutil/sim"
	"github.com/slotlease/slotlease/workerlease"
)

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
	// A slot has many windows, so a run takes longer.
	sum, all := sharded(t, eighth(t), longOrShort, func(_ sim.Options, r *sim.Result, sum *tally) {
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
