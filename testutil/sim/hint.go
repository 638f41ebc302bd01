package sim

import (
	"context"
	"errors"
	"time"

	"github.com/slotlease/slotlease/store"
)

// watch is one that a process has under way.
type watch struct {
	changed func(workerType string)
	broken  chan struct{}
}

var errWatch = errors.New("sim: the watch broke")

// watched is the link to a store that gives hints.
type watched struct{ *link }

// Watch tells a process what may free a lease. The faults of hints strike here.
func (k watched) Watch(ctx context.Context, changed func(workerType string)) error {
	p, w := k.p, k.p.world
	x := &watch{changed, make(chan struct{})}
	w.mu.Lock()
	p.watch = x
	p.watches++
	r := newRand(w.o.Seed, forHints, p.number, -p.watches)
	w.mu.Unlock()
	if every := w.o.Faults.HintLies; every > 0 {
		w.lieAgain(p, x, r.next(), 0)
	}
	if every := w.o.Faults.WatchBreaks; every > 0 {
		w.later(p, landLane, r.span(every/20, 3*every), func() { close(x.broken) })
	}
	var err error
	select {
	case <-ctx.Done():
		err = context.Cause(ctx)
	case <-x.broken:
		w.tally.strike(WatchBroke)
		err = errWatch
	}
	w.mu.Lock()
	p.watch = nil
	w.mu.Unlock()
	return err
}

// lieAgain gives a process a hint that nothing is behind, now and then.
func (w *world) lieAgain(p *Process, x *watch, seed uint64, n int64) {
	r := newRand(int64(seed), forHints, p.number, n)
	every := w.o.Faults.HintLies
	if w.now() > w.o.Length {
		return
	}
	w.later(p, landLane, r.span(every/20, 3*every), func() {
		w.mu.Lock()
		watching := p.watch == x
		w.mu.Unlock()
		if !watching {
			return
		}
		w.tally.strike(HintLied)
		for range 1 + r.below(3) {
			w.tell(p, "")
		}
		w.lieAgain(p, x, seed, n+1)
	})
}

// hint tells all processes of a record that has landed, if it may free a lease. The caller holds
// world.mu.
func (w *world) hint(record store.Record) {
	if !w.o.Hints || !store.Frees(record.Kind) {
		return
	}
	f := &w.o.Faults
	for _, h := range w.hosts {
		p := h.running
		if p == nil || p.watch == nil {
			continue
		}
		r := newRand(w.o.Seed, forHints, p.number, record.Seq)
		if r.chance(f.HintLost) {
			w.tally.strike(HintLost)
			continue
		}
		times, workerType := 1, record.WorkerType
		if r.chance(0.2) {
			workerType = "" // The store doesn't know more.
		}
		if r.chance(f.HintTwice) {
			w.tally.strike(HintTwice)
			times = 2
		}
		for range times {
			d := r.upTo(f.Latency)
			if r.chance(f.HintLate) {
				w.tally.strike(HintLate)
				d += r.span(10*time.Millisecond, 5*time.Minute)
			}
			w.later(p, landLane, d+1, func() { w.tell(p, workerType) })
		}
	}
}

// tell lets a hint arrive, when the process runs. A partition keeps it out.
func (w *world) tell(p *Process, workerType string) {
	at := w.now()
	if to := p.host.stalls.resume(at); to > at {
		w.later(p, landLane, to-at+1, func() { w.tell(p, workerType) })
		return
	}
	if _, cut := p.host.cuts.at(at); cut || p.dead.Load() {
		return
	}
	w.mu.Lock()
	x := p.watch
	w.mu.Unlock()
	if x != nil {
		x.changed(workerType)
	}
}
