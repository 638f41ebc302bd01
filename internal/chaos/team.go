//go:build linux

package main

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/slotlease/slotlease/store"
)

// team is one worker type in a run: its ledger, its workers, and the log that their
// commands write.
type team struct {
	*harness

	of      workerType
	ledger  store.Ledger
	zero    time.Time // store time at 0 of the boot clock
	workers []*worker
	log     follower
	random  *rand.Rand
	archive archive
}

// newTeam opens the ledger of a worker type that was never used, and makes its
// workers, not yet started.
func (h *harness) newTeam(ctx context.Context, of workerType, workers int) (*team, error) {
	t := &team{harness: h, of: of, log: follower{path: h.workLog(of)}, random: drawer(h.seed, of.name)}
	var err error
	if t.ledger, err = h.openNew(ctx, of); err != nil {
		return nil, err
	}
	if t.zero, err = offsetOf(ctx, t.ledger); err != nil {
		return nil, errors.Join(err, t.ledger.Close(ctx))
	}
	for i := range workers {
		t.workers = append(t.workers, h.newWorker(of, i))
	}
	return t, nil
}

func (t *team) close(ctx context.Context) {
	t.log.close()
	_ = t.ledger.Close(context.WithoutCancel(ctx))
}

// start starts workers, and waits until they are ready.
func (h *harness) start(ctx context.Context, workers ...*worker) error {
	for _, w := range workers {
		if err := w.start(); err != nil {
			return err
		}
	}
	return h.await(ctx, "all workers are ready", func() bool { return ready(workers) })
}

func ready(workers []*worker) bool {
	return !slices.ContainsFunc(workers, func(w *worker) bool { return !w.ready() })
}

// wrote reports whether a command has written a line that matches since it was asked
// last.
func (t *team) wrote(matches func(line) bool) func() bool {
	return func() bool {
		lines, err := t.log.next()
		if err != nil {
			t.bad("%s: %v", t.of.name, err)
		}
		return slices.ContainsFunc(lines, matches)
	}
}

// nextSlot waits for the start of a slot, and returns its time by the boot clock.
func (t *team) nextSlot(ctx context.Context) (time.Duration, error) {
	at := nextPhase(t.of.interval, t.zero, boottime(), 0)
	if !pause(ctx, at-boottime()) {
		return at, ctx.Err()
	}
	return at, nil
}

// nextPhase is the first time, from a time on, at a phase of a slot.
func nextPhase(interval time.Duration, zero time.Time, from, phase time.Duration) time.Duration {
	now := zero.Add(from)
	at := now.Truncate(interval).Add(phase)
	if at.Before(now) {
		at = at.Add(interval)
	}
	return at.Sub(zero)
}

// offsetOf is store time at 0 of the boot clock, by the quickest of some readings. A store whose
// clock shows whole seconds has that of this machine, where its server runs.
func offsetOf(ctx context.Context, l store.Ledger) (time.Time, error) {
	var at time.Time
	quickest := time.Hour
	for range 10 {
		before := boottime()
		s, err := l.Now(ctx)
		took := boottime() - before
		if err != nil {
			return at, err
		}
		if s.Granularity >= time.Second {
			return time.Now().Add(-boottime()).UTC().Round(0), nil
		}
		if took < quickest {
			quickest = took
			at = s.Time.Add(s.Granularity/2 - before - took/2)
		}
	}
	return at, nil
}

// histories are those of all workers.
func (t *team) histories() (all []history) {
	wall := time.Now().Add(-boottime())
	for _, w := range t.workers {
		all = append(all, readHistory(w, wall))
	}
	return all
}

// evidence reads the team's log, its ledger, and the logs of its leasectl processes.
func (t *team) evidence(ctx context.Context) (evidence, error) {
	e := evidence{of: t.of, zero: t.zero, tolerance: 5 * ms, histories: t.histories()}
	lines, err := linesOf(t.log.path)
	if err != nil {
		return e, err
	}
	e.chronicle = chronicleOf(lines)
	now, err := t.records(ctx, allRecords)
	e.records = t.archive.all(now)
	return e, err
}

// records reads the newest records, the oldest of them first.
func (t *team) records(ctx context.Context, limit int) ([]store.Record, error) {
	records, _, err := t.ledger.Tail(ctx, t.of.name, limit)
	slices.Reverse(records)
	return records, err
}

// allRecords is more than a ledger has.
const allRecords = 100_000
