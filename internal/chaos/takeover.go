//go:build linux

package main

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/slotlease/slotlease/priority"
	"github.com/slotlease/slotlease/store"
)

// The scenario of takeovers: holders die at random moments of their slots, or are
// ended in order, and a standby works on within a bound.
const (
	takeoverSlot     = 10 * time.Second
	takeoverFailover = 2 * time.Second
	takeoverLead     = takeoverFailover / 2 // leasectl's own choice
	// lanes is how many worker types are there at once. Each has two leasectl and one
	// command: they are idle nearly all of the time.
	lanes = 12
)

// attempt is one try as it is planned.
type attempt struct {
	n     int
	how   kind          // killLeasectl or endLeasectl
	phase time.Duration // from the start of the slot to the death
}

// takeover is one try as it came out, by the boot clock.
type takeover struct {
	attempt

	struck      time.Duration // when the holder was killed, or told to end
	last        time.Duration // the holder's last line
	first       time.Duration // the standby's first line; 0 if it didn't come
	uncertainty time.Duration // of store time, of the one who knew it less well
	stalled     time.Duration // how long the harness got no processor in between
	starts      []time.Duration
	void        string // why the try tells nothing
	wrong       []string
}

// took is how long nobody worked, from the death on.
func (t takeover) took() time.Duration { return t.first - t.struck }

// playTakeover tries as often as asked, and once more for each try that the machine
// was too busy for.
func playTakeover(ctx context.Context, t *theatre) (report, error) {
	measured, err := t.openNew(ctx, gaugeType)
	if err != nil {
		return nil, err
	}
	defer func() { _ = measured.Close(context.WithoutCancel(ctx)) }()
	g := &gauge{}
	limited, cancel := context.WithCancel(ctx)
	var watch sync.WaitGroup
	watch.Go(func() { g.feel(limited) })
	watch.Go(func() {
		if err := g.ask(limited, measured); err != nil {
			t.bad("the harness: %v", err)
		}
	})
	stop := func() {
		cancel()
		watch.Wait()
	}
	defer stop()
	random := rand.New(rand.NewPCG(t.seed, 0x74616b65))
	drawn := func(n int, how kind) attempt {
		return attempt{n: n, how: how, phase: time.Duration(random.Int64N(int64(takeoverSlot)))}
	}
	var plan []attempt
	for range t.tries {
		plan = append(plan, drawn(len(plan), killLeasectl), drawn(len(plan)+1, endLeasectl))
	}
	v := &takeoverVerdict{settings: t.settings}
	for again := 0; len(plan) > 0 && again < 3; again++ {
		done, err := t.tryAll(ctx, plan, g)
		if err != nil {
			return nil, err
		}
		v.tries = append(v.tries, done...)
		v.judge(g)
		plan = nil
		for _, each := range v.tries[len(v.tries)-len(done):] {
			if v.verdictOf(each) == tooBusyToTell {
				plan = append(plan, drawn(len(v.tries)+len(plan), each.how))
			}
		}
	}
	t.leave(ctx, nil)
	stop()
	v.wrong = append(v.wrong, t.wrong...)
	return v, nil
}

// tryAll makes tries side by side.
func (t *theatre) tryAll(ctx context.Context, plan []attempt, g *gauge) ([]takeover, error) {
	var mu sync.Mutex
	var all sync.WaitGroup
	var failed error
	var done []takeover
	queue := make(chan attempt, len(plan))
	for _, a := range plan {
		queue <- a
	}
	close(queue)
	for range min(lanes, len(plan)) {
		all.Go(func() {
			for a := range queue {
				got, err := t.try(ctx, a, g)
				mu.Lock()
				failed = cmp.Or(failed, err)
				done = append(done, got)
				if len(done)%50 == 0 {
					fmt.Printf("%d of %d tries\n", len(done), len(plan))
				}
				mu.Unlock()
				if err != nil {
					return
				}
			}
		})
	}
	all.Wait()
	return done, failed
}

// try is one try, with a worker type of its own.
func (t *theatre) try(ctx context.Context, a attempt, g *gauge) (takeover, error) {
	got := takeover{attempt: a}
	of := workerType{
		name: fmt.Sprintf("try-%03d", a.n), interval: takeoverSlot, tieBreak: "sticky", priorities: [crew]int{0, 1}, control: -1,
		flags: []string{"--failover-within", takeoverFailover.String(), "--join-mid-slot"}, part: plainPart,
	}
	ledger, err := t.openNew(ctx, of)
	if err != nil {
		return got, err
	}
	defer func() { _ = ledger.Close(context.WithoutCancel(ctx)) }()
	zero, err := offsetOf(ctx, ledger)
	if err != nil {
		return got, err
	}
	holder, standby := t.hire(of, 0, t.workLog(of)), t.hire(of, 1, t.workLog(of))
	defer func() {
		for _, w := range []*worker{holder, standby} {
			if gone := w.retire(unix.SIGKILL, killLeasectl); gone != nil {
				<-gone
			}
		}
	}()
	log := &follower{path: t.workLog(of)}
	defer log.close()
	wrote := func(w *worker) func() bool {
		return func() bool {
			lines, err := log.next()
			if err != nil {
				t.bad("%s: %v", of.name, err)
			}
			return slices.ContainsFunc(lines, func(l line) bool { return l.instance == w.name() })
		}
	}
	if err := holder.start(); err != nil {
		return got, err
	}
	if err := t.await(ctx, of.name+": the holder works", wrote(holder)); err != nil {
		return got, err
	}
	if err := standby.start(); err != nil {
		return got, err
	}
	if err := t.await(ctx, of.name+": the standby stands by", func() bool { return standby.told("slot lost") }); err != nil {
		return got, err
	}
	at := nextPhase(takeoverSlot, zero, boottime()+200*ms, a.phase)
	if !pause(ctx, at-boottime()) {
		return got, ctx.Err()
	}
	signal := unix.SIGKILL
	if a.how == endLeasectl {
		signal = unix.SIGTERM
	}
	gone := holder.retire(signal, a.how)
	if gone == nil {
		got.void = "the holder was gone"
		return got, nil
	}
	// What is between the strike and here was written before, or by the standby.
	works := wrote(standby)
	if err := t.await(ctx, of.name+": the standby works", works); err != nil {
		got.wrong = append(got.wrong, err.Error())
	}
	select {
	case <-gone:
	case <-time.After(patience):
		got.wrong = append(got.wrong, fmt.Sprintf("the holder doesn't end within %v", patience))
		return got, nil
	}
	if other := standby.retire(unix.SIGKILL, killLeasectl); other != nil {
		<-other
	}
	records, err := recordsOf(ctx, ledger, of)
	if err != nil {
		return got, err
	}
	lines, err := linesOf(t.workLog(of))
	if err != nil {
		return got, err
	}
	wall := time.Now().Add(-boottime())
	got.read(lines, records, zero, [2]history{
		readHistory(holder.name(), holder.lives, holder.said(0), wall), readHistory(standby.name(), standby.lives, standby.said(0), wall),
	})
	got.stalled = g.stalled(got.struck, cmp.Or(got.first, boottime()))
	return got, nil
}

// nextPhase is when, from a time on, a slot of an interval has come so far.
func nextPhase(interval time.Duration, zero time.Time, from, phase time.Duration) time.Duration {
	now := zero.Add(from)
	at := now.Truncate(interval).Add(phase)
	if at.Before(now) {
		at = at.Add(interval)
	}
	return at.Sub(zero)
}

// recordsOf reads a ledger, the oldest record first.
func recordsOf(ctx context.Context, l store.Ledger, of workerType) ([]store.Record, error) {
	records, _, err := l.Tail(ctx, of.name, 100_000)
	slices.Reverse(records)
	return records, err
}

// takeoverTurn is when the turn of the second priority ends, counted from that of the
// first, on the widest turns.
func takeoverTurn() time.Duration {
	return 2 * priority.NewTurns(takeoverLead, 0, takeoverLead).Step
}
