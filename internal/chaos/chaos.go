//go:build linux

package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// chaosRun is a run of the first scenario: faults of all sorts.
type chaosRun struct {
	*harness

	teams   []*team
	workers []*worker // of all teams
	control *worker   // is never killed
	fence   *fence

	mu      sync.Mutex
	strikes []*strike
	crowds  atomic.Int64 // strikes at a whole worker type; each of its workers counts
	vain    atomic.Int64 // strikes that were planned, but found no target

	start, end           time.Duration // of the faults, by the boot clock
	fresh, before, after usage         // of a leasectl that was just started; of the control worker, before and after the faults
}

// runChaos strikes, and judges the outcome.
func runChaos(ctx context.Context, h *harness) (*report, error) {
	c := &chaosRun{harness: h}
	var err error
	if c.fence, err = openFence(ctx, h.fencePath()); err != nil {
		return nil, err
	}
	defer c.fence.close()
	if c.fresh, err = c.sacrifice(ctx); err != nil {
		return nil, err
	}
	var v *chaosVerdict
	err = h.together(ctx, typesOn(h.store), func(teams []*team, workers []*worker) (err error) {
		c.teams, c.workers, c.control = teams, workers, workers[slices.IndexFunc(workers, (*worker).control)]
		if c.before, err = usageOf(c.control.pid()); err != nil {
			return err
		}
		if err := c.strikeAll(ctx); err != nil {
			return err
		}
		if err := c.settle(ctx); err != nil {
			return err
		}
		v, err = c.judge(ctx)
		return err
	})
	if err != nil {
		return nil, err
	}
	return v.report(), c.writeStrikes()
}

// sacrifice measures a leasectl of its own worker type, which then dies of it.
func (c *chaosRun) sacrifice(ctx context.Context) (u usage, err error) {
	of := workerType{name: "sacrifice", interval: time.Hour, tieBreak: "sticky", control: -1}
	l, err := c.openNew(ctx, of) // A worker doesn't start on a ledger that isn't initialised.
	if err != nil {
		return u, err
	}
	if err := l.Close(ctx); err != nil {
		return u, err
	}
	w := c.newWorker(of, 0)
	if err := c.harness.start(ctx, w); err != nil {
		return u, err
	}
	if !pause(ctx, time.Second) {
		return u, ctx.Err()
	}
	if u, err = usageOf(w.pid()); err != nil {
		return u, err
	}
	u[goroutines], err = w.dump()
	return u, err
}

// strikeAll strikes by a plan that counts from a boundary of all schedules.
func (c *chaosRun) strikeAll(ctx context.Context) error {
	c.start = nextPhase(cycle*slower(c.store), c.teams[0].zero, boottime(), 0)
	if !pause(ctx, c.start-boottime()) {
		return ctx.Err()
	}
	faults := plan(c.seed, c.store, c.duration, typesOn(c.store))
	fmt.Printf("%d workers are ready; %d faults are planned\n", len(c.workers), len(faults))
	limited, cancel := context.WithTimeout(ctx, c.duration)
	defer cancel()
	var watch sync.WaitGroup
	watch.Go(func() { c.progress(limited) })
	watch.Go(func() {
		for pause(limited, 15*time.Second) {
			for _, t := range c.teams {
				t.archive.shorten(limited, t.ledger, t.of.name)
			}
		}
	})
	c.carryOut(limited, faults, c.start)
	pause(limited, c.duration)
	watch.Wait()
	c.end = boottime()
	return ctx.Err()
}

// progress shows that the run is alive.
func (c *chaosRun) progress(ctx context.Context) {
	for pause(ctx, time.Minute) {
		c.mu.Lock()
		n := len(c.strikes)
		c.mu.Unlock()
		fmt.Printf("%v of %v: %d faults struck\n", (boottime() - c.start).Round(time.Second), c.duration, n)
	}
}

// settle checks that every worker type works again when the faults are over, measures
// the control worker, and ends all in order.
func (c *chaosRun) settle(ctx context.Context) (err error) {
	if err := c.await(ctx, "all workers are ready again", func() bool { return ready(c.workers) }); err != nil {
		c.bad("%v", err)
	}
	// Two commands of each: the first may be of a lease that was held before.
	since := map[*team]map[int64]bool{}
	for _, t := range c.teams {
		since[t] = map[int64]bool{}
		if _, err := t.log.next(); err != nil {
			return err
		}
	}
	worksAgain := func() bool {
		return !slices.ContainsFunc(c.teams, func(t *team) bool {
			t.wrote(func(l line) bool { since[t][l.token] = true; return false })()
			return len(since[t]) < 2
		})
	}
	if err := c.await(ctx, "every worker type works again", worksAgain); err != nil {
		c.bad("%v", err)
	}
	if err := c.await(ctx, "the control worker has no command", func() bool { return familyOf(c.control.pid()).guard == 0 }); err != nil {
		return err
	}
	if c.after, err = usageOf(c.control.pid()); err != nil {
		return err
	}
	if c.after[goroutines], err = c.control.dump(); err != nil {
		return err
	}
	c.leave(ctx, c.workers)
	return nil
}

// writeStrikes keeps the faults beside the other logs.
func (c *chaosRun) writeStrikes() error {
	var text strings.Builder
	for _, k := range c.strikes {
		_, _ = fmt.Fprintf(&text, "%+v\n", *k)
	}
	return os.WriteFile(filepath.Join(c.dir, "faults.log"), []byte(text.String()), 0o600)
}
