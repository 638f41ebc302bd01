//go:build linux

package main

import (
	"context"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"
	"golang.org/x/sys/unix"
)

// The scenario of rolling deployments: the workers of a type are ended in order and started again, one after
// the other, over the boundary of a slot. A slot stands for a night or for minutes, and the times of a deployment
// are as much shorter. A leader's next worker is ended when the one before is ready again. Those of a job aren't waited
// for, so that at times none is there: it is enough that one comes while the slot may yet begin.
const (
	rollingSlot     = 20 * time.Second
	rollingFailover = 3 * time.Second
	rollingStart    = rollingSlot / 4 // leasectl's own choice of --start-within
	rollingRest     = 2 * time.Second // the longest time without a worker, and from one worker to the next
	mostRolling     = 5               // workers
)

// rollingLimit is how long nobody may lead: what was promised, with a second for the turns, the uncertainty of store
// time, requests, and the start of a command.
const rollingLimit = rollingFailover + time.Second

// deployment is one try as it is planned.
type deployment struct {
	n     int
	leads bool            // a leader; else a job that is done once for each slot
	order []int           // of the workers
	gaps  []time.Duration // from the end of a worker to its next start
	rests []time.Duration // after that
	lead  time.Duration   // from the first end to the boundary
}

// of is the worker type of a try.
func (d deployment) of() workerType {
	t := workerType{
		name: fmt.Sprintf("job-%03d", d.n), interval: rollingSlot, tieBreak: "sticky", control: -1, behavior: "0.15", // of a slot, which a deployment may cut
		flags: []string{"--failover-within", rollingFailover.String(), "--once-per-slot"},
	}
	if d.leads {
		t.name, t.behavior = fmt.Sprintf("leader-%03d", d.n), plainCommand
		t.flags = append(t.flags[:2], "--continuous", "--no-failback")
	}
	return t
}

// deployments draws what to try: as many of a leader as of a job.
func (h *harness) deployments() (plan []deployment) {
	random := drawer(h.seed, "rolling")
	for n := range 2 * h.tries {
		d := deployment{n: n, leads: n%2 > 0, order: random.Perm(2 + random.IntN(mostRolling-1))}
		long := time.Duration(0)
		for range d.order {
			gap, rest := time.Duration(random.Int64N(int64(rollingRest))), time.Duration(random.Int64N(int64(rollingRest)))
			if !d.leads {
				rest /= 8
			}
			d.gaps, d.rests = append(d.gaps, gap), append(d.rests, rest)
			if long += rest; d.leads || len(d.gaps) == len(d.order) {
				long += gap
			}
		}
		d.lead = time.Duration(random.Int64N(int64(long)))
		plan = append(plan, d)
	}
	return plan
}

// runRolling tries as often as asked, and once more what the machine was too busy for.
func runRolling(ctx context.Context, h *harness) (*report, error) {
	v := &rollingVerdict{}
	plan := h.deployments()
	for again := 0; len(plan) > 0 && again < 3; again++ {
		found, err := sideBySide(ctx, lanes, plan, h.deploy)
		if err != nil {
			return nil, err
		}
		var busy []deployment
		for i, d := range plan {
			v.add(found[i])
			if found[i].busy > 0 {
				d.n += 2 * h.tries
				busy = append(busy, d)
			}
		}
		plan = busy
	}
	if len(plan) > 0 {
		v.bad("the machine was too busy for %d deployments, three times", len(plan))
	}
	h.leave(ctx, nil)
	ran := h.verdict()
	v.settings, v.stalls, v.wrong = ran.settings, ran.stalls, append(v.wrong, ran.wrong...)
	return v.report(), nil
}

// deploy is one try, with its own worker type.
func (h *harness) deploy(ctx context.Context, d deployment) (v rollingVerdict, err error) {
	t, err := h.newTeam(ctx, d.of(), len(d.order))
	if err != nil {
		return v, err
	}
	defer t.close(ctx)
	for _, w := range t.workers {
		w.older = h.older != "" // A deployment brings this version.
	}
	if err := h.start(ctx, t.workers...); err != nil {
		return v, err
	}
	ready := boottime()
	if d.leads {
		if err := t.await(ctx, t.of.name+": a command works", t.wrote(func(line) bool { return true })); err != nil {
			v.bad("%v", err)
		}
	}
	boundary := nextPhase(rollingSlot, t.zero, boottime()+d.lead, 0)
	if err := t.roll(ctx, d, boundary); err != nil {
		return v, err
	}
	over := boottime()
	for _, w := range t.workers {
		if err := w.wait(w.retire(unix.SIGTERM, endLeasectl)); err != nil {
			v.bad("%v", err)
		}
	}
	e, err := t.evidence(ctx)
	if err != nil {
		return v, err
	}
	v.judge(e, 0)
	v.replaced = len(d.order)
	if d.leads {
		v.judgeLeader(t.of, e.turns, ready, over, &h.gauge)
	} else {
		v.judgeJob(t.of, e.lines, e.zero, boundary, &h.gauge)
	}
	return v, nil
}

// roll replaces the workers around a boundary, and waits until what comes of that must show.
func (t *team) roll(ctx context.Context, d deployment, boundary time.Duration) error {
	if !pause(ctx, boundary-d.lead-boottime()) {
		return ctx.Err()
	}
	var replaced errgroup.Group
	for i, n := range d.order {
		replaced.Go(func() error { return t.replace(ctx, t.workers[n], d.gaps[i]) })
		if d.leads {
			if err := replaced.Wait(); err != nil {
				return err
			}
		}
		if !pause(ctx, d.rests[i]) {
			return ctx.Err()
		}
	}
	if err := replaced.Wait(); err != nil {
		return err
	}
	if !d.leads { // Attempts may be repeated, as long as the slot lasts.
		done := t.wrote(func(l line) bool { return l.event == ended && l.boot > boundary })
		for !done() && boottime() < boundary+rollingSlot*9/10 && pause(ctx, 50*ms) {
		}
	}
	if !pause(ctx, max(boundary, boottime())+rollingLimit-boottime()) {
		return ctx.Err()
	}
	return nil
}

// replace ends a worker in order, starts it again after a gap, as this version, and waits until it is ready.
func (t *team) replace(ctx context.Context, w *worker, gap time.Duration) error {
	gone := w.end(unix.SIGTERM, endLeasectl)
	if gone == nil {
		return fmt.Errorf("%s is gone", w.name())
	}
	if err := w.wait(gone); err != nil {
		return err
	}
	if !pause(ctx, gap) {
		return ctx.Err()
	}
	w.older = false
	return t.start(ctx, w)
}
