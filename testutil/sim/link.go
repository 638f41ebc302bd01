package sim

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/slotlease/slotlease/store"
)

// The errors of simulated calls.
var (
	errDead    = errors.New("sim: the process is dead")
	errRefused = errors.New("sim: connection refused")
	errReset   = errors.New("sim: connection reset")
)

// link is a process's connection to the store, a store.Ledger with faults.
type link struct {
	p       *Process
	calls   atomic.Int64
	attends atomic.Int64 // for the roster
}

// op is what a call does.
type op struct {
	workerType string // "" if it asks for the time
	seq        int64  // of an append, else 0
	writes     bool
}

// do runs a call. It has its effect at one instant of true time.
func (k *link) do(ctx context.Context, o op, effect func(at time.Duration, c *call) error) (err error) {
	p := k.p
	w := p.world
	sent := w.now()
	defer func() {
		switch took := w.now() - sent; {
		case o.workerType == store.Sightings: // Workers don't go by how long these take.
		case o.seq > 0:
			p.spent.appendTrips.took(took, err)
		case !o.writes:
			p.spent.readTrips.took(took, err)
		}
	}()
	if p.dead.Load() {
		return errDead
	}
	appends := o.seq > 0
	p.health.calls(w.now(), p.host.stalls)
	c := k.plan(appends)
	if c.wrong(&w.o.Faults) {
		recovers := p.health.ails()
		defer func() { recovers(w.now(), c.longer()) }()
	}
	if err := k.travel(ctx, c.before, requestLane); err != nil {
		if appends && !c.lost {
			// It is on its way nevertheless.
			k.land(max(c.late, c.before), effect)
		}
		p.health.ail(w.now())
		return k.arrive(err)
	}
	at := w.now()
	down := w.server.down(at)
	cut, isCut := p.host.cuts.at(at)
	switch {
	case isCut && cut.kind == Partition:
		w.tally.strike(Partition)
		p.health.ail(w.now() + time.Minute)
		return k.arrive(k.silence(ctx))
	case down != "":
		if down == Outage {
			w.tally.strike(down)
		}
		return k.arrive(fmt.Errorf("%w: %s", errRefused, down))
	}
	if v, voting := w.server.vote(at); voting {
		if err, done := k.elect(ctx, v, o, &c, effect); done {
			p.health.ail(w.now())
			return k.arrive(err)
		}
	}
	switch {
	case c.late > 0 && c.rand.chance(0.3):
		// It hangs until trimming frees its key, if that happens.
		w.hang(k, effect, o)
	case c.late > 0:
		k.land(c.late, effect)
	case !c.lost:
		err = effect(at, &c)
	}
	if isCut {
		w.tally.strike(OneWay)
		p.health.ail(w.now() + time.Minute)
		return k.arrive(k.silence(ctx))
	}
	if c.kind != "" && (c.kind != OwnConflict || err == nil) {
		w.tally.strike(c.kind)
	}
	if c.silent {
		return k.arrive(k.silence(ctx))
	}
	if err := k.travel(ctx, c.after, replyLane); err != nil {
		return k.arrive(err)
	}
	if c.err != nil {
		err = c.err
	}
	return k.arrive(err)
}

// travel waits while a message travels, but no longer than its caller does.
func (k *link) travel(ctx context.Context, d time.Duration, l lane) error {
	if d == 0 && l == replyLane {
		return nil // It has taken a moment already.
	}
	p := k.p
	at := p.world.now()
	d = p.slot(at+d+1, l) - at
	if end, ok := ctx.Deadline(); ok && p.world.origin.Add(at+d).Before(end) {
		time.Sleep(d)
		return nil
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// silence waits for a reply that never comes.
func (k *link) silence(ctx context.Context) error {
	<-ctx.Done()
	return context.Cause(ctx)
}

// arrive lets a reply arrive: only when the process runs, and never if it is dead.
func (k *link) arrive(err error) error { return k.arriveIn(replyLane, err) }

// arriveIn is arrive at an instant of a lane.
func (k *link) arriveIn(l lane, err error) error {
	p := k.p
	at := p.world.now()
	if to := p.host.stalls.resume(at); to > at {
		time.Sleep(p.slot(to+1, l) - at)
	}
	if p.dead.Load() {
		return errDead
	}
	return err
}

// land gives a call its effect later, when its caller has stopped waiting.
func (k *link) land(d time.Duration, effect func(time.Duration, *call) error) {
	w := k.p.world
	if w.now()+d >= w.o.Length+24*time.Hour {
		return
	}
	w.later(k.p, landLane, d+1, func() {
		c := call{}
		if effect(w.now(), &c) == nil { // No caller gets the answer.
			w.tally.strike(LandedLate)
		}
	})
}

// Append inserts a record unless its key exists.
func (k *link) Append(ctx context.Context, r store.Record) error { return k.insert(ctx, r, nil) }

// insert appends a record; right above prev, unless that is nil.
func (k *link) insert(ctx context.Context, r store.Record, prev *store.Record) error {
	if err := r.Check(); err != nil {
		return err
	}
	r = r.Truncated()
	if r.WorkerType != store.Sightings {
		k.p.sent(r)
		k.p.claims(r.Claim)
	}
	k.p.spent.appends.Add(1)
	sent := k.p.world.now()
	err := k.do(ctx, op{r.WorkerType, r.Seq, true}, func(at time.Duration, c *call) error { return k.p.world.appendAfter(k.p, r, prev, at, c) })
	if err == nil && r.WorkerType == k.p.options.WorkerType {
		k.p.knows(k.p.world.now(), r)
	}
	if r.WorkerType != store.Sightings && r.Kind != store.KindOutcome { // Workers don't go by how long these take.
		k.p.spent.took(k.p.world.now() - sent)
	}
	k.p.tracef("append %d %s %.8s: %v", r.Seq, r.Kind, r.Claim, err)
	return err
}

// Get returns the record at a key.
func (k *link) Get(ctx context.Context, workerType string, seq int64) (store.Record, error) {
	var out store.Record
	k.p.spent.gets.Add(1)
	k.p.counts()
	err := k.do(ctx, op{workerType: workerType}, func(_ time.Duration, c *call) (err error) {
		out, err = k.p.world.get(workerType, seq, c)
		return err
	})
	k.p.tracef("get %d: %.8s %v", seq, out.Claim, err)
	if err != nil {
		return store.Record{}, err
	}
	k.p.readsBack(out)
	return out, nil
}

// Tail returns the newest records.
func (k *link) Tail(ctx context.Context, workerType string, limit int) ([]store.Record, store.Stamp, error) {
	var out []store.Record
	var stamp store.Stamp
	var read time.Duration
	k.p.spent.reads.Add(1)
	k.p.counts()
	sent := k.p.world.now()
	err := k.do(ctx, op{workerType: workerType}, func(at time.Duration, c *call) error {
		out = k.p.world.tail(workerType, limit, c)
		if !k.p.world.o.Faults.NoFreeStamp {
			stamp = k.p.world.stamp(k.p, at, &c.rand)
		}
		read = at
		return nil
	})
	k.p.tracef("tail %d: %d %v", limit, len(out), err)
	if err != nil {
		return nil, store.Stamp{}, err
	}
	heard := answer{sent: sent, left: read, stamp: stamp}
	if workerType == k.p.options.WorkerType {
		k.p.readAt.Store(int64(read))
		heard.read, heard.shown = true, out
		k.p.knows(read, out[:min(1, len(out))]...)
		if len(out) > 0 {
			k.p.hearsOrders(out[0], k.p.world.going())
		}
	}
	k.p.hears(heard)
	if !stamp.IsZero() {
		k.p.askedAt.Store(int64(k.p.world.now()))
		k.p.heard(stamp, sent, k.p.world.now())
	}
	return out, stamp, nil
}

// Trim deletes old records.
func (k *link) Trim(ctx context.Context, workerType string, before int64) (int, error) {
	n := 0
	k.p.spent.trims.Add(1)
	err := k.do(ctx, op{workerType: workerType, writes: true}, func(at time.Duration, _ *call) error {
		n = k.p.world.trim(k.p, workerType, before, at)
		return nil
	})
	k.p.tracef("trim %d: %d %v", before, n, err)
	return n, err
}

// Now returns the store's time.
func (k *link) Now(ctx context.Context) (store.Stamp, error) {
	var stamp store.Stamp
	var answered time.Duration
	k.p.spent.asks.Add(1)
	k.p.counts()
	sent := k.p.world.now()
	err := k.do(ctx, op{}, func(at time.Duration, c *call) error {
		stamp, answered = k.p.world.stamp(k.p, at, &c.rand), at
		return nil
	})
	k.p.tracef("now: %v", err)
	if err != nil {
		return store.Stamp{}, err
	}
	k.p.askedAt.Store(int64(k.p.world.now()))
	k.p.heard(stamp, sent, k.p.world.now())
	k.p.hears(answer{sent: sent, left: answered, stamp: stamp})
	return stamp, nil
}

// Init has nothing to create.
func (k *link) Init(context.Context) error { return nil }

// WorkerTypes lists the worker types that have records.
func (k *link) WorkerTypes(context.Context) ([]string, error) { return k.p.world.workerTypes(), nil }

// Close has nothing to close: the store outlives its users.
func (k *link) Close(context.Context) error { return nil }
