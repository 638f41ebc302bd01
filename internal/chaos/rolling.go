//go:build linux

package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
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
	name: "rolling", interval: rollingSlot, tieBreak: "sticky", priorities: [crew]int{0, 0, 1}, control: -1, part: plainPart,
	flags: []string{"--continuous", "--failover-within", rollingFailover.String(), "--join-mid-slot"},
}

// rollingLimit is how long nobody may work: the bound of a takeover at the end of a
// slot, with a second for the uncertainty of store time, requests, and the start of
// a command.
func rollingLimit() time.Duration {
	return rollingFailover + rollingLead + 3*priority.NewTurns(rollingLead, 0, rollingLead).Step + time.Second
}

// playRolling restarts all workers as often as asked.
func playRolling(ctx context.Context, t *theatre) (report, error) {
	v := &rollingVerdict{settings: t.settings}
	ledger, err := t.openNew(ctx, rollingType)
	if err != nil {
		return nil, err
	}
	defer func() { _ = ledger.Close(context.WithoutCancel(ctx)) }()
	zero, err := offsetOf(ctx, ledger)
	if err != nil {
		return nil, err
	}
	limited, cancel := context.WithCancel(ctx)
	var watch sync.WaitGroup
	g := &gauge{}
	watch.Go(func() { g.feel(limited) })
	defer watch.Wait()
	defer cancel()
	r := &roller{theatre: t, log: &follower{path: t.workLog(rollingType)}, random: rand.New(rand.NewPCG(t.seed, 0x726f6c6c))}
	defer r.log.close()
	if err := r.open(ctx); err != nil {
		return nil, err
	}
	// What counts are whole slots.
	begun := nextPhase(rollingSlot, zero, boottime(), 0)
	if !pause(ctx, begun-boottime()) {
		return nil, ctx.Err()
	}
	for round := range t.tries {
		for _, w := range r.workers {
			if err := r.restart(ctx, w); err != nil {
				return nil, err
			}
			v.restarts++
		}
		if (round+1)%10 == 0 {
			fmt.Printf("%d of %d rounds\n", round+1, t.tries)
		}
	}
	over := nextPhase(rollingSlot, zero, boottime(), 0)
	if !pause(ctx, over-boottime()) {
		return nil, ctx.Err()
	}
	t.leave(ctx, r.workers)
	cancel()
	watch.Wait()
	v.stalls = g.lates()
	for _, w := range r.workers {
		for _, l := range w.lives {
			if !l.cleanly {
				t.bad("leasectl of %s (pid %d), told to end: %s", w.name(), l.pid, l.result)
			}
		}
	}
	records, err := recordsOf(ctx, ledger, rollingType)
	if err != nil {
		return nil, err
	}
	lines, err := linesOf(t.workLog(rollingType))
	if err != nil {
		return nil, err
	}
	v.wrong = slices.Concat(t.wrong, checkLedger(records), checkWindows(lines, records, zero))
	v.judge(lines, slotsOf(rollingType, begun, over+ms, zero), g)
	return v, nil
}

// roller is a rolling restart while it is under way.
type roller struct {
	*theatre

	workers []*worker
	log     *follower
	random  *rand.Rand
}

// open starts the workers.
func (r *roller) open(ctx context.Context) error {
	for i := range crew {
		w := r.hire(rollingType, i, r.workLog(rollingType))
		r.workers = append(r.workers, w)
		if err := w.start(); err != nil {
			return err
		}
		if err := r.await(ctx, w.name()+" is ready", w.ready); err != nil {
			return err
		}
	}
	return r.await(ctx, "somebody works", r.worksSince(0))
}

// restart ends a worker and starts it again, and is content when it is ready and
// somebody works: it, or another.
func (r *roller) restart(ctx context.Context, w *worker) error {
	gone := w.end(unix.SIGTERM, endLeasectl)
	if gone == nil {
		return fmt.Errorf("%s is gone", w.name())
	}
	select {
	case <-gone:
	case <-time.After(patience):
		return fmt.Errorf("%s doesn't end within %v", w.name(), patience)
	}
	ended := boottime()
	if err := w.start(); err != nil {
		return err
	}
	if err := r.await(ctx, w.name()+" is ready again", w.ready); err != nil {
		return err
	}
	if err := r.await(ctx, "somebody works again", r.worksSince(ended)); err != nil {
		return err
	}
	if !pause(ctx, time.Duration(r.random.Int64N(int64(rollingSlot/3)))) {
		return ctx.Err()
	}
	return nil
}

// worksSince reports whether a line was written after a time that was not read before.
func (r *roller) worksSince(at time.Duration) func() bool {
	return func() bool {
		lines, err := r.log.next()
		if err != nil {
			r.bad("%v", err)
		}
		return slices.ContainsFunc(lines, func(l line) bool { return l.boot > at })
	}
}
