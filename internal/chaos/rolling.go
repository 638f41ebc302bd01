//go:build linux

package main

import (
	"context"
	"fmt"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"github.com/slotlease/slotlease/priority"
)

// The scenario of a rolling restart: all workers of a type, whose leases go on from
// slot to slot, are ended in order and started again, one after the other.
const (
	rollingSlot     = 6 * time.Second
	rollingFailover = 1500 * ms
	rollingLead     = rollingFailover / 2
)

var rollingType = workerType{
	name: "rolling", interval: rollingSlot, tieBreak: "sticky", priorities: [perType]int{0, 0, 1}, control: -1, behavior: plainCommand,
	flags: []string{"--continuous", "--failover-within", rollingFailover.String(), "--join-mid-slot"},
}

// rollingLimit is how long nobody may work: the bound of a takeover at the end of a
// slot, with a second for the uncertainty of store time, requests, and the start of
// a command.
func rollingLimit() time.Duration {
	return rollingFailover + rollingLead + 3*priority.NewTurns(rollingLead, 0, rollingLead).Step + time.Second
}

// runRolling restarts all workers as often as asked.
func runRolling(ctx context.Context, h *harness) (*report, error) {
	t, err := h.newTeam(ctx, rollingType, perType)
	if err != nil {
		return nil, err
	}
	defer t.close(ctx)
	if err := h.start(ctx, t.workers...); err != nil {
		return nil, err
	}
	if err := h.await(ctx, "a command works", t.worksSince(0)); err != nil {
		return nil, err
	}
	// Whole slots count.
	begun, err := t.nextSlot(ctx)
	if err != nil {
		return nil, err
	}
	for round := range h.tries {
		for _, w := range t.workers {
			if err := t.restart(ctx, w); err != nil {
				return nil, err
			}
		}
		if (round+1)%10 == 0 {
			fmt.Printf("%d of %d rounds\n", round+1, h.tries)
		}
	}
	over, err := t.nextSlot(ctx)
	if err != nil {
		return nil, err
	}
	h.leave(ctx, t.workers)
	e, err := t.evidence(ctx)
	if err != nil {
		return nil, err
	}
	v := &rollingVerdict{verdict: h.verdict(), restarts: h.tries * perType}
	v.judge(e)
	v.judgeLives(e.histories, 0)
	v.judgeGaps(e.turns, slotsOf(t.of, begun, over+ms, t.zero), &h.gauge)
	return v.report(), nil
}

// restart ends a worker and starts it again, and waits until it is ready and a command
// works: its own, or another's.
func (t *team) restart(ctx context.Context, w *worker) error {
	gone := w.end(unix.SIGTERM, endLeasectl)
	if gone == nil {
		return fmt.Errorf("%s is gone", w.name())
	}
	if err := w.wait(gone); err != nil {
		return err
	}
	ended := boottime()
	if err := t.start(ctx, w); err != nil {
		return err
	}
	if err := t.await(ctx, "a command works again", t.worksSince(ended)); err != nil {
		return err
	}
	if !pause(ctx, time.Duration(t.random.Int64N(int64(rollingSlot/3)))) {
		return ctx.Err()
	}
	return nil
}

// worksSince reports whether a line was written after a time that was not read before.
func (t *team) worksSince(at time.Duration) func() bool {
	return t.wrote(func(l line) bool { return l.boot > at })
}

// rollingVerdict is what a rolling restart has shown.
type rollingVerdict struct {
	verdict

	restarts, terms, turns int
	shares                 []float64       // of each slot in which somebody worked
	gaps                   []time.Duration // sorted
}

// sharesOf are the shares of some slots in which commands worked: each from its first
// line to its last.
func sharesOf(turns []*turn, slots []slot) (found []float64) {
	for _, s := range slots {
		worked := time.Duration(0)
		for _, t := range turns {
			worked += max(0, min(t.last, s.finish)-max(t.first, s.begin))
		}
		found = append(found, float64(worked)/float64(s.finish-s.begin))
	}
	return found
}

// judgeGaps demands work in every slot, and no gap over the limit.
func (v *rollingVerdict) judgeGaps(turns []*turn, slots []slot, g *gauge) {
	tokens := map[int64]bool{}
	for _, t := range turns {
		tokens[t.token] = true
	}
	v.turns, v.terms = len(turns), len(tokens)
	gap := func(from, to time.Duration) {
		if to <= from {
			return
		}
		v.gaps = append(v.gaps, to-from)
		if stalled := g.stalled(from, to); to-from > rollingLimit()+stalled {
			v.bad("nobody worked for %v, want within %v (the harness itself got no processor for %v)", to-from, rollingLimit(), stalled)
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
	for i, s := range slots {
		if v.shares[i] <= 0 {
			v.bad("nobody worked in the slot %v to %v of the boot clock", s.begin, s.finish)
		}
	}
	if len(slots) == 0 || v.terms < 2 {
		v.bad("%d slots and %d terms show nothing", len(slots), v.terms)
	}
}

func (v *rollingVerdict) report() *report {
	r := v.newReport("Rolling restarts: %d workers, slots of %v that go on, failover within %v", perType, rollingSlot, rollingFailover)
	lost, sum := 0, 0.0
	for _, part := range v.shares {
		sum += part / float64(len(v.shares))
		if part <= 0 {
			lost++
		}
	}
	percent := func(part float64) string { return fmt.Sprintf("%.1f %%", 100*part) }
	r.figure("workers ended in order and started again", v.restarts)
	r.row("terms", v.terms)
	r.row("commands", v.turns)
	r.figure("slots", len(v.shares))
	r.figure("slots in which nobody worked", lost)
	r.figure("least share of a slot in which somebody worked", percent(slices.Min(append(v.shares, 1))))
	r.figure("share of all slots in which somebody worked", percent(sum))
	r.figure("longest time in which nobody worked", quantile(v.gaps, 100), "p50 "+quantile(v.gaps, 50), "p99 "+quantile(v.gaps, 99))
	r.figure("the bound of that", rollingLimit().Round(ms))
	r.figure("FailoverWithin", rollingFailover)
	return v.end(r, "In every slot somebody worked, and never did nobody for longer than the bound; never two at once, and tokens only grew.")
}
