//go:build linux

package main

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"
)

// failover kills the holder again and again, and measures how long nobody works.
func failover(ctx context.Context, t *team, r *row, o settings) error {
	holder, err := pair(ctx, t)
	if err != nil {
		return err
	}
	if err := wait(ctx, max(t.bound, 2*time.Second)); err != nil {
		return err
	}
	before, err := t.operations(ctx)
	if err != nil {
		return err
	}
	began := time.Now()
	if err := wait(ctx, o.steady); err != nil {
		return err
	}
	after, err := t.operations(ctx)
	if err != nil {
		return err
	}
	r.PerMinute = float64(after-before) / time.Since(began).Minutes()
	return again(ctx, t, r, holder, o.rounds, t.kill)
}

// handover stops the holder in order again and again, and measures how long nobody works.
func handover(ctx context.Context, t *team, r *row, o settings) error {
	holder, err := pair(ctx, t)
	if err != nil {
		return err
	}
	return again(ctx, t, r, holder, o.rounds, t.stop)
}

// pair starts two workers, of which one works.
func pair(ctx context.Context, t *team) (holder *worker, err error) {
	for range 2 {
		if err := t.start(); err != nil {
			return nil, err
		}
	}
	e, err := t.next(ctx, 10*t.bound)
	return e.from, err
}

// again ends the holder in some way, waits until the standby works, and starts another standby.
func again(ctx context.Context, t *team, r *row, holder *worker, rounds int, end func(*worker)) error {
	var took []time.Duration
	defer func() { r.set(took) }()
	for len(took) < rounds {
		// The standby is there by then. The holder ends at any moment between two of its signs
		// of life, which nobody sends less often than this.
		settle := max(t.bound/2, time.Second) + rand.N(t.bound)
		e, err := t.next(ctx, settle)
		if err == nil {
			// The holder lost its lease although it lives.
			r.Lost++
			holder = e.from
			continue
		}
		if !errors.Is(err, errQuiet) {
			return err
		}
		ended := time.Now()
		end(holder)
		if e, err = t.next(ctx, 10*t.bound); err != nil {
			return err
		}
		took = append(took, e.at.Sub(ended))
		holder = e.from
		if err := t.start(); err != nil {
			return err
		}
	}
	return nil
}
