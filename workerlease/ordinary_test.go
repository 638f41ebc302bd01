package workerlease_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/slotlease/slotlease/internal/suites"
	"github.com/slotlease/slotlease/slots"
	"github.com/slotlease/slotlease/store/memory"
	"github.com/slotlease/slotlease/testutil/faultstore"
	"github.com/slotlease/slotlease/workerlease"
	"github.com/slotlease/slotlease/workerlease/event"
)

// The second of 02:00 of the second night in a bubble. Workers that are there by then have done the job of the first.
const (
	firstNight = 2 * time.Hour
	night      = 26 * time.Hour
)

// nightly are the options of a job of 02:00, with all its defaults.
func nightly(name string) workerlease.Options {
	o := named(name, 0)
	o.Schedule, o.Job = slots.Must(slots.Cron("0 2 * * *", "")), &workerlease.Job{}
	return o
}

// elected are the options of a leader that is elected for good.
func elected(name string) workerlease.Options {
	o := parted(name, 0, 10*time.Second)
	o.Continuous, o.NoFailback = true, true
	return o
}

// waits takes so long, unless a context ends.
func waits(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// untilTold is a task that ends when it is told to.
func untilTold(ctx context.Context, _ workerlease.Lease) error {
	<-ctx.Done()
	return ctx.Err()
}

// heeds is a task that takes so long, unless its context ends.
func heeds(d time.Duration) func(context.Context, workerlease.Lease, int) error {
	return func(ctx context.Context, _ workerlease.Lease, _ int) error {
		return waits(ctx, d)
	}
}

// gapOf is the longest time in which none of some workers had a lease, in a stretch of time.
func gapOf(from, to time.Duration, workers ...*worker) (longest time.Duration) {
	all := turnsOf(workers...)
	for until := from; ; {
		i := slices.IndexFunc(all, func(u turn) bool { return u.ended == 0 || u.ended > until })
		if i < 0 {
			return max(longest, to-until)
		}
		longest = max(longest, min(all[i].allocated, to)-until)
		if until = all[i].ended; until == 0 || until >= to {
			return longest
		}
	}
}

func TestARollingRestartOfTwoLeavesALeaderWithinFailoverWithin(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ledger := memory.New(memory.Options{})
		leads := func(name string) *worker {
			return start(t, setup{asGiven: true, ledger: ledger.Handle(), Options: elected(name)})
		}
		leader := leads("leader")
		standby := leads("standby")
		at(5*time.Minute + 5*time.Second)
		standby.stop(t)
		second := leads("standby")
		at(5*time.Minute + 20*time.Second)
		leader.stop(t)
		first := leads("leader")
		at(12 * time.Minute)
		apart(t, leader, standby, first, second)
		if gap := gapOf(time.Minute, 12*time.Minute, leader, standby, first, second); gap > 10*time.Second {
			t.Errorf("nobody led for %v, want 10 s at most", gap)
		}
	})
}

// Nobody has to wait for a boundary when all workers are new.
func TestAWholeFleetThatStartsAtOnceLeadsWithinSeconds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ledger := memory.New(memory.Options{})
		at(time.Minute)
		var all []*worker
		for i := range 5 {
			all = append(all, start(t, setup{asGiven: true, ledger: ledger.Handle(), Options: elected(fmt.Sprint(i))}))
		}
		at(4 * time.Minute)
		apart(t, all...)
		if gap := gapOf(time.Minute, 4*time.Minute, all...); gap > 5*time.Second {
			t.Errorf("nobody led for %v, want 5 s at most", gap)
		}
	})
}

// Its worker is stopped 3 s before the night's slot, and its successor starts 1 s after it.
func TestANightlyJobRunsAlthoughItsWorkerIsReplacedAroundTheBoundary(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ledger := memory.New(memory.Options{})
		j := &job{do: heeds(time.Minute)}
		old := start(t, setup{asGiven: true, ledger: ledger.Handle(), Options: nightly("old"), task: j.run})
		at(night - 3*time.Second)
		old.stop(t)
		at(night + time.Second)
		successor := start(t, setup{asGiven: true, ledger: ledger.Handle(), Options: nightly("successor"), task: j.run})
		at(night + 15*time.Second) // with the turns of a claim in mid-slot
		equal(t, "the night", j.of(night), "successor")
		at(night + time.Hour)
		if s := successor.Status(); s.Missed != 0 || len(observed[event.SlotDone](successor)) != 1 {
			t.Errorf("the successor says %+v, want one slot that is done, and none missed", s)
		}
	})
}

// So long after the boundary no first attempt would begin. A further one does, also by a worker that has just started.
func TestANightlyJobWhoseWorkerIsKilledInMidRunIsTriedAgainByTheOneThatIsRestarted(t *testing.T) {
	for _, killed := range []time.Duration{5 * time.Minute, 5 * time.Hour} {
		bubble(t, fmt.Sprint(killed), func(t *testing.T) {
			inner, link := cut(t)
			j := &job{do: heeds(6 * time.Hour)}
			start(t, setup{asGiven: true, ledger: link, Options: nightly("killed"), task: j.run})
			at(night + killed)
			link.Break(faultstore.Down())
			at(night + killed + 3*time.Second)
			restarted := start(t, setup{asGiven: true, ledger: inner.Handle(), Options: nightly("restarted"), task: j.run})
			at(night + killed + time.Minute + 2*time.Second) // FailoverWithin, and the turns
			equal(t, "the night", j.of(night), "killed", "restarted")
			if lost := observed[event.WorkerDied](restarted); len(lost) != 1 || lost[0].Attempt != 1 || lost[0].Holder != "killed" || lost[0].GivenUp {
				t.Errorf("observed %+v, want that the first attempt is lost", lost)
			}
			at(night + 13*time.Hour)
			equal(t, "the night", j.of(night), "killed", "restarted")
			if n := len(observed[event.SlotDone](restarted)); n != 1 {
				t.Errorf("%d slots were recorded as done, want one", n)
			}
		})
	}
}

// The first night was done or not, or there was none: at 14:00, nothing is due. A slot that nobody began is told by whoever comes
// next, once.
func TestANightlyJobThatIsDeployedByDayWaitsForTheNight(t *testing.T) {
	for name, before := range map[string]func(context.Context, workerlease.Lease, int) error{
		"never deployed":       nil,
		"not there that night": heeds(time.Minute),
		"failed when it began": func(context.Context, workerlease.Lease, int) error { return errors.New("no report") },
	} {
		bubble(t, name, func(t *testing.T) {
			ledger := memory.New(memory.Options{})
			j, there := &job{do: before}, before != nil
			if there {
				first := start(t, setup{asGiven: true, ledger: ledger.Handle(), Options: nightly("first"), task: j.run})
				at(3 * time.Hour)
				first.stop(t)
			}
			j.do = heeds(time.Minute)
			at(night + 12*time.Hour)
			var all []*worker
			for range 3 { // one after the other, as a deployment that is repeated
				w := start(t, setup{asGiven: true, ledger: ledger.Handle(), Options: nightly("by day"), task: j.run})
				all = append(all, w)
				at(time.Since(t0) + 10*time.Minute)
				if s := w.Status(); s.Due.Before(s.StoreTime) != there {
					t.Errorf("at %v the job is due at %v, want it overdue: %v", s.StoreTime, s.Due, there)
				}
				w.stop(t)
			}
			all = append(all, start(t, setup{asGiven: true, ledger: ledger.Handle(), Options: nightly("by day"), task: j.run}))
			at(night + 24*time.Hour - time.Second)
			equal(t, "the night that nobody was there", j.of(night))
			missed := 0
			for _, w := range all {
				for _, e := range observed[event.Missed](w) {
					missed++
					if since(e.Slot.Start) != night || e.Count != 1 || e.Why != workerlease.Unattended {
						t.Errorf("observed %+v", e)
					}
				}
			}
			if there && missed == 0 || !there && missed > 0 {
				t.Errorf("%d workers observed that the night was missed", missed)
			}
			at(night + 25*time.Hour)
			equal(t, "the next night", j.of(night+24*time.Hour), "by day")
		})
	}
}

// span is from when to when something was so, since the bubble began.
type span struct{ from, to time.Duration }

// deploy starts workers, and replaces each of them once, in any order, from about a time on: a successor
// starts up to 30 s after its predecessor was told to stop. It returns when which of them were up.
func deploy(t *testing.T, r *rand.Rand, ledger *memory.Ledger, o workerlease.Options, from, until time.Duration, task workerlease.Task) (up []span) {
	t.Helper()
	n := 2 + r.IntN(4)
	type event struct {
		at   time.Duration
		stop int // of the worker, or -1
		name string
		rank int
	}
	var events []event
	at(from - 10*time.Minute)
	workers, began := []*running{}, []time.Duration{}
	begin := func(name string, rank int) {
		o := o
		o.InstanceID, o.Priority = name, rank
		workers, began = append(workers, runsAtOnce(t, ledger.Handle(), o, task)), append(began, time.Since(t0))
	}
	for i := range n {
		begin(fmt.Sprint("old", i), r.IntN(2))
	}
	when := from - time.Duration(r.Int64N(int64(90*time.Second)))
	for _, i := range r.Perm(n) {
		gap := time.Duration(r.Int64N(int64(30 * time.Second)))
		events = append(events, event{when, i, "", 0}, event{when + gap, -1, fmt.Sprint("new", i), r.IntN(2)})
		when += time.Duration(r.Int64N(int64(30 * time.Second)))
	}
	slices.SortStableFunc(events, func(a, b event) int { return int(a.at - b.at) })
	for _, e := range events {
		at(e.at)
		if e.stop < 0 {
			begin(e.name, e.rank)
			continue
		}
		workers[e.stop].cancel()
		up = append(up, span{began[e.stop], time.Since(t0)})
	}
	at(until)
	for i := n; i < len(workers); i++ {
		up = append(up, span{began[i], until})
	}
	return up
}

// longestGap is the longest time within a span in which nothing was so, though there was somebody.
func longestGap(in span, so, there []span) (longest time.Duration) {
	const step = 50 * time.Millisecond
	covered := func(all []span, at time.Duration) bool {
		return slices.ContainsFunc(all, func(s span) bool { return s.from <= at && at < s.to })
	}
	gap := time.Duration(0)
	for at := in.from; at < in.to; at += step {
		if covered(so, at) || !covered(there, at) {
			gap = 0
			continue
		}
		gap += step
		longest = max(longest, gap)
	}
	return longest
}

const deployments = 200

func TestARollingDeploymentLosesNoNightlyRun(t *testing.T) {
	suites.Prove(t, "it simulates for long")
	for seed := range uint64(deployments) {
		bubble(t, fmt.Sprint(seed), func(t *testing.T) {
			r := rand.New(rand.NewPCG(seed, 41))
			var mu sync.Mutex
			done, open, twice, latest := map[time.Duration]int{}, 0, false, time.Duration(0)
			o := named("", 0)
			o.Schedule, o.Job = slots.Must(slots.Cron("0 2 * * *", "")), &workerlease.Job{}
			takes := time.Duration(1+r.IntN(40)) * time.Second
			night := 26 * time.Hour
			deploy(t, r, memory.New(memory.Options{}), o, night, night+2*time.Hour, func(ctx context.Context, l workerlease.Lease) error {
				mu.Lock()
				open++
				twice = twice || open > 1
				if l.Attempt == 1 {
					latest = max(latest, time.Since(t0)-since(l.Slot.Start))
				}
				mu.Unlock()
				defer func() { mu.Lock(); open--; mu.Unlock() }()
				if err := waits(ctx, takes); err != nil {
					return err
				}
				mu.Lock()
				done[since(l.Slot.Start)]++
				mu.Unlock()
				return nil
			})
			if len(done) != 1 || done[night] != 1 || twice {
				t.Errorf("done %v, two at once: %v, want the slot of the night once", done, twice)
			}
			if latest > 2*time.Minute {
				t.Errorf("begun %v late", latest)
			}
		})
	}
}

func TestARollingDeploymentLeavesNobodyWithoutALeaderForLong(t *testing.T) {
	suites.Prove(t, "it simulates for long")
	const within = 10 * time.Second
	longest := time.Duration(0)
	for seed := range uint64(deployments) {
		bubble(t, fmt.Sprint(seed), func(t *testing.T) {
			r := rand.New(rand.NewPCG(seed, 42))
			var mu sync.Mutex
			var led []span
			open, twice, leads := 0, false, time.Duration(0)
			o := named("", 0)
			o.Continuous, o.NoFailback, o.FailoverWithin = true, true, within
			around, until := 30*time.Minute, 40*time.Minute
			up := deploy(t, r, memory.New(memory.Options{}), o, around, until, func(ctx context.Context, _ workerlease.Lease) error {
				mu.Lock()
				open++
				twice = twice || open > 1
				from := time.Since(t0)
				leads = from
				mu.Unlock()
				<-ctx.Done()
				mu.Lock()
				open--
				led = append(led, span{from, time.Since(t0)})
				mu.Unlock()
				return nil
			})
			mu.Lock()
			led = append(led, span{leads, until}) // The last one leads on.
			mu.Unlock()
			gap := longestGap(span{around - 9*time.Minute, until}, led, up)
			longest = max(longest, gap)
			if gap > within || twice {
				t.Errorf("no leader for %v, two at once: %v", gap, twice)
			}
			if open != 1 {
				t.Errorf("%d lead at the end", open)
			}
		})
	}
	t.Logf("no leader for %v at the most", longest)
}

// A job fails for good in its first night. Whoever starts by day knows as well as the first worker since when it is due, also when the
// next night has failed, and reports nothing that was reported then.
func TestAWorkerThatStartsByDayKnowsOfTheNight(t *testing.T) {
	bubble(t, "a night that was given up", func(t *testing.T) {
		ledger := memory.New(memory.Options{})
		j := &job{do: func(context.Context, workerlease.Lease, int) error { return errors.New("no report") }}
		run := func(name string) *worker {
			o := nightly(name)
			o.Job.MaxAttempts = 1
			return start(t, setup{asGiven: true, ledger: ledger.Handle(), Options: o, task: j.run})
		}
		first := run("first")
		at(14 * time.Hour)
		second := run("second")
		for _, when := range []time.Duration{15 * time.Hour, night - time.Second, night + 4*time.Hour} {
			at(when)
			for _, w := range []*worker{first, second} {
				if due := since(w.Status().Due); due != firstNight+time.Hour {
					t.Errorf("at %v the job is due at %v by %s, want %v", when, due, w.Status().InstanceID, firstNight+time.Hour)
				}
			}
			if said := observed[event.Exhausted](second); when < night && len(said) > 0 {
				t.Errorf("at %v the second worker reports %+v, which the first one has", when, said)
			} else if when > night && len(said) != 1 {
				t.Errorf("at %v the second worker has reported %+v, want the night for which it was there", when, said)
			}
		}
	})
}
