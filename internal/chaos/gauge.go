//go:build linux

package main

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/slotlease/slotlease/store"
)

// stall is how late this process was woken at a time.
type stall struct{ at, late time.Duration }

// feel measures how busy the machine is: how much later than asked for this
// process is woken, again and again.
func feel(ctx context.Context, note func(stall)) {
	const nap = 20 * ms
	for {
		before := boottime()
		if !pause(ctx, nap) {
			return
		}
		now := boottime()
		note(stall{now, max(0, now-before-nap)})
	}
}

// gauge measures the machine while a scenario is played: how late this process is
// woken, and how long the store's requests take.
type gauge struct {
	mu       sync.Mutex
	stalls   []stall
	requests []time.Duration // a tail and an append
}

// feel measures until ctx ends how late this process is woken.
func (g *gauge) feel(ctx context.Context) {
	feel(ctx, func(s stall) {
		g.mu.Lock()
		defer g.mu.Unlock()
		g.stalls = append(g.stalls, s)
	})
}

// ask measures until ctx ends how long requests take.
func (g *gauge) ask(ctx context.Context, l store.Ledger) error {
	for n := int64(1); pause(ctx, 250*ms); n++ {
		before := boottime()
		_, _, err := l.Tail(ctx, gaugeType.name, 1)
		if err == nil {
			err = l.Append(ctx, probeRecord(n))
		}
		took := boottime() - before
		if err == nil {
			_, err = l.Trim(ctx, gaugeType.name, n)
		}
		switch {
		case ctx.Err() != nil:
			return nil
		case err != nil:
			return fmt.Errorf("measure requests: %w", err)
		}
		g.mu.Lock()
		g.requests = append(g.requests, took)
		g.mu.Unlock()
	}
	return nil
}

// stalled is how long this process got no processor in a stretch of time, where it
// was kept waiting for long: others were, too.
func (g *gauge) stalled(from, to time.Duration) (sum time.Duration) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, s := range g.stalls {
		if s.late > 20*ms && s.at >= from && s.at-s.late <= to {
			sum += s.late
		}
	}
	return sum
}

// lates are how late this process was woken, sorted.
func (g *gauge) lates() (found []time.Duration) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, s := range g.stalls {
		found = append(found, s.late)
	}
	slices.Sort(found)
	return found
}

// gaugeType is the worker type whose ledger is measured.
var gaugeType = workerType{name: "gauge", interval: time.Second, control: -1}

// probeRecord is a grant that nobody asks for.
func probeRecord(n int64) store.Record {
	start := store.FromMillis(1000 * n)
	return store.Record{
		WorkerType: gaugeType.name, Seq: n, Kind: store.KindGrant, InstanceID: "gauge", Claim: fmt.Sprintf("%032x", n), Token: 1000 * n,
		SlotStart: start, SlotEnd: start.Add(time.Second), WindowStart: start, WindowEnd: start.Add(time.Second), Schedule: "every 1s",
	}
}
