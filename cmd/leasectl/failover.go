package main

import (
	"time"

	"github.com/spf13/pflag"
)

// leastFailover is the least --failover-within: eight times the least --margin.
const (
	leastMargin   = 10 * time.Millisecond
	leastFailover = 8 * leastMargin
)

// checkFailover notes what is wrong with --failover-within, and with a --lead next
// to it.
func (a *app) checkFailover(failover, lead time.Duration, flags *pflag.FlagSet, shortest time.Duration) {
	if text, ok := given(flags, "failover-within"); ok && shortest > 0 && failover > shortest/2 {
		a.bad("--failover-within %q: must be at most half of the shortest slot (%v)", text, shortest/2)
	}
	if text, ok := given(flags, "lead"); ok && failover > 0 && lead > failover/2 {
		a.bad("--lead %q: must be at most half of --failover-within (%v)", text, failover/2)
	}
}

// checkExtension notes what is wrong with --failover-within, --continuous and
// --no-failback, and with others next to them.
func (a *app) checkExtension(f *runFlags, flags *pflag.FlagSet, shortest time.Duration) {
	a.checkFailover(f.failover, f.lead, flags, shortest)
	if most := early(f.failover); most > 0 {
		if text, ok := given(flags, "margin"); ok && f.margin > most/2 {
			a.bad("--margin %q: must be at most an eighth of --failover-within, and 2m30s (%v), for a lease to be extended in time", text, most/2)
		}
		if text, ok := given(flags, "stop-grace"); ok && f.stopGrace > most {
			a.bad("--stop-grace %q: must be at most a quarter of --failover-within, and 5m (%v): no more is ever sure to be left", text, most)
		}
	}
	if _, ok := given(flags, "failover-within"); ok && f.group != "" {
		a.bad("--failover-within and --group: give only one of them; a group's lease can't be extended")
	}
	if f.continuous && f.group != "" {
		a.bad("--continuous and --group: give only one of them; a group's lease can't be extended")
	}
	if f.noFailback && !f.continuous {
		a.bad("--no-failback: goes with --continuous only")
	}
}
