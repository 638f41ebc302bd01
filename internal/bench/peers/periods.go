//go:build linux

package main

import (
	"context"
	"errors"
	"time"
)

// starts are when the replicas of a job start, as they do in a rolling deployment.
var starts = []time.Duration{0, 700 * time.Millisecond, 2 * time.Second}

// periods runs a job on replicas that started one after the other, and counts its runs.
func periods(ctx context.Context, t *team, r *row, o settings) error {
	// The first replica starts with a period of the clock, and what is counted begins a quarter
	// before one, when no run is due: each run falls into one period, whatever its phase.
	first := time.Now().Truncate(o.period).Add(o.period)
	for _, after := range starts {
		if err := wait(ctx, time.Until(first.Add(after))); err != nil {
			return err
		}
		if err := t.start(); err != nil {
			return err
		}
	}
	begin := first.Add(3*o.period - o.period/4)
	end := begin.Add(time.Duration(o.rounds) * o.period)
	var at []time.Duration
	for time.Now().Before(end) {
		e, err := t.next(ctx, time.Until(end))
		if errors.Is(err, errQuiet) {
			break
		}
		if err != nil {
			return err
		}
		at = append(at, e.at.Sub(begin))
	}
	r.setRuns(at, o.period, o.rounds)
	return nil
}
