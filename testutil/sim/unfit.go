package sim

import (
	"context"
	"errors"
	"time"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/workerlease"
)

// errUnfit is what a worker's check says in an illness.
var errUnfit = errors.New("sim: the worker is ill")

// drawIlls draws when a worker is not fit to lead.
func (w *world) drawIlls(worker int64) outages {
	f := w.o.Faults
	return drawOutages(w.o.Seed, forIlls, worker, f.Illnesses, w.o.Length, func(r *rand) (Fault, time.Duration) {
		return Unfit, r.span(time.Second, min(10*time.Minute, f.Illnesses))
	})
}

// checks lets the process be asked whether it is fit.
func (p *Process) checks() {
	f := p.world.o.Faults
	if f.Illnesses == 0 && f.BadChecks == 0 {
		return
	}
	if p.options.Eligible == nil {
		p.options.Eligible = p.eligible
	}
	if o, err := p.options.Resolved(); err == nil {
		p.heeds = widened(o.EligibleEvery) + o.EligibleEvery + o.EligibleTimeout + noticing
	}
}

// noticing is how long it takes, at the most, until a process that runs has acted on an answer.
const noticing = 100*time.Millisecond + 2*timerOff

// eligible is the check of the process's user. Some of its calls take longer than they may, or panic.
func (p *Process) eligible(ctx context.Context) error {
	w, at := p.world, p.world.now()
	if p.dead.Load() {
		return errUnfit
	}
	r := newRand(w.o.Seed, forIlls, p.number, int64(at))
	if r.chance(w.o.Faults.BadChecks) {
		w.tally.strike(BadCheck)
		if r.chance(0.3) {
			p.health.ail(at + 2*p.heeds)
			panic(onPurpose)
		}
		long := r.span(time.Millisecond, time.Minute)
		p.health.ail(at + long + 3*p.heeds)
		<-ctx.Done()
		p.clock.Sleep(long)
	}
	if _, ill := p.host.ills.at(at); ill {
		return errUnfit
	}
	return nil
}

// ill reports whether the process may have taken itself for unfit between two true times. It
// leaves the rest of a slot to others in which it did.
func (p *Process) ill(from, to time.Duration) bool {
	from -= p.heeds + p.host.interval
	i := p.host.ills.after(from)
	return i < len(p.host.ills) && p.host.ills[i].from <= to
}

// knowsIll reports whether the process must know, at a true time, that it is ill: it has been for so
// long that it was asked, and nothing kept it from that.
func (p *Process) knowsIll(at time.Duration) bool {
	x, ill := p.host.ills.at(at)
	since := max(x.from, p.began)
	if !ill || at-since <= p.heeds || p.dead.Load() || p.world.o.Faults.SlowObserver > 0 && !p.health.well(since) {
		return false
	}
	stalls := p.host.stalls
	i := stalls.after(since - time.Second)
	return i >= len(stalls) || stalls[i].from > at
}

// heedsIllness checks that the process does nothing that only a fit one may. The caller holds world.mu.
func (p *Process) heedsIllness(what string) {
	if at := p.world.now(); !p.options.KeepIneligible && p.knowsIll(at) {
		x, _ := p.host.ills.at(at)
		p.world.violate("%v %s, and has not been eligible since %v", p, what, x.from)
	}
}

// claimsFit checks a claim that is sent. An extension is none: it goes with its lease, and what was
// sent without an answer is sent again. The caller holds world.mu.
func (p *Process) claimsFit(r store.Record, again bool) {
	if !again && p.leases[r.Token] == nil {
		p.heedsIllness("claims a slot")
	}
}

// stepsDown checks later, for all illnesses to come, that the process has given up its lease. The
// caller holds world.mu.
func (p *Process) stepsDown() {
	w, now := p.world, p.world.now()
	ills := p.host.ills
	for _, x := range ills[ills.after(now):] {
		w.later(p, lookLane, max(x.from-now, 0)+p.heeds+time.Millisecond, func() {
			w.mu.Lock()
			defer w.mu.Unlock()
			l := p.lease
			if l == nil || l.Began > x.from || l.Ended > 0 && l.Ended < x.from || !p.knowsIll(w.now()) {
				return
			}
			w.demands.Unfit++
			if !l.left && !l.over() {
				p.heedsIllness("works on under " + l.String())
			}
		})
	}
}

// leaves notes that user code has returned. If it was the last, and its worker is not fit, others
// follow. The caller holds world.mu.
func (p *Process) leaves(x *Lease) {
	x.overAt = p.world.now()
	p.mustRelease(x)
	if x.over() && x == p.lease && !x.Crashed && (x.Why == workerlease.Ineligible || x.Why == workerlease.Stalled || x.Why == workerlease.AskedToRelease) {
		p.world.lookSucceeded(p, "stepped down")
	}
}

// pace is how code shows progress under a lease: before each wait of at most most, if that is not 0, up to
// a number of them.
type pace struct {
	p     *Process
	lease *Lease
	most  time.Duration
	left  int
}

func (p *Process) pace(l workerlease.Lease) *pace {
	w, most := p.world, p.options.ProgressWithin/2
	a := &pace{p: p, most: most, left: -1}
	r := newRand(w.o.Seed, forIlls, p.number, -l.Token)
	if most > 0 && r.chance(w.o.Faults.Stuck) {
		a.left = 1 + r.below(8)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	a.lease = p.leases[l.Token]
	return a
}

// wait shows progress, and bounds a wait.
func (a *pace) wait(l workerlease.Lease, d time.Duration) time.Duration {
	p, w := a.p, a.p.world
	if a.most == 0 || a.lease == nil {
		return d
	}
	if a.left != 0 {
		l.Progress()
		if a.left--; a.left == 0 {
			w.tally.strike(Stuck)
			w.mu.Lock()
			defer w.mu.Unlock()
			since := w.now()
			w.later(p, lookLane, widened(2*a.most)+2*a.most+noticing, func() { p.mustEnd(a.lease, since) })
		}
	}
	return min(d, a.most)
}

// mustEnd checks that a lease has ended whose code has shown no progress since a true time.
func (p *Process) mustEnd(x *Lease, since time.Duration) {
	w := p.world
	w.mu.Lock()
	defer w.mu.Unlock()
	stalls := p.host.stalls
	i := stalls.after(since)
	if p.dead.Load() || w.o.Faults.SlowObserver > 0 && !p.health.well(since) || i < len(stalls) && stalls[i].from <= w.now() {
		return
	}
	w.demands.Unfit++
	if !x.left && !x.over() {
		w.violate("%v has shown no progress since %v, and goes on", x, since)
	}
}
