// Package demo shows leasing at work: three workers, one of which is killed and comes back,
// on a temporary ledger. Their work writes lines through a fence; by what it let through the
// demo judges whether two ever worked at once. It judges facts, never how late anything was.
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
	// hangs is how long the demo waits for what must happen in the end, on however busy a machine.
	hangs = time.Minute
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
	fell    work      // that was killed, as far as it had come
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
	if err := s.workers.awaitReady(ctx, hangs); err != nil {
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
	if err := s.awaitEnd(ctx); err != nil {
		return ended(err)
	}
	lines, err := ReadLog(s.log)
	if err != nil {
		return err
	}
	records, _, err := s.ledger.Tail(ctx, workerType, 2*o.Slots+100)
	if err != nil {
		return ended(err)
	}
	v := judge(s.plan, s.fell, lines, refused(s.log), records, s.zero)
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

// awaitEnd waits until no work is alive: each has a shared lock on the log.
func (s *session) awaitEnd(ctx context.Context) error {
	f, err := os.OpenFile(s.log, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return err
	}
	free := make(chan error, 1)
	go func() { free <- errors.Join(lock(f.Fd(), exclusive), f.Close()) }()
	select {
	case err := <-free:
		return err
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-time.After(hangs):
		return errors.New("work has outlived its worker")
	}
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
// planned, until the last slot is over and another has taken over.
func (s *session) watch(ctx context.Context) error {
	ticker := time.NewTicker(lookEvery)
	defer ticker.Stop()
	p, shown := s.plan, 0
	end := p.start(p.slots).Add(-stopEarly)
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
			if p.index(w.slot) >= 0 {
				s.screen.slot(p, works, w, s.workers)
			}
		}
		shown = len(works)
		now, over := s.now(), successor(works, s.fell) != ""
		switch {
		case s.fell.worker == "" && !now.Before(p.start(p.kill).Add(p.interval/2)):
			s.fell = work{worker: names[0]}
			if len(works) > 0 { // who works, or did so last
				s.fell = works[len(works)-1]
			}
			pid := s.workers.kill(s.fell.worker)
			s.screen.event(now, fmt.Sprintf("killed %s halfway through its slot (SIGKILL, pid %d)", s.fell.worker, pid), table.Red)
		// Not before another has taken over, so that it may take as long as it does.
		case over && s.workers.running[s.fell.worker] == nil && !now.Before(p.start(p.back).Add(p.interval/8)):
			s.screen.event(now, "started "+s.fell.worker+" again; it competes for the next boundary", table.Plain)
			if err := s.workers.start(s.fell.worker); err != nil {
				return err
			}
		case !now.Before(end) && (over || !now.Before(end.Add(hangs))):
			return nil
		}
	}
}
