package workerlease_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/memory"
	"github.com/slotlease/slotlease/workerlease"
	"github.com/slotlease/slotlease/workerlease/event"
	"github.com/slotlease/slotlease/workerlease/internal/self"
)

// life starts a process of a worker that dies after a while in the hands of its code, and waits for that. It
// returns whether it got a lease, before it is killed at the latest.
func life(t *testing.T, ledger *memory.Ledger, o workerlease.Options, lives time.Duration, atMost time.Duration) bool {
	t.Helper()
	s := spy(ledger)
	died := make(chan struct{}, 1)
	w := start(t, setup{Options: o, ledger: s, roster: true, work: func(ctx context.Context, _ workerlease.Lease) {
		time.Sleep(lives)
		select {
		case died <- struct{}{}:
		default:
		}
		<-ctx.Done()
	}})
	got := false
	select {
	case <-died:
		got = true
	case <-time.After(atMost):
	}
	s.set(func() { s.dead = true })
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	_ = w.StopLeasing(ended) // It can tell nobody.
	<-w.Done()
	return got
}

// A process that dies in each slot which it gets, and is started again, leaves nine in ten slots to others.
func TestACrashLoopLeavesTheSlotsToOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ledger := memory.New(memory.Options{})
		p := slotted("b", 1, time.Minute, 0)
		b := start(t, setup{Options: p, ledger: ledger.Handle(), roster: true})
		o := slotted("a", 0, time.Minute, 0)
		had := 0
		for time.Since(t0) < 400*time.Minute {
			if life(t, ledger, o, time.Second, 20*time.Minute) {
				had++
			}
			time.Sleep(5 * time.Second)
		}
		n := len(b.history())
		if had < 10 || had > 40 || n < 355 {
			t.Errorf("of 400 slots the one that crashes had %d, and the other %d, want less than a tenth", had, n)
		}
		all := present(t, ledger)
		if len(all) != 2 {
			t.Errorf("the roster has %d presences, want one of each: %+v", len(all), all)
		}
		if p := ofInstance(all, "a"); p.Failures < 10 {
			t.Errorf("a is remembered for %d failures: %+v", p.Failures, p)
		}
		// It works now.
		start(t, setup{Options: o, ledger: ledger.Handle(), roster: true})
		time.Sleep(40 * time.Minute)
		synctest.Wait()
		if p := ofInstance(present(t, ledger), "a"); p.Phase != store.PhaseHolder || p.Failures != 0 {
			t.Errorf("since it works, it is %+v", p)
		}
	})
}

func failsAtOnce(context.Context, workerlease.Lease) error { return errors.New("no disk") }

// failedForHalfAnHour are the options of a worker that has failed in each of thirty slots, and has stopped; what it has left in
// the roster; and the priority that it claimed by.
func failedForHalfAnHour(t *testing.T, ledger *memory.Ledger) (o workerlease.Options, left store.Presence, effective int) {
	t.Helper()
	o = slotted("a", 0, time.Minute, 0)
	a := start(t, setup{Options: o, ledger: ledger.Handle(), roster: true, task: failsAtOnce})
	at(30*time.Minute + 30*time.Second)
	effective = a.Status().Effective
	a.stop(t)
	return o, ofInstance(present(t, ledger), "a"), effective
}

// A worker that stops in order while it steps back does so when it is started again.
func TestAWorkerRemembersItsFailuresWhenItIsStartedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ledger := memory.New(memory.Options{})
		o, left, back := failedForHalfAnHour(t, ledger)
		if left.Phase != store.PhaseStopped || left.Failures < 5 || back != 7 {
			t.Fatalf("it has left %+v, and claimed by %d", left, back)
		}
		again := start(t, setup{Options: o, ledger: ledger.Handle(), roster: true, task: failsAtOnce})
		time.Sleep(time.Second)
		synctest.Wait()
		if p := again.Status().Effective; p != 7 {
			t.Errorf("it claims by %d, want 7", p)
		}
		if all := present(t, ledger); len(all) != 1 || all[0].Failures != left.Failures || !all[0].StepsBackUntil.Equal(left.StepsBackUntil) {
			t.Errorf("it says %+v, want what it had left: %+v", all, left)
		}
	})
}

// What is no crash loop is none: a process that is killed now and then, after slots in which it worked, or
// killed before it had any, has its own turn at once.
func TestWhoIsKilledOnceHasItsTurnAgain(t *testing.T) {
	for name, lives := range map[string]time.Duration{"in its first slot": time.Second, "after ten slots": 10 * time.Minute} {
		bubble(t, name, func(t *testing.T) {
			ledger := memory.New(memory.Options{})
			o := named("a", 0)
			o.LeaseInterval, o.Continuous = time.Minute, true
			for range 2 {
				life(t, ledger, o, lives, 20*time.Minute)
			}
			a := start(t, setup{Options: o, ledger: ledger.Handle(), roster: true})
			time.Sleep(2 * time.Minute)
			synctest.Wait()
			if s := a.Status(); s.Effective != 0 || !s.Holding {
				t.Errorf("it is %+v", s)
			}
		})
	}
}

// Workers with one name on several hosts are no crash loop.
func TestNamesakesOnOtherHostsAreNoCrashLoop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ledger := memory.New(memory.Options{})
		var all []store.Presence
		for i := range 9 {
			all = append(all, store.Presence{
				WorkerType: "job", ID: fmt.Sprint("other-", i), Client: fmt.Sprint(i), InstanceID: "app", Host: fmt.Sprint("vm-", i), PID: 7, Phase: store.PhaseHolder,
				Failures: i, Since: t0, Seen: t0, Next: t0.Add(time.Hour),
			})
		}
		must(t, ledger.Attend(t.Context(), all))
		a := start(t, setup{Options: named("app", 0), ledger: ledger.Handle(), roster: true})
		at(time.Minute)
		if n := len(present(t, ledger)); n != 10 || a.Status().Effective != 0 || len(observed[event.SteppedBack](a)) > 0 {
			t.Errorf("of 10 presences %d are left, it claims by %d, and said %+v", n, a.Status().Effective, observed[event.SteppedBack](a))
		}
	})
}

// A worker takes the place of a namesake on its host that has died, and of none that lives: replicas in containers may all be process
// 1 of one host.
func TestAWorkerTakesThePlaceOfTheDeadOnly(t *testing.T) {
	host, err := os.Hostname()
	if err != nil {
		t.Skip("this machine has no name")
	}
	own := self.Process()
	if own == "" {
		t.Skip("this system doesn't tell processes apart")
	}
	space := own[:strings.LastIndexByte(own, '.')+1]
	for name, test := range map[string]struct {
		pid     int
		process string
		renewed bool
		left    int
	}{
		"lives":                        {os.Getpid(), own, true, 2},
		"has died":                     {1 << 30, space + "1", false, 1},
		"had the same process id":      {os.Getpid(), space + "1", false, 1},
		"lives in another container":   {os.Getpid(), "another.1.1", true, 2},
		"lives, of an earlier version": {os.Getpid(), "", true, 2},
		"had another container of the same machine": {os.Getpid(), "another.1.1", false, 1},
	} {
		bubble(t, name, func(t *testing.T) {
			ledger := memory.New(memory.Options{})
			before := store.Presence{
				WorkerType: "job", ID: "other-1.1", Client: "1", InstanceID: "app", Host: host, PID: test.pid, Process: test.process, Phase: store.PhaseHolder,
				Failures: 5, Since: t0,
			}
			attend := func() {
				before.Seen, before.Next = time.Now(), time.Now().Add(20*time.Second)
				must(t, ledger.Attend(t.Context(), []store.Presence{before}))
			}
			attend()
			start(t, setup{Options: named("app", 0), ledger: ledger.Handle(), roster: true})
			for range 18 {
				time.Sleep(10 * time.Second)
				if test.renewed {
					attend()
				}
			}
			all := present(t, ledger)
			for _, p := range all {
				if remembers := p.Failures > 0; p.ID != before.ID && remembers != (test.left == 1) || len(all) != test.left {
					t.Errorf("the roster has %+v, want %d presences", all, test.left)
				}
			}
		})
	}
}

// Each row of a crash loop has counted the failures of those before it, unless it died before it knew of them: they are remembered once,
// whichever is known first to be gone.
func TestFailuresOfSeveralPredecessorsAreRememberedOnce(t *testing.T) {
	host, err := os.Hostname()
	must(t, err)
	for name, test := range map[string]struct {
		slot        time.Duration
		newest      int // has counted so many failures
		least, most int
	}{
		"the newest has counted all":  {slot: time.Hour, newest: 3, least: 3, most: 4},
		"the newest has counted none": {slot: time.Minute, newest: 0, least: 3, most: 4},
	} {
		bubble(t, name, func(t *testing.T) {
			ledger := memory.New(memory.Options{})
			at(10 * time.Hour)
			row := func(id string, failures int, ago time.Duration) store.Presence {
				seen := time.Now().Add(-ago)
				return store.Presence{
					WorkerType: "job", ID: id + "-1.1", Client: id, InstanceID: "a", Host: host, PID: os.Getpid(), Process: "boot." + id + ".1", Phase: store.PhaseHolder,
					Failures: failures, Since: seen, Seen: seen, Next: seen.Add(5*time.Minute + 10*time.Second),
				}
			}
			must(t, ledger.Attend(t.Context(), []store.Presence{row("1", 2, 7*time.Minute), row("2", test.newest, 2*time.Minute)}))
			a := start(t, setup{Options: slotted("a", 0, test.slot, 0), ledger: ledger.Handle(), roster: true})
			at(10*time.Hour + 30*time.Second)
			stepping := a.Status().Effective != 0
			at(10*time.Hour + 20*time.Minute)
			most := 0
			for _, p := range present(t, ledger) {
				most = max(most, p.Failures)
			}
			for _, e := range observed[event.SteppedBack](a) {
				most = max(most, e.Failures)
			}
			if most < test.least || most > test.most || !stepping {
				t.Errorf("it remembers %d failures, want %d to %d, and to let others go first at once: %v", most, test.least, test.most, stepping)
			}
		})
	}
}

// A worker says of which slots it is that nobody had them, and no longer when it has one.
func TestTheRosterSaysWhichSlotsNobodyHad(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ledger := memory.New(memory.Options{})
		o := named("a", 0)
		var fit atomic.Bool
		o.Eligible = func(context.Context) error {
			if fit.Load() {
				return nil
			}
			return errors.New("its disk is full")
		}
		w := start(t, setup{Options: o, ledger: ledger, roster: true})
		at(10*time.Minute + 30*time.Second)
		p := ofInstance(present(t, ledger), "a")
		if p.Missed != "nobody had it: "+string(workerlease.Ineligible) || since(p.MissedFrom) != 5*time.Minute || since(p.MissedUntil) != 10*time.Minute {
			t.Errorf("after a slot in which it wasn't eligible, it says %q of the slots from %v to %v, want of the one from 5m to 10m", p.Missed, since(p.MissedFrom), since(p.MissedUntil))
		}
		fit.Store(true)
		at(25*time.Minute + 30*time.Second)
		if p := ofInstance(present(t, ledger), "a"); p.Missed != "" || !p.MissedFrom.IsZero() || !p.MissedUntil.IsZero() {
			t.Errorf("while it holds, it says %q of the slots from %v to %v", p.Missed, since(p.MissedFrom), since(p.MissedUntil))
		}
		w.stop(t)
	})
}

// A worker says which times of its job are in force, defaults too.
func TestTheRosterSaysTheTimesOfAJob(t *testing.T) {
	for name, c := range map[string]struct {
		slot time.Duration
		job  *workerlease.Job
		want store.JobTimes
	}{
		"none": {time.Minute, nil, store.JobTimes{}},
		"own": {
			time.Minute, &workerlease.Job{StartWithin: time.Second, Timeout: 100 * 366 * 24 * time.Hour, CatchUp: workerlease.CatchUpAll},
			store.JobTimes{StartWithin: time.Second, Overrun: "finish", Timeout: store.MaxJobTime, CatchUp: "all", CatchUpWithin: 24 * time.Hour, MaxAttempts: 10, RetriesOver: 52 * time.Second},
		},
	} {
		bubble(t, name, func(t *testing.T) {
			ledger := memory.New(memory.Options{})
			o := named("a", 0)
			o.LeaseInterval, o.Job = c.slot, c.job
			start(t, setup{Options: o, ledger: ledger, roster: true, task: func(context.Context, workerlease.Lease) error { return nil }})
			at(time.Minute)
			p := ofInstance(present(t, ledger), "a")
			if p.Job == nil && c.job != nil || p.Job != nil && (c.job == nil || *p.Job != c.want) {
				t.Errorf("it says %+v, want %+v", p.Job, c.want)
			}
		})
	}
}
