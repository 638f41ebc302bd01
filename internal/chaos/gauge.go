//go:build linux

package main

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/slotlease/slotlease/internal/recordtest"
	"github.com/slotlease/slotlease/store"
)

// stall is how late this process was woken at a time.
type stall struct{ at, late time.Duration }

// gauge measures the machine during a run: how late this process is woken, and how
// long the store's requests take.
type gauge struct {
	mu       sync.Mutex
	stalls   []stall
	requests []time.Duration // a tail and an append
}

// feel measures until ctx ends how much later than asked for this process is woken.
func (g *gauge) feel(ctx context.Context) {
	const nap = 20 * ms
	for {
		before := boottime()
		if !pause(ctx, nap) {
			return
		}
		now := boottime()
		g.mu.Lock()
		g.stalls = append(g.stalls, stall{now, max(0, now-before-nap)})
		g.mu.Unlock()
	}
}

// all are the stalls so far.
func (g *gauge) all() []stall {
	g.mu.Lock()
	defer g.mu.Unlock()
	return slices.Clone(g.stalls)
}

// ask measures until ctx ends how long requests take.
func (g *gauge) ask(ctx context.Context, l store.Ledger) error {
	for n := int64(1); pause(ctx, 250*ms); n++ {
		before := boottime()
		_, _, err := l.Tail(ctx, gaugeType.name, 1)
		if err == nil {
			err = l.Append(ctx, recordtest.Grant(n, int(n), "gauge"))
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

// stalled is how long this process got no processor in a stretch of time, counting
// long waits only: other processes had to wait, too.
func (g *gauge) stalled(from, to time.Duration) (sum time.Duration) {
	for _, s := range g.all() {
		if s.late > 20*ms && s.at >= from && s.at-s.late <= to {
			sum += s.late
		}
	}
	return sum
}

// lates are how late this process was woken, sorted.
func (g *gauge) lates() (found []time.Duration) {
	for _, s := range g.all() {
		found = append(found, s.late)
	}
	return sorted(found)
}

// gaugeType is the worker type whose ledger is measured: that of recordtest's records.
var gaugeType = workerType{name: "export", interval: 5 * time.Minute, control: -1}
