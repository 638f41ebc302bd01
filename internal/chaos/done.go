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
		name: fmt.Sprintf("job-%d", i), interval: doneSlot, tieBreak: "sticky", priorities: [crew]int{0, 0, 1}, control: -1, part: taskPart,
		flags: []string{"--once-per-slot", "--max-attempts", strconv.Itoa(maxAttempts), "--failover-within", doneFailover.String(), "--join-mid-slot"},
	}
}

// job is a worker type while it is played.
type job struct {
	*theatre

	of      workerType
	workers []*worker
	ledger  store.Ledger
	zero    time.Time
	random  *rand.Rand
	log     *follower
	aimed   int // kills near the end of a command
	struck  int // all
}

// playDone kills as often as asked.
func playDone(ctx context.Context, t *theatre) (report, error) {
	v := &doneVerdict{settings: t.settings}
	limited, cancel := context.WithCancel(ctx)
	var watch sync.WaitGroup
	defer watch.Wait()
	defer cancel()
	g := &gauge{}
	watch.Go(func() { g.feel(limited) })
	var all []*job
	var workers []*worker
	for i := range jobs {
		j := &job{theatre: t, of: jobType(i), random: rand.New(rand.NewPCG(t.seed, uint64(i)))}
		if err := j.open(ctx); err != nil {
			return nil, err
		}
		defer j.close(context.WithoutCancel(ctx))
		all = append(all, j)
		workers = append(workers, j.workers...)
	}
	for _, w := range workers {
		if err := t.await(ctx, w.name()+" is ready", w.ready); err != nil {
			return nil, err
		}
	}
	for _, j := range all {
		watch.Go(func() { j.mark(limited) })
	}
	begun := boottime()
	var budget atomic.Int64
	budget.Store(int64(t.tries))
	var strikers sync.WaitGroup
	for _, j := range all {
		strikers.Go(func() { j.strike(ctx, &budget) })
	}
	strikers.Wait()
	// The last slot that counts is one in which the kills end: it is done, or not. With
	// few kills, there is to be a whole one at least.
	if !pause(ctx, max(doneSlot, begun+2*doneSlot-boottime())) {
		return nil, ctx.Err()
	}
	over := boottime()
	t.leave(ctx, workers)
	pause(ctx, 4*markEvery)
	cancel()
	watch.Wait()
	v.stalls = g.lates()
	v.wrong = t.wrong
	for _, j := range all {
		if err := j.judge(ctx, v, slotsOf(j.of, begun, over, j.zero), g); err != nil {
			return nil, err
		}
	}
	v.judge()
	return v, nil
}

// open starts the workers of a job.
func (j *job) open(ctx context.Context) (err error) {
	if j.ledger, err = j.openNew(ctx, j.of); err != nil {
		return err
	}
	if j.zero, err = offsetOf(ctx, j.ledger); err != nil {
		return err
	}
	j.log = &follower{path: j.workLog(j.of)}
	for i := range crew {
		w := j.hire(j.of, i, j.workLog(j.of))
		j.workers = append(j.workers, w)
		if err := w.start(); err != nil {
			return err
		}
	}
	return nil
}

func (j *job) close(ctx context.Context) {
	j.log.close()
	_ = j.ledger.Close(ctx)
}

// markEvery is how often the harness looks for done records.
const markEvery = 50 * ms

// mark writes a line into the log of the commands for each done record that it finds
// in the ledger: a command that begins behind that has begun too late.
func (j *job) mark(ctx context.Context) {
	log, err := openLog(j.workLog(j.of))
	if err != nil {
		j.bad("the harness: %v", err)
		return
	}
	defer func() { _ = log.file.Close() }()
	for seen := int64(0); pause(ctx, markEvery); {
		records, _, err := j.ledger.Tail(ctx, j.of.name, 20)
		if err != nil && ctx.Err() == nil {
			j.bad("the harness: look for done records: %v", err)
		}
		slices.Reverse(records)
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
				j.bad("the harness: %v", err)
			}
		}
	}
}

// blow is a kill that is planned, by the boot clock.
type blow struct {
	at     time.Duration
	worker *worker
	aimed  bool
}

// strike kills workers until the budget of all jobs is used up, and starts each again:
// at one random moment of each slot one of them, and half of those whose command
// ends, near that.
func (j *job) strike(ctx context.Context, budget *atomic.Int64) {
	var restarts sync.WaitGroup
	defer restarts.Wait()
	var blows []blow
	var slot time.Time
	for budget.Load() > 0 && pause(ctx, 3*ms) {
		now := boottime()
		if s := j.zero.Add(now).Truncate(doneSlot); s.After(slot) {
			slot = s
			at := now + time.Duration(j.random.Int64N(int64(doneSlot)))
			blows = append(blows, blow{at: at, worker: j.workers[j.random.IntN(crew)]})
		}
		lines, err := j.log.next()
		if err != nil {
			j.bad("the harness: %v", err)
			return
		}
		for _, l := range lines {
			if l.event == began && j.random.IntN(2) == 0 {
				blows = append(blows, blow{at: l.boot + choreOf(l).takes + j.nearly(), worker: j.workerOf(l.instance), aimed: true})
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
			budget.Add(-1)
			j.struck++
			if b.aimed {
				j.aimed++
			}
			rest := between(j.random, 50*ms, 2*time.Second)
			restarts.Go(func() { j.restart(ctx, b.worker, gone, rest) })
			return true
		})
	}
}

// nearly is how far from the end of a command it is struck: as a rule in the moments
// in which its outcome is on its way to the ledger.
func (j *job) nearly() time.Duration {
	if j.random.IntN(4) > 0 {
		return time.Duration(j.random.Int64N(int64(45*ms))) - 15*ms
	}
	return time.Duration(j.random.Int64N(int64(300*ms))) - 150*ms
}

func (j *job) workerOf(instance string) *worker {
	i := slices.IndexFunc(j.workers, func(w *worker) bool { return w.name() == instance })
	return j.workers[max(i, 0)]
}

// restart starts a worker again when it is gone and has rested.
func (j *job) restart(ctx context.Context, w *worker, gone <-chan struct{}, rest time.Duration) {
	<-gone
	if !pause(ctx, rest) {
		return
	}
	if err := w.start(); err != nil && !errors.Is(err, ctx.Err()) {
		j.bad("the harness: %v", err)
	}
}

// judge looks what the job has left behind.
func (j *job) judge(ctx context.Context, v *doneVerdict, slots []slot, g *gauge) error {
	records, err := recordsOf(ctx, j.ledger, j.of)
	if err != nil {
		return err
	}
	lines, err := linesOf(j.workLog(j.of))
	if err != nil {
		return err
	}
	_, wrong := turnsOf(lines)
	v.wrong = slices.Concat(v.wrong, wrong, checkLedger(records), checkWindows(lines, records, j.zero))
	v.kills += j.struck
	v.aimed += j.aimed
	v.add(judgeSlots(lines, records, slots, g))
	return nil
}
