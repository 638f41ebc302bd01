//go:build linux

package main

import (
	"fmt"
	"io"
	"slices"
	"strconv"
	"time"

	"github.com/slotlease/slotlease/internal/figures"
)

// rollingVerdict is what a rolling restart has shown.
type rollingVerdict struct {
	settings

	restarts int
	tenures  int
	turns    int
	shares   []share         // of each slot
	gaps     []time.Duration // sorted
	stalls   []time.Duration // sorted
	wrong    []string
}

// share is how much of a slot somebody worked in.
type share struct {
	slot
	part float64
}

// sharesOf are the shares of some slots. A command works from its first line to its
// last.
func sharesOf(turns []*turn, slots []slot) (found []share) {
	for _, s := range slots {
		worked := time.Duration(0)
		for _, t := range turns {
			worked += max(0, min(t.last, s.finish)-max(t.first, s.begin))
		}
		found = append(found, share{s, float64(worked) / float64(s.finish-s.begin)})
	}
	return found
}

// judge looks at what the commands wrote.
func (v *rollingVerdict) judge(lines []line, slots []slot, g *gauge) {
	turns, wrong := turnsOf(lines)
	v.wrong = append(v.wrong, wrong...)
	tokens := map[int64]bool{}
	for _, t := range turns {
		tokens[t.token] = true
	}
	v.turns, v.tenures = len(turns), len(tokens)
	gap := func(from, to time.Duration) {
		if to <= from {
			return
		}
		v.gaps = append(v.gaps, to-from)
		if stalled := g.stalled(from, to); to-from > rollingLimit()+stalled {
			v.wrong = append(v.wrong, fmt.Sprintf("nobody worked for %v, want within %v (the harness itself got no processor for %v)", to-from, rollingLimit(), stalled))
		}
	}
	for i := 1; i < len(turns); i++ {
		gap(turns[i-1].last, turns[i].first)
	}
	if n := len(turns); n > 0 && len(slots) > 0 {
		gap(slots[0].begin, turns[0].first)
		gap(turns[n-1].last, slots[len(slots)-1].finish)
	}
	slices.Sort(v.gaps)
	v.shares = sharesOf(turns, slots)
	for _, s := range v.shares {
		if s.part <= 0 {
			v.wrong = append(v.wrong, fmt.Sprintf("nobody worked in the slot %v to %v of the boot clock", s.begin, s.finish))
		}
	}
	if len(v.shares) == 0 || v.tenures < 2 {
		v.wrong = append(v.wrong, fmt.Sprintf("%d slots and %d tenures show nothing", len(v.shares), v.tenures))
	}
}

// parts are the shares alone, the least first.
func (v *rollingVerdict) parts() (found []float64) {
	for _, s := range v.shares {
		found = append(found, s.part)
	}
	slices.Sort(found)
	return found
}

func (v *rollingVerdict) print(to io.Writer) {
	p := newPaper(to)
	p.title(fmt.Sprintf("Rolling restarts: %d workers, slots of %v that go on, failover within %v", crew, rollingSlot, rollingFailover))
	p.row("  leasectl ended and started again", v.restarts)
	p.row("  slots", len(v.shares))
	p.row("  tenures", v.tenures)
	p.row("  commands", v.turns)
	if parts := v.parts(); len(parts) > 0 {
		p.row("  share of a slot in which somebody worked", "least "+percent(parts[0]), "median "+percent(parts[len(parts)/2]), "of all slots "+percent(mean(parts)))
	}
	p.row("  nobody worked", "p50 "+quantile(v.gaps, 50), "p99 "+quantile(v.gaps, 99), "longest "+quantile(v.gaps, 100), "want within "+rollingLimit().Round(ms).String())
	p.row("  the machine: woken late by", "p99 "+quantile(v.stalls, 99), "most "+quantile(v.stalls, 100))
	p.end(v.wrong, "In every slot somebody worked, and never did nobody for longer than the bound; never two at once, and tokens only grew.")
}

func percent(part float64) string { return fmt.Sprintf("%.1f %%", 100*part) }

func mean(parts []float64) (m float64) {
	for _, p := range parts {
		m += p / float64(len(parts))
	}
	return m
}

func (v *rollingVerdict) failed() bool { return len(v.wrong) > 0 }

func (v *rollingVerdict) proof() figures.Proof {
	least, parts := 0.0, v.parts()
	if len(parts) > 0 {
		least = parts[0]
	}
	lost := 0
	for _, s := range v.shares {
		if s.part <= 0 {
			lost++
		}
	}
	return figures.Proof{
		Name:    "rolling-" + v.store,
		Command: fmt.Sprintf("make rolling STORE=%s TRIES=%d", v.store, v.tries),
		Figures: []figures.Figure{
			{What: "workers ended in order and started again", Value: strconv.Itoa(v.restarts)},
			{What: "slots", Value: strconv.Itoa(len(v.shares))},
			{What: "slots in which nobody worked", Value: strconv.Itoa(lost)},
			{What: "least share of a slot in which somebody worked", Value: percent(least)},
			{What: "share of all slots in which somebody worked", Value: percent(mean(parts))},
			{What: "longest time in which nobody worked", Value: quantile(v.gaps, 100)},
			{What: "the bound of that", Value: rollingLimit().Round(ms).String()},
			{What: "FailoverWithin", Value: rollingFailover.String()},
			{What: "things that were wrong", Value: strconv.Itoa(len(v.wrong))},
		},
	}
}
