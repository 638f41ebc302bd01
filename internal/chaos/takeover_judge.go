//go:build linux

package main

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/slotlease/slotlease/store"
)

// read takes in what a try has left behind: the log of the commands, the ledger, and
// the logs of the holder and the standby.
func (t *takeover) read(lines []line, records []store.Record, zero time.Time, of [2]history) {
	bad := func(format string, args ...any) { t.wrong = append(t.wrong, fmt.Sprintf(format, args...)) }
	holder, standby := of[0], of[1]
	if len(holder.lives) != 1 || len(standby.lives) != 1 {
		bad("a leasectl was started again")
		return
	}
	t.struck = holder.lives[0].struck
	t.phase = zero.Add(t.struck).Sub(zero.Add(t.struck).Truncate(takeoverSlot))
	if t.how == endLeasectl && !holder.lives[0].cleanly {
		bad("the holder, told to end: %s", holder.lives[0].result)
	}
	turns, wrong := turnsOf(lines)
	t.wrong = append(t.wrong, wrong...)
	t.wrong = append(t.wrong, checkLedger(records)...)
	t.wrong = append(t.wrong, checkWindows(lines, records, zero)...)
	for _, each := range turns {
		switch {
		case each.instance == holder.name && each.first <= t.struck:
			t.last = max(t.last, each.last)
		case each.instance == holder.name && each.first > t.struck+busy:
			bad("the holder began to work %v after its end", each.first-t.struck)
		case each.instance == standby.name && each.first <= t.struck:
			t.void = "the standby had won before"
		case each.instance == standby.name && t.first == 0:
			t.first = each.first
		}
	}
	switch {
	case t.void != "":
	case t.last == 0:
		bad("the holder never worked")
	case t.first == 0:
		bad("nobody took over")
	}
	t.starts = startsOf(turns, holder, t.struck)
	for _, h := range of {
		for _, s := range h.lives[0].said {
			if d, err := time.ParseDuration(s.Uncertainty); err == nil && s.boot > t.struck-takeoverSlot {
				t.uncertainty = max(t.uncertainty, d)
			}
		}
	}
}

// startsOf are how long it took, before a time, from when the worker had the lease to
// the first line of its command.
func startsOf(turns []*turn, h history, before time.Duration) (found []time.Duration) {
	for _, l := range h.lives {
		for _, s := range l.said {
			if s.Message != "lease allocated" {
				continue
			}
			i := slices.IndexFunc(turns, func(t *turn) bool { return t.instance == h.name && t.token == s.Token })
			if i >= 0 && turns[i].first < before {
				found = append(found, turns[i].first-s.boot)
			}
		}
	}
	return found
}

// checkWindows finds what was written outside of the window that was granted for it,
// by more than a guard may be late on a machine that is busy.
func checkWindows(lines []line, records []store.Record, zero time.Time) (wrong []string) {
	const tolerance = 5 * ms
	for _, works := range chronicleOf(lines).works {
		_, _, bugs := judgeOutside(checkWorks(works, windows(records), zero, tolerance), nil)
		for _, o := range bugs {
			wrong = append(wrong, fmt.Sprintf("outside its window: %v", o))
		}
	}
	return wrong
}

// bound is how long nobody may work after a death.
type bound struct {
	requests, start time.Duration // as they were measured
}

// String tells what the bound is made of, but for the uncertainty of store time.
func (b bound) String() string {
	return fmt.Sprintf("%v failover + %v turn + %v requests + %v start + 4 times the uncertainty of store time, and %v more towards the end of a slot",
		takeoverFailover, takeoverTurn().Round(ms), b.requests.Round(ms/10), b.start.Round(ms/10), takeoverLead)
}

// of is the bound for a try. What is left of a window that was extended just before
// the death is within the failover; then comes the turn of the standby's priority. The
// uncertainty of store time counts four times: the holder extends as much earlier,
// the standby looks as much later, begins its window as much later still, and waits as
// long until it surely has begun. Where claims for the next slot are open, or are
// before somebody could take over, the rest of the slot is lost, or the first part of
// the next.
func (b bound) of(t takeover) time.Duration {
	late := takeoverTurn() + 4*t.uncertainty
	d := takeoverFailover + late + b.requests + b.start
	if t.phase+takeoverFailover+late >= takeoverSlot-takeoverLead {
		d += takeoverLead
	}
	return d
}

// What a try has shown.
const (
	inBound       = "within the bound"
	overBound     = "over the bound"
	tooBusyToTell = "the machine was too busy to tell"
)

// verdictOf judges a try. The machine is to blame for a time over the bound if this
// process itself got no processor for as long.
func (v *takeoverVerdict) verdictOf(t takeover) string {
	switch over := t.took() - v.bound.of(t); {
	case t.void != "":
		return tooBusyToTell
	case len(t.wrong) > 0:
		return overBound
	case over <= 0:
		return inBound
	case t.stalled > 60*ms && t.stalled >= over:
		return tooBusyToTell
	}
	return overBound
}

// takeoverVerdict is what all tries have shown.
type takeoverVerdict struct {
	settings

	tries    []takeover
	bound    bound
	starts   []time.Duration // sorted, as are the others
	requests []time.Duration
	stalls   []time.Duration
	wrong    []string
}

// judge takes in what was measured, and looks what is wrong with the tries so far.
func (v *takeoverVerdict) judge(g *gauge) {
	v.stalls, v.starts = g.lates(), nil
	g.mu.Lock()
	v.requests = slices.Clone(g.requests)
	g.mu.Unlock()
	for _, t := range v.tries {
		v.starts = append(v.starts, t.starts...)
	}
	slices.Sort(v.starts)
	slices.Sort(v.requests)
	v.bound = bound{requests: usual(v.requests), start: usual(v.starts)}
	v.wrong = nil
	counted := map[kind]int{}
	for _, t := range v.tries {
		for _, text := range t.wrong {
			v.wrong = append(v.wrong, fmt.Sprintf("try %d: %s", t.n, text))
		}
		switch v.verdictOf(t) {
		case overBound:
			if len(t.wrong) == 0 {
				v.wrong = append(v.wrong, fmt.Sprintf("try %d: %s at %v of the slot: nobody worked for %v, want within %v (the harness itself got no processor for %v)",
					t.n, t.how, t.phase.Round(ms), t.took().Round(ms), v.bound.of(t).Round(ms), t.stalled.Round(ms)))
			}
		case inBound:
			counted[t.how]++
		}
	}
	for _, how := range []kind{killLeasectl, endLeasectl} {
		if n := v.settings.tries - counted[how]; n > v.settings.tries/10 {
			v.wrong = append(v.wrong, fmt.Sprintf("%s: only %d of %d tries can be told to be within the bound", how, counted[how], v.settings.tries))
		}
	}
}

// usual is how long 99 of 100 sorted times are at most, but no longer than a machine
// that is busy can be blamed for.
func usual(sorted []time.Duration) time.Duration {
	if len(sorted) == 0 {
		return 0
	}
	return min(sorted[(len(sorted)-1)*99/100], busy)
}

// of are the tries that tell of one kind of death, the shortest first.
func (v *takeoverVerdict) of(how kind) (found []takeover) {
	for _, t := range v.tries {
		if t.how == how && t.first > 0 && v.verdictOf(t) != tooBusyToTell {
			found = append(found, t)
		}
	}
	slices.SortFunc(found, func(a, b takeover) int { return cmp.Compare(a.took(), b.took()) })
	return found
}
