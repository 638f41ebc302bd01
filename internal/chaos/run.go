//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/slotlease/slotlease/testutil/mongopeer"
)

type settings struct {
	store    string
	duration time.Duration
	seed     uint64
	keep     bool
	verbose  bool
	root     string
}

// scene is a run while it is under way.
type scene struct {
	settings

	dir     string
	program string // leasectl
	spawner *spawner
	stage   stage
	workers [][]*worker
	chaos   *chaos
	fence   fence
	archive archive

	mu    sync.Mutex
	wrong []string // what was seen to be wrong while it ran

	stalls         []stall       // of this process itself
	start, end     time.Duration // of the faults, by the boot clock
	fresh          usage         // of a leasectl that was just started
	before, beyond usage         // of the control worker, before and after the faults
}

// run is a whole run, from the building of leasectl to the verdict.
func run(ctx context.Context, o settings) (err error) {
	dir, err := os.MkdirTemp("", "slotlease-chaos-"+o.store+"-")
	if err != nil {
		return err
	}
	s := &scene{settings: o, dir: dir, program: filepath.Join(dir, "leasectl")}
	fmt.Printf("chaos on %s for %v, seed %d\n", o.store, o.duration, o.seed)
	defer func() {
		if err != nil || o.keep {
			fmt.Printf("\nKept: %s (seed %d)\n", dir, o.seed)
			return
		}
		err = os.RemoveAll(dir)
	}()
	ctx, cancel := context.WithTimeout(ctx, o.duration+3*time.Minute)
	defer cancel()
	build := exec.CommandContext(ctx, "go", "build", "-o", s.program, "./cmd/leasectl")
	build.Dir = o.root
	if out, err := build.CombinedOutput(); err != nil {
		return fmt.Errorf("build leasectl: %w\n%s", err, out)
	}
	if o.store == "mongo" {
		// It may have to be built, too.
		if _, err := mongopeer.Program(); err != nil {
			return err
		}
	}
	if s.spawner, err = newSpawner(); err != nil {
		return err
	}
	defer s.spawner.close()
	defer func() {
		for _, w := range s.all() {
			w.dismiss()
		}
		err = errors.Join(err, s.spawner.killAll())
	}()
	if err := s.open(ctx); err != nil {
		return err
	}
	defer s.stage.close()
	defer s.fence.close(context.WithoutCancel(ctx))
	if err := s.play(ctx); err != nil {
		return err
	}
	v, err := s.judge(ctx)
	if err != nil {
		return err
	}
	v.print(os.Stdout)
	if err := v.save(); err != nil {
		return err
	}
	if len(v.wrong) > 0 {
		return errVerdict
	}
	return nil
}

// open sets the stage: the store, the fence, and the workers, not yet started.
func (s *scene) open(ctx context.Context) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	if s.store == "mongo" {
		s.stage, err = newMongoStage(s.dir, s.spawner, cast)
	} else {
		s.stage = newSQLiteStage(s.dir, self, s.spawner)
	}
	if err != nil {
		return err
	}
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
			ws = append(ws, s.worker(t, i, self))
		}
		s.workers = append(s.workers, ws)
	}
	s.chaos = &chaos{workers: s.workers, stage: s.stage, vain: map[kind]int{}, fail: func(err error) { s.bad("the harness: %v", err) }}
	return nil
}

func (s *scene) bad(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.wrong = append(s.wrong, fmt.Sprintf(format, args...))
}

func (s *scene) worker(t workerType, i int, self string) *worker {
	return &worker{
		of: t, index: i, program: s.program, args: t.arguments(i, s.stage.address(t, i), self), spawner: s.spawner,
		env: append(os.Environ(), "GOTRACEBACK=all", logVariable+"="+s.log(), fenceVariable+"="+s.stage.fence()),
		log: filepath.Join(s.dir, t.instance(i)+".log"),
		deaths: func(w *worker, life incarnation) {
			s.bad("leasectl of %s (pid %d) ended by itself: %s", w.name(), life.pid, life.result)
			if err := w.start(); err != nil {
				s.bad("the harness: %v", err)
			}
		},
	}
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
	watch.Go(func() { s.stalls = feel(limited) })
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

// stall is how late this process was woken at a time.
type stall struct{ at, late time.Duration }

// feel measures how busy the machine is: how much later than asked for this
// process is woken, again and again.
func feel(ctx context.Context) (felt []stall) {
	const nap = 20 * ms
	for {
		before := boottime()
		if !pause(ctx, nap) {
			return felt
		}
		now := boottime()
		felt = append(felt, stall{now, max(0, now-before-nap)})
	}
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
	self, err := os.Executable()
	if err != nil {
		return usage{}, err
	}
	t := workerType{name: "sacrifice", interval: time.Hour, tieBreak: "sticky", control: -1}
	w := s.worker(t, 0, self)
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

func (s *scene) await(ctx context.Context, what string, ok func() bool) error {
	for limit := boottime() + 30*time.Second; !ok(); {
		if boottime() > limit {
			return fmt.Errorf("%s: not within 30 s", what)
		}
		if !pause(ctx, 50*ms) {
			return ctx.Err()
		}
	}
	return nil
}
