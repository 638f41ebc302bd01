//go:build linux

package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

// strike is a fault as it came out, by the boot clock.
type strike struct {
	Kind   kind
	Type   string
	Worker string // empty: all of the type, or everybody
	family
	Begin, End time.Duration
}

// endless is the end of a strike that is under way.
const endless = time.Duration(1<<63 - 1)

// carryOut strikes until the plan is done or ctx ends, and returns when every fault is over.
// start is the boot time from which the plan counts.
func (c *chaosRun) carryOut(ctx context.Context, plan []fault, start time.Duration) {
	var under sync.WaitGroup
	defer under.Wait()
	for _, f := range plan {
		if !pause(ctx, start+f.At-boottime()) {
			return
		}
		under.Go(func() {
			struck, err := c.strike(ctx, f)
			if err != nil {
				c.fail(fmt.Errorf("%s: %w", f.Kind, err))
			}
			if !struck {
				c.vain.Add(1)
			}
		})
	}
}

// pause waits, and reports whether ctx lasted.
func pause(ctx context.Context, d time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(d):
		return true
	}
}

// note writes down that a strike begins.
func (c *chaosRun) note(s strike) *strike {
	c.mu.Lock()
	defer c.mu.Unlock()
	s.End = endless
	c.strikes = append(c.strikes, &s)
	return &s
}

// over writes down that it has ended.
func (c *chaosRun) over(s *strike) {
	c.mu.Lock()
	defer c.mu.Unlock()
	s.End = boottime()
}

// withdraw forgets a strike that failed.
func (c *chaosRun) withdraw(s *strike) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.strikes = slices.DeleteFunc(c.strikes, func(other *strike) bool { return other == s })
}

func (c *chaosRun) strike(ctx context.Context, f fault) (struck bool, err error) {
	switch f.Kind {
	case killCrowd, stopCrowd:
		return c.crowd(ctx, f), nil
	case netLatency, netBlackhole, netReset, netDown, killServer, stopServer, lockFile, killWriter:
		return c.strikeStore(ctx, f)
	default:
	}
	w, fam := c.target(f)
	if w == nil {
		return false, nil
	}
	defer w.fault.Unlock()
	return c.process(ctx, f, w, fam)
}

// target is the worker to strike, with its fault lock held; nil if there is none.
func (c *chaosRun) target(f fault) (*worker, family) {
	below := f.Kind != killLeasectl && f.Kind != endLeasectl && f.Kind != stopLeasectl
	deadly := f.Kind == killLeasectl || f.Kind == endLeasectl || f.Kind == killAbove
	workers := c.teams[f.Type].workers
	for range 30 {
		for i := range workers {
			w := workers[(f.Worker+i)%len(workers)]
			if deadly && w.control() || !w.fault.TryLock() {
				continue
			}
			if pid := w.pid(); pid != 0 {
				fam := familyOf(pid)
				if fam.command != 0 && fam.guard != 0 || !below && !f.Holder {
					return w, fam
				}
			}
			w.fault.Unlock()
		}
		if !below {
			f.Holder = false // any worker will do
		}
		time.Sleep(20 * ms)
	}
	return nil, family{}
}

// strikeStore strikes the store or the network.
func (c *chaosRun) strikeStore(ctx context.Context, f fault) (bool, error) {
	of := c.teams[f.Type].of
	s := strike{Kind: f.Kind, Begin: boottime()}
	if !f.Crowd && slices.Contains([]kind{netLatency, netBlackhole, netReset, netDown}, f.Kind) {
		s.Type, s.Worker = of.name, of.instance(f.Worker)
	}
	undo, err := c.backend.strike(f, of, f.Worker)
	if err != nil || undo == nil {
		return false, err
	}
	noted := c.note(s)
	pause(ctx, f.For)
	err = undo()
	c.over(noted)
	return true, err
}

// crowd strikes all leasectl of a worker type at once, but never kills one that
// must live.
func (c *chaosRun) crowd(ctx context.Context, f fault) bool {
	one := f
	one.Kind = stopLeasectl
	if f.Kind == killCrowd {
		one.Kind = killLeasectl
	}
	var all sync.WaitGroup
	var some atomic.Bool
	for _, w := range c.teams[f.Type].workers {
		if f.Kind == killCrowd && w.control() || !w.fault.TryLock() {
			continue
		}
		all.Go(func() {
			defer w.fault.Unlock()
			if pid := w.pid(); pid != 0 {
				struck, err := c.process(ctx, one, w, familyOf(pid))
				c.fail(err)
				if struck {
					some.Store(true)
				}
			}
		})
	}
	all.Wait()
	if some.Load() {
		c.crowds.Add(1)
	}
	return some.Load()
}

// member is a process of a family.
type member int

const (
	nobodys member = iota
	theLeasectl
	theGuard
	theCommand
)

// deed is what a fault does to a family.
type deed struct {
	stop  []member // the first of them without fail
	below bool     // stop all below the guard, too
	kill  member
	end   unix.Signal // to leasectl
}

// deeds are those of the faults of processes.
var deeds = map[kind]deed{
	killLeasectl: {end: unix.SIGKILL},
	endLeasectl:  {end: unix.SIGTERM},
	killAbove:    {stop: []member{theGuard}, end: unix.SIGKILL},
	killGuard:    {kill: theGuard},
	killCommand:  {kill: theCommand},
	stopLeasectl: {stop: []member{theLeasectl}},
	stopGuard:    {stop: []member{theGuard}},
	stopCommand:  {stop: []member{theCommand}},
	stopBoth:     {stop: []member{theGuard, theLeasectl}},
	stopTree:     {stop: []member{theGuard, theLeasectl}, below: true},
}

// of is the number of a member, and its parent's.
func (f family) of(m member) (pid, parent int) {
	switch m {
	case theLeasectl:
		return f.leasectl, os.Getpid()
	case theGuard:
		return f.guard, f.leasectl
	default:
		return f.command, f.guard
	}
}

// kill kills a member, and reports whether it was there.
func (f family) kill(m member) bool {
	p, ok := hold(f.of(m))
	if !ok {
		return false
	}
	defer p.close()
	return p.send(unix.SIGKILL)
}

// stop stops members, and reports whether it found those that it must.
func (f family) stop(d deed) (stopped []handle, ok bool) {
	for _, m := range d.stop {
		if h, ok := holdStopped(f.of(m)); ok {
			stopped = append(stopped, h)
		} else if len(stopped) == 0 {
			return nil, false
		}
	}
	ok = d.below || len(stopped) == len(d.stop)
	if d.below {
		for _, pid := range descendants(f.guard) {
			if h, ok := holdStopped(pid, 0); ok {
				stopped = append(stopped, h)
			}
		}
	}
	return stopped, ok
}

// process strikes one worker, whose fault lock is held: it stops processes, kills one of
// them or ends leasectl, waits, lets them go on in any order, and starts leasectl again.
func (c *chaosRun) process(ctx context.Context, f fault, w *worker, fam family) (bool, error) {
	d, known := deeds[f.Kind]
	if !known {
		return false, fmt.Errorf("%s is no fault of a process", f.Kind)
	}
	noted := c.note(strike{Kind: f.Kind, Type: w.of.name, Worker: w.name(), family: fam, Begin: boottime()})
	stopped, struck := fam.stop(d)
	if d.kill != nobodys {
		struck = fam.kill(d.kill)
	}
	var gone <-chan struct{}
	if struck && d.end != 0 {
		gone = w.end(d.end, f.Kind)
		struck = gone != nil
	}
	if struck {
		pause(ctx, f.For)
	}
	rand.Shuffle(len(stopped), func(i, j int) { stopped[i], stopped[j] = stopped[j], stopped[i] })
	for _, h := range stopped {
		h.send(unix.SIGCONT)
		h.close()
	}
	if !struck {
		c.withdraw(noted)
		return false, nil
	}
	c.over(noted)
	if gone == nil {
		return true, nil
	}
	if err := w.wait(gone); err != nil {
		return true, err
	}
	return true, w.start()
}
