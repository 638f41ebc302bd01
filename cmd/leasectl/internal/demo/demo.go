// Package demo shows leasing at work: three workers, one of which is killed and comes back,
// on a temporary ledger. It judges by the lines that their work wrote whether two ever
// worked at once.
package demo

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/slotlease/slotlease/cmd/leasectl/internal/advice"
	"github.com/slotlease/slotlease/cmd/leasectl/internal/exit"
	"github.com/slotlease/slotlease/cmd/leasectl/internal/guard"
	"github.com/slotlease/slotlease/cmd/leasectl/internal/interrupt"
	"github.com/slotlease/slotlease/cmd/leasectl/internal/storeuri"
	"github.com/slotlease/slotlease/cmd/leasectl/internal/table"
	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/sqlite"
)

const (
	// readyWithin is how long the workers may take to start.
	readyWithin = 12 * time.Second
	// lookEvery is how often the demo looks what happened.
	lookEvery = 20 * time.Millisecond
	// stopEarly is how long before the end of the last slot the workers are stopped: its
	// work has ended by then, and that of the next slot has not begun.
	stopEarly = 15 * time.Millisecond
)

// session is one run of the demo.
type session struct {
	plan    plan
	ledger  store.Ledger
	workers *workers
	log     string    // the file of the work's lines
	zero    time.Time // store time at 0 of the boot clock
	screen  *screen
	urgent  <-chan struct{}
}

// Run runs the demo. Its error has the exit code.
func Run(ctx context.Context, o Options, h Host) (err error) {
	if !guard.Supported {
		return advice.ForCommand("demo", guard.ErrUnsupported)
	}
	ctx, stop := interrupt.UntilUnread(ctx)
	defer stop()
	dir, err := os.MkdirTemp("", "leasectl-demo-")
	if err != nil {
		return err
	}
	s := &session{screen: &screen{out: h.Out, colours: h.Colours}, urgent: h.Urgent}
	defer func() {
		if o.Keep {
			s.screen.printf("Kept: %s\n", dir)
		} else {
			err = errors.Join(err, os.RemoveAll(dir))
		}
	}()
	path := filepath.Join(dir, "leases.db")
	ledger, err := sqlite.Open(ctx, sqlite.Options{Path: path})
	if err != nil {
		return err
	}
	s.ledger = ledger
	defer func() { err = errors.Join(err, storeuri.Close(ctx, s.ledger)) }()
	if err := s.ledger.Init(ctx); err != nil {
		return err
	}
	s.log = filepath.Join(dir, "work.log")
	s.workers = newWorkers(h.Env, dir, path, s.log, o.Interval)
	defer s.workers.stop(s.urgent)
	s.screen.title(o, path)
	return s.play(ctx, o)
}

// play starts the workers, shows what happens, and judges it.
func (s *session) play(ctx context.Context, o Options) error {
	for _, name := range names {
		if err := s.workers.start(name); err != nil {
			return err
		}
	}
	if err := s.workers.awaitReady(ctx, readyWithin); err != nil {
		return ended(err)
	}
	if err := s.setClock(ctx); err != nil {
		return err
	}
	s.plan = newPlan(o, s.now())
	s.screen.begin(s.plan.start(0).Sub(s.now()))
	if err := s.watch(ctx); err != nil {
		return ended(err)
	}
	s.workers.stop(s.urgent)
	lines, err := ReadLog(s.log)
	if err != nil {
		return err
	}
	records, _, err := s.ledger.Tail(ctx, workerType, 2*o.Slots+100)
	if err != nil {
		return ended(err)
	}
	v := judge(s.plan, lines, records, s.zero)
	s.screen.summary(v)
	if len(v.wrong) > 0 {
		return &exit.Error{Problems: v.wrong, Code: exit.Demo}
	}
	return nil
}

// ended is the error of a demo that failed, or was interrupted.
func ended(err error) error {
	if errors.Is(err, context.Canceled) || errors.Is(err, interrupt.Err) || errors.Is(err, interrupt.ErrUnread) {
		return exit.With(exit.Interrupted, errors.New("demo: interrupted; everything is stopped"))
	}
	return exit.With(exit.Demo, fmt.Errorf("demo: %w", err))
}

// setClock measures the difference between store time and the boot clock, in which the work
// logs. It is fixed, because both are this machine's.
func (s *session) setClock(ctx context.Context) error {
	best := time.Hour
	for range 5 {
		before := guard.Boottime()
		stamp, err := s.ledger.Now(ctx)
		if err != nil {
			return ended(err)
		}
		if trip := guard.Boottime() - before; trip < best {
			best, s.zero = trip, stamp.Time.Add(-before-trip/2)
		}
	}
	return nil
}

// now is store time.
func (s *session) now() time.Time { return s.zero.Add(guard.Boottime()) }

// watch shows the slots as they begin, and kills and starts the leader as
// planned, until the last slot is over.
func (s *session) watch(ctx context.Context) error {
	ticker := time.NewTicker(lookEvery)
	defer ticker.Stop()
	todo := s.steps()
	shown := 0
	for {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case err := <-s.workers.died:
			return err
		case <-ticker.C:
		}
		lines, err := ReadLog(s.log)
		if err != nil {
			return err
		}
		works := worksOf(lines, s.zero)
		for _, w := range works[min(shown, len(works)):] {
			if s.plan.index(w.slot) >= 0 {
				s.screen.slot(s.plan, works, w, s.workers)
			}
		}
		shown = len(works)
		for len(todo) > 0 && !s.now().Before(todo[0].at) {
			if err := todo[0].do(works); err != nil {
				return err
			}
			todo = todo[1:]
		}
		if len(todo) == 0 {
			return nil
		}
	}
}

// step is something that the demo does at a moment of store time.
type step struct {
	at time.Time
	do func(works []work) error
}

// steps are what the demo does while the workers work.
func (s *session) steps() []step {
	p := s.plan
	return []step{
		{p.start(p.kill).Add(p.interval / 2), func(works []work) error {
			name := names[0]
			for _, w := range works {
				if w.slot.Equal(p.start(p.kill)) {
					name = w.worker
				}
			}
			pid := s.workers.kill(name)
			s.screen.event(s.now(), fmt.Sprintf("killed %s halfway through its slot (SIGKILL, pid %d)", name, pid), table.Red)
			return nil
		}},
		{p.start(p.back).Add(p.interval / 8), func([]work) error {
			name := s.workers.killed
			s.screen.event(s.now(), "started "+name+" again; it competes for the next boundary", table.Plain)
			return s.workers.start(name)
		}},
		{p.start(p.slots).Add(-stopEarly), func([]work) error { return nil }},
	}
}
