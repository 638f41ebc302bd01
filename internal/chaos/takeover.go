//go:build linux

package main

import (
	"cmp"
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/slotlease/slotlease/priority"
)

// The scenario of takeovers: holders die at random moments of their slots, or are
// ended in order, and a standby must take over within a bound.
const (
	takeoverSlot     = 10 * time.Second
	takeoverFailover = 2 * time.Second
	takeoverLead     = takeoverFailover / 2 // leasectl's own choice
)

// takeoverTurn is when the turn of the second priority ends, counted from that of the
// first, on the widest turn schedule.
func takeoverTurn() time.Duration {
	return 2 * priority.NewTurns(takeoverLead, 0, takeoverLead).Step
}

// attempt is one try as it is planned.
type attempt struct {
	n     int
	how   kind          // killLeasectl or endLeasectl
	phase time.Duration // from the start of the slot to the death
}

// takeover is one try as it came out, by the boot clock.
type takeover struct {
	attempt

	struck      time.Duration // when the holder was killed, or sent SIGTERM
	worked      bool          // the holder did
	first       time.Duration // the standby's first line; 0 if it didn't come
	uncertainty time.Duration // of store time, the larger of the two workers'
	stalled     time.Duration // how long the harness got no processor in between
	starts      []time.Duration
	void        string // why the try shows nothing
	verdict     verdict
}

// took is the time without work, from the death on.
func (t takeover) took() time.Duration { return t.first - t.struck }

// runTakeover tries as often as asked, and once more for each try that the machine
// was too busy for.
func runTakeover(ctx context.Context, h *harness) (*report, error) {
	measured, err := h.openNew(ctx, gaugeType)
	if err != nil {
		return nil, err
	}
	defer func() { _ = measured.Close(context.WithoutCancel(ctx)) }()
	limited, cancel := context.WithCancel(ctx)
	var watch sync.WaitGroup
	watch.Go(func() { h.fail(h.ask(limited, measured)) })
	defer watch.Wait()
	defer cancel()
	random := drawer(h.seed, "takeover")
	drawn := func(n int, how kind) attempt {
		return attempt{n: n, how: how, phase: time.Duration(random.Int64N(int64(takeoverSlot)))}
	}
	var plan []attempt
	for range h.tries {
		plan = append(plan, drawn(len(plan), killLeasectl), drawn(len(plan)+1, endLeasectl))
	}
	v := &takeoverVerdict{verdict: h.verdict()}
	for again := 0; len(plan) > 0 && again < 3; again++ {
		done, err := sideBySide(ctx, lanes, plan, h.try)
		if err != nil {
			return nil, err
		}
		v.tries = append(v.tries, done...)
		v.judge(&h.gauge)
		plan = nil
		for _, each := range done {
			if v.verdictOf(each) == tooBusyToTell {
				plan = append(plan, drawn(len(v.tries)+len(plan), each.how))
			}
		}
	}
	cancel()
	watch.Wait()
	h.leave(ctx, nil)
	ran := h.verdict()
	v.stalls, v.wrong = ran.stalls, append(v.wrong, ran.wrong...)
	return v.report(), nil
}

// try is one try, with its own worker type.
func (h *harness) try(ctx context.Context, a attempt) (takeover, error) {
	got := takeover{attempt: a}
	of := workerType{
		name: fmt.Sprintf("try-%03d", a.n), interval: takeoverSlot, tieBreak: "sticky", priorities: [perType]int{0, 1}, control: -1,
		flags: []string{"--failover-within", takeoverFailover.String()}, behavior: plainCommand,
	}
	t, err := h.newTeam(ctx, of, 2)
	if err != nil {
		return got, err
	}
	defer t.close(ctx)
	defer t.kill()
	holder, standby := t.workers[0], t.workers[1]
	if err := t.standBy(ctx, holder, standby); err != nil {
		return got, err
	}
	at := nextPhase(takeoverSlot, t.zero, boottime()+200*ms, a.phase)
	if !pause(ctx, at-boottime()) {
		return got, ctx.Err()
	}
	gone := holder.retire(deeds[a.how].end, a.how)
	if gone == nil {
		got.void = "the holder was gone"
		return got, nil
	}
	if err := t.await(ctx, of.name+": the standby works", t.wroteBy(standby)); err != nil {
		got.verdict.bad("%v", err)
	}
	if err := holder.wait(gone); err != nil {
		got.verdict.bad("%v", err)
		return got, nil
	}
	t.kill()
	e, err := t.evidence(ctx)
	if err != nil {
		return got, err
	}
	got.read(e)
	got.stalled = h.stalled(got.struck, cmp.Or(got.first, boottime()))
	return got, nil
}

// standBy starts a worker and, when that works, another one, until it has lost a slot.
func (t *team) standBy(ctx context.Context, holder, standby *worker) error {
	if err := holder.start(); err != nil {
		return err
	}
	if err := t.await(ctx, t.of.name+": the holder works", t.wroteBy(holder)); err != nil {
		return err
	}
	if err := standby.start(); err != nil {
		return err
	}
	return t.await(ctx, t.of.name+": the standby stands by", func() bool { return standby.logged("slot lost") })
}

// wroteBy reports whether a worker's command has written a line since it was asked last.
func (t *team) wroteBy(w *worker) func() bool {
	return t.wrote(func(l line) bool { return l.instance == w.name() })
}
