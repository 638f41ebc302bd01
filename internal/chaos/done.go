//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"github.com/slotlease/slotlease/store"
)

// The scenario of jobs that are done once for each slot: their workers are killed at
// random moments, and more often where a command ends.
const (
	doneSlot     = 8 * time.Second
	doneFailover = 1500 * ms
	maxAttempts  = 5
	jobs         = 6 // worker types at once
)

// jobType is one of the worker types.
func jobType(i int) workerType {
	return workerType{
		name: fmt.Sprintf("job-%d", i), interval: doneSlot, tieBreak: "sticky", priorities: [perType]int{0, 0, 1}, control: -1, behavior: taskCommand,
		flags: []string{"--once-per-slot", "--max-attempts", strconv.Itoa(maxAttempts), "--failover-within", doneFailover.String()},
	}
}

// job is a worker type with the kills that it gets.
type job struct {
	*team

	budget *atomic.Int64 // of kills, shared by all jobs
	struck int
	aimed  int // kills near the end of a command
}

// runDone kills as often as asked.
func runDone(ctx context.Context, h *harness) (*report, error) {
	var types []workerType
	for i := range jobs {
		types = append(types, jobType(i))
	}
	v := &doneVerdict{}
	err := h.together(ctx, types, func(teams []*team, workers []*worker) error {
		var budget atomic.Int64
		budget.Store(int64(h.tries))
		limited, cancel := context.WithCancel(ctx)
		var watch, strikers sync.WaitGroup
		defer watch.Wait()
		defer cancel()
		begun := boottime()
		var all []*job
		for _, t := range teams {
			j := &job{team: t, budget: &budget}
			all = append(all, j)
			watch.Go(func() { h.fail(j.mark(limited)) })
			strikers.Go(func() { h.fail(j.strike(ctx)) })
		}
		strikers.Wait()
		// The last slot that counts is the one in which the kills end. After few kills, wait
		// for at least one whole slot.
		if !pause(ctx, max(doneSlot, begun+2*doneSlot-boottime())) {
			return ctx.Err()
		}
		over := boottime()
		h.leave(ctx, workers)
		pause(ctx, 4*markEvery)
		cancel()
		watch.Wait()
		v.verdict = h.verdict()
		return v.judgeAll(ctx, all, begun, over)
	})
	if err != nil {
		return nil, err
	}
	return v.report(), nil
}

// markEvery is how often the harness looks for done records.
const markEvery = 50 * ms

// mark writes a line into the log of the commands for each done record that it finds
// in the ledger: a command that begins after that line has begun too late.
func (j *job) mark(ctx context.Context) error {
	log, err := openLog(j.log.path)
	if err != nil {
		return err
	}
	defer func() { _ = log.file.Close() }()
	for seen := int64(0); pause(ctx, markEvery); {
		records, err := j.records(ctx, 20)
		if err != nil && ctx.Err() == nil {
			j.bad("the harness: look for done records: %v", err)
		}
		for _, r := range records {
			if r.Seq <= seen {
				continue
			}
			seen = r.Seq
			if r.Kind != store.KindDone {
				continue
			}
			end := r.DoneUntil.UnixMilli()
			l := line{
				pid: os.Getpid(), instance: r.InstanceID, workerType: j.of.name, token: r.Token,
				start: end - doneSlot.Milliseconds(), end: end, role: asHarness,
			}
			if err := log.write(l, marked); err != nil {
				return err
			}
		}
	}
	return nil
}

// blow is a kill that is planned, by the boot clock.
type blow struct {
	at     time.Duration
	worker *worker
	aimed  bool
}

// strike kills workers until the budget of all jobs is used up, and starts each again:
// one worker at a random moment of each slot, and half of the workers whose command is
// about to end, near that moment.
func (j *job) strike(ctx context.Context) error {
	var restarts sync.WaitGroup
	defer restarts.Wait()
	var blows []blow
	var slot time.Time
	for j.budget.Load() > 0 && pause(ctx, 3*ms) {
		now := boottime()
		if s := j.zero.Add(now).Truncate(doneSlot); s.After(slot) {
			slot = s
			at := now + time.Duration(j.random.Int64N(int64(doneSlot)))
			blows = append(blows, blow{at: at, worker: j.workers[j.random.IntN(perType)]})
		}
		lines, err := j.log.next()
		if err != nil {
			return err
		}
		for _, l := range lines {
			if l.event == began && j.random.IntN(2) == 0 {
				i := slices.IndexFunc(j.workers, func(w *worker) bool { return w.name() == l.instance })
				blows = append(blows, blow{at: l.boot + choreOf(l).takes + nearly(j.random), worker: j.workers[max(i, 0)], aimed: true})
			}
		}
		blows = slices.DeleteFunc(blows, func(b blow) bool {
			if b.at > now {
				return false
			}
			gone := b.worker.end(unix.SIGKILL, killLeasectl)
			if gone == nil {
				return true // It isn't back yet.
			}
			j.budget.Add(-1)
			j.struck++
			if b.aimed {
				j.aimed++
			}
			rest := between(j.random, 50*ms, 2*time.Second)
			restarts.Go(func() {
				<-gone
				if !pause(ctx, rest) {
					return
				}
				if err := b.worker.start(); err != nil && !errors.Is(err, ctx.Err()) {
					j.fail(err)
				}
			})
			return true
		})
	}
	return nil
}

// nearly is how far from the end of a command to strike: mostly while its outcome is on
// its way to the ledger.
func nearly(random *rand.Rand) time.Duration {
	if random.IntN(4) > 0 {
		return time.Duration(random.Int64N(int64(45*ms))) - 15*ms
	}
	return time.Duration(random.Int64N(int64(300*ms))) - 150*ms
}
