//go:build linux

package main

import (
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"time"
)

// scene is a run of the faults while it is under way.
type scene struct {
	*theatre

	workers [][]*worker
	chaos   *chaos
	fence   fence
	archive archive

	stalls         []stall       // of this process itself
	start, end     time.Duration // of the faults, by the boot clock
	fresh          usage         // of a leasectl that was just started
	before, beyond usage         // of the control worker, before and after the faults
}

// playChaos strikes, and judges what came of it.
func playChaos(ctx context.Context, t *theatre) (report, error) {
	s := &scene{theatre: t}
	if err := s.open(ctx); err != nil {
		return nil, err
	}
	defer s.fence.close(context.WithoutCancel(ctx))
	if err := s.play(ctx); err != nil {
		return nil, err
	}
	return s.judge(ctx)
}

// open sets the scene: the fence and the workers, not yet started.
func (s *scene) open(ctx context.Context) (err error) {
	if s.fence, err = openFence(ctx, s.stage.fence()); err != nil {
		return err
	}
	for _, t := range cast {
		init := exec.Command(s.program, "init", "--store", s.stage.admin(t))
		if out, err := s.spawner.output(init); err != nil {
			return fmt.Errorf("leasectl init: %w\n%s", err, out)
		}
		var ws []*worker
		for i := range crew {
			ws = append(ws, s.hire(t, i, s.log()))
		}
		s.workers = append(s.workers, ws)
	}
	s.chaos = &chaos{workers: s.workers, stage: s.stage, vain: map[kind]int{}, fail: func(err error) { s.bad("the harness: %v", err) }}
	return nil
}

func (s *scene) log() string { return filepath.Join(s.dir, "work.log") }

func (s *scene) all() []*worker { return slices.Concat(s.workers...) }

// control is the worker that is never killed.
func (s *scene) control() *worker {
	for _, w := range s.all() {
		if w.control() {
			return w
		}
	}
	panic("the cast has no control worker")
}

// play lets the workers work, strikes them, and lets them end.
func (s *scene) play(ctx context.Context) (err error) {
	if s.fresh, err = s.sacrifice(ctx); err != nil {
		return err
	}
	for _, w := range s.all() {
		if err := w.start(); err != nil {
			return err
		}
	}
	if err := s.await(ctx, "all workers are ready", s.ready); err != nil {
		return err
	}
	if s.before, err = usageOf(s.control().pid()); err != nil {
		return err
	}
	ledger, err := s.stage.open(ctx, cast[0])
	if err != nil {
		return err
	}
	zero, err := offsetOf(ctx, ledger)
	_ = ledger.Close(ctx)
	if err != nil {
		return err
	}
	// The plan counts from a boundary of all schedules.
	start := zero.Add(boottime()).Truncate(cycle).Add(cycle)
	s.start = start.Sub(zero)
	if !pause(ctx, s.start-boottime()) {
		return ctx.Err()
	}
	faults := plan(s.seed, s.settings.store, s.duration, cast)
	fmt.Printf("%d workers are ready; %d faults are planned\n", len(s.all()), len(faults))
	limited, cancel := context.WithTimeout(ctx, s.duration)
	defer cancel()
	go s.progress(limited)
	var watch sync.WaitGroup
	watch.Go(func() { feel(limited, func(late stall) { s.stalls = append(s.stalls, late) }) })
	watch.Go(func() { s.archive.keep(limited, s.stage) })
	s.chaos.run(limited, faults, s.start)
	pause(limited, s.duration)
	watch.Wait()
	if ctx.Err() != nil {
		return ctx.Err()
	}
	s.end = boottime()
	return s.settle(ctx)
}

// progress shows that the run is alive.
func (s *scene) progress(ctx context.Context) {
	for pause(ctx, time.Minute) {
		s.chaos.mu.Lock()
		n := len(s.chaos.strikes)
		s.chaos.mu.Unlock()
		fmt.Printf("%v of %v: %d faults struck\n", (boottime() - s.start).Round(time.Second), s.duration, n)
	}
}

// sacrifice measures a leasectl of its own worker type, which then dies of it.
func (s *scene) sacrifice(ctx context.Context) (usage, error) {
	t := workerType{name: "sacrifice", interval: time.Hour, tieBreak: "sticky", control: -1}
	w := s.hire(t, 0, s.log())
	if err := w.start(); err != nil {
		return usage{}, err
	}
	if err := s.await(ctx, "a first worker is ready", w.ready); err != nil {
		return usage{}, err
	}
	if !pause(ctx, time.Second) {
		return usage{}, ctx.Err()
	}
	u, err := usageOf(w.pid())
	if err != nil {
		return u, err
	}
	u.goroutines, err = w.dump()
	return u, err
}

func (s *scene) ready() bool {
	return !slices.ContainsFunc(s.all(), func(w *worker) bool { return !w.ready() })
}
