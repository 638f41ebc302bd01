package sim

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/benbjohnson/clock"

	"github.com/slotlease/slotlease/internal/skew"
	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/workerlease"
	"github.com/slotlease/slotlease/workerlease/event"
)

// Process is one life of a worker. It runs the real engine until it crashes, is stopped,
// or the run ends.
type Process struct {
	// Worker is the number of the worker, and Life that of its process, both from 0.
	Worker, Life int

	world    *world
	host     *host
	number   int64
	lanes    time.Duration
	clock    *hostClock
	user     *hostClock // the same, for user code
	options  workerlease.Options
	margin   time.Duration
	failover time.Duration // with the default of a Job
	patience time.Duration // how long it waits at most before it calls again
	heeds    time.Duration // by when it surely acts on an illness
	dead     atomic.Bool
	readAt   atomic.Int64 // when it last read the ledger
	askedAt  atomic.Int64 // when it last got the store's time
	leasing  atomic.Pointer[workerlease.WorkerLease]
	leaving  atomic.Bool // it is being stopped
	overruns atomic.Bool // its code kept it from claiming, and may still do so
	began    time.Duration
	health   health
	answers  answers
	spent    spent
	rate     rate
	shared   atomic.Bool  // its user code may call the store, too
	back     atomic.Int64 // until when it lets others go first
	short    atomic.Int64 // waits of the engine in a row that are too short
	looked   atomic.Int64 // when it last read its clock
	atOnce   atomic.Int64 // and how often it has done so at that instant

	// Guarded by world.mu.
	lease   *Lease           // the newest
	leases  map[int64]*Lease // by token
	freed   map[int64]bool   // tokens of terms whose release was sent
	asked   string           // the claim of its newest append
	askedAs int64            // and its key
	sends   map[string]bool  // the appends that it has sent, if operators ask for runs
	claimed string           // the newest claim whose turn was looked at
	lied    bool             // its first stamp was wrong
	trusted time.Duration    // when it got its newest stamp that was wrong, or began
	reach   time.Time        // the end of the newest window that it claimed
	clocks  *skew.Clocks     // of the store's members, as it measured them
	doomed  chan struct{}    // closed when it is to crash
	orders  []heard          // that it has heard of, oldest first
	watch   *watch           // of its client, if it has one under way
	watches int64            // how many it has begun
}

func (w *world) newProcess(h *host, life int) *Process {
	number := int64(life)*int64(len(w.hosts)) + h.worker
	p := &Process{
		Worker: int(h.worker), Life: life, world: w, host: h, number: number + 1,
		lanes:   time.Duration(number%1000) * lanes,
		doomed:  make(chan struct{}),
		options: h.options, leases: map[int64]*Lease{}, freed: map[int64]bool{}, sends: map[string]bool{},
	}
	p.trusted = w.now()
	p.clock = &hostClock{Clock: clock.New(), p: p}
	p.clock.wall = p.clock.wrong(w.now())
	p.user = &hostClock{Clock: p.clock.Clock, p: p, first: userWakeLane, wall: p.clock.wall}
	p.checks()
	if o, err := p.options.Resolved(); err == nil {
		p.failover, p.patience = o.FailoverWithin, o.MaxBackoff
	}
	if p.options.Retention == 0 {
		p.options.Retention = workerlease.DefaultRetention
	}
	p.margin = p.options.Margin
	if p.margin == 0 {
		// With a Schedule, or the default interval, this is a lower bound.
		p.margin = min(p.options.LeaseInterval/100, 250*time.Millisecond)
		if d := p.options.FailoverWithin; d > 0 {
			p.margin = min(p.margin, d/20)
		}
		p.margin = max(p.margin, 10*time.Millisecond)
	}
	return p
}

// String names the process, such as "w3.1".
func (p *Process) String() string { return fmt.Sprintf("w%d.%d", p.Worker, p.Life) }

// Clock is the process's own clock. Simulated code must use it for all waits. Its Ticker and
// Tick, and a Timer after Reset, go by true time instead, through pauses and suspends: make
// a new Timer for each wait.
func (p *Process) Clock() clock.Clock { return p.user }

// Leasing is the worker that the process runs, for code that calls Holder or RunIfHeld. It
// is nil with Options.Task and before the first callback. Its Client is that of the process.
// Work doesn't know a lease that TryClaim gets there.
func (p *Process) Leasing() *workerlease.WorkerLease {
	p.shared.Store(true)
	return p.leasing.Load()
}

// Dead reports whether the process has crashed. Its code then has no effect any more, and
// should return.
func (p *Process) Dead() bool { return p.dead.Load() }

// run runs the process until it ends.
func (p *Process) run(age time.Duration, crashes bool) {
	w := p.world
	var local clock.Clock = p.clock
	if !p.host.boottime {
		local = plainClock{p.clock}
	}
	born := w.now()
	p.born()
	defer p.live(nil)
	p.live(p)
	var ledger store.Ledger = &link{p: p}
	if w.o.Hints {
		ledger = watched{&link{p: p}}
	}
	client := w.o.Client(ledger, workerlease.ClientOptions{Clock: local, Observer: event.ObserverFunc(p.observe), Rand: randomness{p}, Roster: w.o.Roster})
	engine, err := p.start(client)
	if err != nil {
		w.fail(fmt.Errorf("Options.Worker(%d): %w", p.Worker, err))
		return
	}
	p.tracef("starts")
	w.lives.Go(func() {
		<-engine.done // Its own code may also stop it.
		p.leaving.Store(true)
	})
	at := w.now()
	// A process that is paused notices no signal.
	select {
	case <-time.After(p.slot(p.host.stalls.resume(min(at+age, w.o.Length))+1, lifeLane) - at):
	case <-p.doomed:
		crashes = true
	}
	w.tally.passed(p.host.stalls, born, w.now())
	w.tally.passed(p.host.steps, born, w.now())
	w.tally.passed(p.host.ills, born, w.now())
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute+p.lanes)
	switch {
	case w.now() >= w.o.Length:
		p.leaving.Store(true)
	case crashes:
		// What this process does now has no effect, but an append that it sent may land.
		w.tally.strike(Crash)
		p.die()
		cancel()
	default:
		w.tally.strike(Stop)
		p.leaving.Store(true)
		p.tracef("is stopped")
	}
	w.lives.Go(func() {
		defer cancel()
		engine.stop(ctx)
		<-engine.done
		p.ended()
	})
	if !crashes {
		<-engine.done
	}
}

// engine is what a process runs.
type engine struct {
	stop func(context.Context)
	done <-chan struct{}
}

// start starts the real engine.
func (p *Process) start(client *workerlease.Client) (engine, error) {
	w := p.world
	if w.o.Task == nil {
		cb := w.o.Callbacks(p)
		if cb.LeaseAllocated == nil {
			return engine{}, errors.New("Options.Callbacks gives no LeaseAllocated")
		}
		l, err := client.StartLeasing(context.Background(), p.options, p.guarded(cb))
		if err != nil {
			return engine{}, err
		}
		p.leasing.Store(l)
		return engine{func(ctx context.Context) { _ = l.StopLeasing(ctx) }, l.Done()}, nil
	}
	task := w.o.Task(p)
	if task == nil {
		return engine{}, errors.New("Options.Task gives no task")
	}
	ctx, cancel := context.WithCancel(context.Background())
	done, refused := make(chan struct{}), make(chan error, 1)
	go func() {
		defer close(done)
		if err := client.Run(ctx, p.options, p.guardedTask(task)); errors.Is(err, workerlease.ErrOptions) {
			refused <- err
		}
	}()
	select {
	case err := <-refused:
		cancel()
		return engine{}, err
	case <-time.After(1): // Run checks its options at once.
	}
	return engine{func(context.Context) { cancel() }, done}, nil
}

// live notes the process that runs on its host now; nil if none does.
func (p *Process) live(now *Process) {
	w := p.world
	w.mu.Lock()
	if p.began == 0 {
		p.began = w.now()
	}
	p.host.running = now
	if now != nil {
		p.stepsDown()
	}
	w.mu.Unlock()
	if now != nil {
		w.lookBorn(p)
	}
}

// born counts the faults that this process has from its birth.
func (p *Process) born() {
	w := p.world
	switch drift := w.o.Faults.Drift; {
	case drift > 0.001:
		w.tally.strike(Racing)
	case drift > 0:
		w.tally.strike(Drift)
	}
	for i := range p.Worker {
		if id := p.options.InstanceID; id != "" && w.hosts[i].options.InstanceID == id {
			w.tally.strike(SharedName)
		}
	}
}

// die ends the process as kill -9 does.
func (p *Process) die() {
	w := p.world
	w.mu.Lock()
	defer w.mu.Unlock()
	p.tracef("dies")
	p.dead.Store(true)
	if l := p.lease; l != nil && !l.over() {
		l.Crashed = true
		l.Ended = w.now()
		w.leave(l)
		if !l.left {
			w.lookSucceeded(p, "died")
		}
	}
}

// ended checks the last lease of a process that has ended.
func (p *Process) ended() {
	w := p.world
	w.mu.Lock()
	defer w.mu.Unlock()
	if l := p.lease; l != nil && !l.Crashed && l.Expiries != 1 {
		w.violate("%v has ended, and LeaseExpired was called %d times for %v", p, l.Expiries, l)
	}
}
