//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
	"golang.org/x/sys/unix"

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

// kill ends what still runs of the team.
func (t *team) kill() {
	for _, w := range t.workers {
		t.fail(w.wait(w.retire(unix.SIGKILL, killLeasectl)))
	}
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

// lanes is the number of tries at once. Each has a few leasectl and one command, which are idle nearly all of the
// time.
const lanes = 12

// sideBySide makes tries, some at once, until one can't be made.
func sideBySide[P, R any](ctx context.Context, atOnce int, plan []P, try func(context.Context, P) (R, error)) ([]R, error) {
	var made atomic.Int64
	results := make([]R, len(plan))
	all, ctx := errgroup.WithContext(ctx)
	all.SetLimit(atOnce)
	for i, p := range plan {
		all.Go(func() (err error) {
			results[i], err = try(ctx, p)
			if n := made.Add(1); n%50 == 0 {
				fmt.Printf("%d of %d tries\n", n, len(plan))
			}
			return err
		})
	}
	return results, all.Wait()
}

// together runs worker types beside each other: f is called when all workers are ready. With an older leasectl, one
// worker of each type is of that.
func (h *harness) together(ctx context.Context, types []workerType, f func(teams []*team, workers []*worker) error) error {
	var teams []*team
	var workers []*worker
	for i, of := range types {
		t, err := h.newTeam(ctx, of, perType)
		if err != nil {
			return err
		}
		defer t.close(ctx)
		t.workers[i%perType].older = h.older != ""
		teams, workers = append(teams, t), append(workers, t.workers...)
	}
	if err := h.start(ctx, workers...); err != nil {
		return err
	}
	return f(teams, workers)
}
