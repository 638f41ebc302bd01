//go:build linux

package main

import (
	"fmt"
	"slices"
	"time"
)

// read judges a try by what it has left behind: the log of the commands, the ledger,
// and the logs of the holder and the standby.
func (t *takeover) read(e evidence) {
	v := &t.verdict
	holder, standby := e.histories[0], e.histories[1]
	if len(holder.lives) != 1 || len(standby.lives) != 1 {
		v.bad("a leasectl was started again")
		return
	}
	t.struck = holder.lives[0].struck
	t.phase = e.zero.Add(t.struck).Sub(e.zero.Add(t.struck).Truncate(takeoverSlot))
	v.judge(e, 0)
	for _, each := range e.turns {
		switch {
		case each.instance == holder.name && each.first <= t.struck:
			t.worked = true
		case each.instance == holder.name && each.first > t.struck+busy:
			v.bad("the holder began to work %v after its end", each.first-t.struck)
		case each.instance == standby.name && each.first <= t.struck:
			t.void = "the standby had won before"
		case each.instance == standby.name && t.first == 0:
			t.first = each.first
		}
	}
	switch {
	case t.void != "":
	case !t.worked:
		v.bad("the holder never worked")
	case t.first == 0:
		v.bad("nobody took over")
	}
	t.starts = startsOf(e.turns, holder, t.struck)
	for _, h := range e.histories {
		for _, s := range h.lives[0].said {
			if d, err := time.ParseDuration(s.Uncertainty); err == nil && s.boot > t.struck-takeoverSlot {
				t.uncertainty = max(t.uncertainty, d)
			}
		}
	}
}

// startsOf are the times, before a moment, from a worker's being granted the lease to
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

// bound is how long nobody may work after a death.
type bound struct {
	requests, start time.Duration // as they were measured
}

// String lists the parts of the bound, without a value for the uncertainty of store
// time.
func (b bound) String() string {
	return fmt.Sprintf("%v failover + %v turn + %v requests + %v start + 4 times the uncertainty of store time, and %v more towards the end of a slot",
		takeoverFailover, takeoverTurn().Round(ms), b.requests.Round(ms/10), b.start.Round(ms/10), takeoverLead)
}

// of is the bound for a try. A window that was extended just before the death ends
// within the failover; then comes the turn of the standby's priority. The uncertainty
// of store time counts four times: the holder extends earlier, the standby looks
// later, begins its window later still, and waits until it surely has begun. Where
// claims for the next slot are open, or open before anybody could take over, the rest
// of the slot is lost, or the first part of the next.
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
	case t.verdict.failed():
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
	verdict

	tries            []takeover
	bound            bound
	starts, requests []time.Duration // sorted
}

// judge measures the bound, and judges the tries so far by it.
func (v *takeoverVerdict) judge(g *gauge) {
	g.mu.Lock()
	v.requests = sorted(slices.Clone(g.requests))
	g.mu.Unlock()
	v.starts, v.wrong, v.notes = nil, nil, nil
	for _, t := range v.tries {
		v.starts = append(v.starts, t.starts...)
	}
	v.bound = bound{requests: usual(v.requests), start: usual(sorted(v.starts))}
	counted := map[kind]int{}
	for _, t := range v.tries {
		for _, text := range t.verdict.wrong {
			v.bad("try %d: %s", t.n, text)
		}
		for _, text := range t.verdict.notes {
			v.note("try %d: %s", t.n, text)
		}
		switch got := v.verdictOf(t); {
		case got == inBound:
			counted[t.how]++
		case got == overBound && !t.verdict.failed():
			v.bad("try %d: %s at %v of the slot: nobody worked for %v, want within %v (the harness itself got no processor for %v)",
				t.n, t.how, t.phase.Round(ms), t.took().Round(ms), v.bound.of(t).Round(ms), t.stalled.Round(ms))
		}
	}
	for _, how := range []kind{killLeasectl, endLeasectl} {
		if n := v.settings.tries - counted[how]; n > v.settings.tries/10 {
			v.bad("%s: only %d of %d tries are known to be within the bound", how, counted[how], v.settings.tries)
		}
	}
}

// usual is the 99th percentile of sorted times, but no longer than a busy machine can
// be blamed for.
func usual(sorted []time.Duration) time.Duration {
	if len(sorted) == 0 {
		return 0
	}
	return min(sorted[(len(sorted)-1)*99/100], busy)
}

func (v *takeoverVerdict) report() *report {
	r := v.newReport("Takeovers: slots of %v, failover within %v, lead %v, a standby of the next priority", takeoverSlot, takeoverFailover, takeoverLead)
	for _, the := range []struct {
		how                                         kind
		tries, within, bounds, median, p99, longest string
	}{
		{
			killLeasectl, "leasectl processes killed while they held a lease", "of them succeeded within the bound", "the bound, by the moment of the death",
			"from the death to the next one's first line, median", "p99 of that", "longest of that",
		},
		{
			endLeasectl, "leasectl processes ended in order", "of these succeeded within the bound", "their bound",
			"from the signal to the next one's first line, median", "p99 from the signal", "longest from the signal",
		},
	} {
		within, least := 0, time.Hour // what was left to the bound
		var took, bounds []time.Duration
		for _, t := range v.tries {
			got := v.verdictOf(t)
			if t.how != the.how || t.first == 0 || got == tooBusyToTell {
				continue
			}
			if got == inBound {
				within++
			}
			b := v.bound.of(t)
			took, bounds, least = append(took, t.took()), append(bounds, b), min(least, b-t.took())
		}
		sorted(took)
		sorted(bounds)
		r.figure(the.tries, len(took))
		r.figure(the.within, within)
		r.figure(the.bounds, quantile(bounds, 0)+" to "+quantile(bounds, 100), "least left to it "+least.Round(ms).String())
		if the.how == killLeasectl {
			r.figure("which is", v.bound)
		}
		r.figure(the.median, quantile(took, 50))
		r.figure(the.p99, quantile(took, 99))
		r.figure(the.longest, quantile(took, 100))
	}
	busyTries, uncertain := 0, time.Duration(0)
	for _, t := range v.tries {
		uncertain = max(uncertain, t.uncertainty)
		if v.verdictOf(t) == tooBusyToTell {
			busyTries++
		}
	}
	spread := func(what string, sorted []time.Duration) {
		r.row(what, "p50 "+quantile(sorted, 50)+", p99 "+quantile(sorted, 99)+", most "+quantile(sorted, 100))
	}
	r.row("uncertainty of store time", "at most "+uncertain.Round(ms/10).String())
	spread("two requests", v.requests)
	spread("starting a command", v.starts)
	r.figure("tries that the machine was too busy for", busyTries)
	return v.end(r, "Somebody worked again within the bound, never two at once, and tokens only grew.")
}
