package sim

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/slotlease/slotlease/store"
)

// roster is the store's, with its past: each version of each presence, oldest first.
type roster map[string][]version

// version is what was written of a presence at a true time; nil: it was removed.
type version struct {
	at time.Duration
	p  *store.Presence
}

var _ store.Roster = (*link)(nil)

// keptVersions is how much of the past of a presence is kept.
const keptVersions = 100

// write adds a version. The caller holds world.mu.
func (w *world) writePresence(key string, p *store.Presence) {
	if w.roster == nil {
		w.roster = roster{}
	}
	past := append(w.roster[key], version{w.now(), p})
	w.roster[key] = past[max(0, len(past)-keptVersions):]
}

// Attend stores presences.
func (k *link) Attend(ctx context.Context, presences []store.Presence) error {
	for i := range presences {
		if err := presences[i].Check(); err != nil {
			return err
		}
	}
	return k.attend(ctx, func(r *rand) {
		if r.chance(k.p.world.o.Faults.RosterLost) {
			k.p.world.tally.strike(RosterLost)
			return
		}
		for _, p := range presences {
			p.Labels = maps.Clone(p.Labels)
			k.p.world.writePresence(p.WorkerType+":"+p.ID, &p)
		}
	})
}

// Leave removes presences.
func (k *link) Leave(ctx context.Context, workerType string, ids []string) error {
	return k.attend(ctx, func(*rand) {
		for _, id := range ids {
			k.p.world.writePresence(workerType+":"+id, nil)
		}
	})
}

// Presences lists presences, as they are or were.
func (k *link) Presences(ctx context.Context, workerType string) (list []store.Presence, err error) {
	w := k.p.world
	err = k.attend(ctx, func(r *rand) {
		at := w.now()
		if r.chance(w.o.Faults.RosterOld) {
			w.tally.strike(RosterOld)
			at -= r.span(time.Second, time.Hour)
		}
		// Keys have random parts, and draws must not depend on their order but for one process.
		for _, key := range slices.Sorted(maps.Keys(w.roster)) {
			var p *store.Presence
			for _, v := range w.roster[key] {
				if v.at <= at {
					p = v.p
				}
			}
			if p != nil && (workerType == "" || p.WorkerType == workerType) {
				list = append(list, w.lieOf(*p, r))
			}
		}
	})
	if err != nil {
		return nil, err
	}
	return list, nil
}

// attend is the course of a call for the roster. What goes wrong there is no excuse for anything else, so the
// world's health knows nothing of it. The effect has world.mu.
func (k *link) attend(ctx context.Context, effect func(*rand)) error {
	p, w := k.p, k.p.world
	if p.dead.Load() {
		return errDead
	}
	f := &w.o.Faults
	r := newRand(w.o.Seed, forRoster, p.number, k.attends.Add(1))
	if err := k.travel(ctx, r.upTo(f.Latency)+p.host.far, watchLane); err != nil {
		return k.arriveIn(watchLane, err)
	}
	at := w.now()
	_, cut := p.host.cuts.at(at)
	switch down := w.server.down(at); {
	case cut, r.chance(f.BlackHole):
		return k.arriveIn(watchLane, k.silence(ctx))
	case down != "":
		return k.arriveIn(watchLane, fmt.Errorf("%w: %s", errRefused, down))
	case r.chance(f.Failed):
		return k.arriveIn(watchLane, errReset)
	}
	w.mu.Lock()
	effect(&r)
	w.mu.Unlock()
	err := k.travel(ctx, r.upTo(f.Latency)+p.host.far, watchLane)
	if err == nil && r.chance(f.LostReply) {
		err = errReset
	}
	return k.arriveIn(watchLane, err)
}

// lieOf is a presence as it is read: wrong, with the probability that the faults say.
func (w *world) lieOf(p store.Presence, r *rand) store.Presence {
	if !r.chance(w.o.Faults.RosterLies) {
		return p
	}
	w.tally.strike(RosterLied)
	far := r.either(1000 * time.Hour)
	for _, lie := range []func(){
		func() {
			p.Phase = []store.Phase{store.PhaseHolder, store.PhaseStandby, store.PhaseStopped, store.PhaseStepping, "asleep"}[r.below(5)]
		},
		func() { p.Effective, p.Priority = r.below(100)-50, r.below(100)-50 },
		func() { p.Failures, p.StepsBackUntil = r.below(store.MaxFailures), p.StepsBackUntil.Add(far) },
		func() { p.StepsBackUntil = time.Date(9000, 1, 1, 0, 0, 0, 0, time.UTC) },
		func() { p.FailedIn = p.Seen.Add(far) },
		func() { p.Seen, p.Next = p.Seen.Add(far), p.Next.Add(far) },
		func() { p.Next = p.Next.Add(far) },
		func() { p.Since = p.Since.Add(far) },
		func() {
			p.InstanceID, p.Client = w.hosts[r.below(len(w.hosts))].options.InstanceID, fmt.Sprint(r.below(5))
		},
		func() { p.Spreads, p.Ineligible = r.chance(0.5), "ill" },
		func() { p = store.Presence{} },
		func() { p.Labels = nil },
	} {
		if r.chance(0.2) {
			lie()
		}
	}
	return p
}

// doom lets the process crash soon, if it is one that does so in each lease.
func (p *Process) doom() {
	w := p.world
	if n := w.o.Faults.CrashLoops * float64(w.o.Workers); float64(p.Worker) >= n {
		return
	}
	p.crashSoon(CrashLoop)
}

// crashSoon lets the process crash, once.
func (p *Process) crashSoon(why Fault) {
	w := p.world
	w.later(p, lifeLane, time.Second, func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		select {
		case <-p.doomed:
		default:
			w.tally.strike(why)
			close(p.doomed)
		}
	})
}
