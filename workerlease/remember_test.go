package workerlease_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"testing"
	"testing/synctest"
	"time"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/memory"
	"github.com/slotlease/slotlease/workerlease"
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
		p := named("b", 1)
		p.LeaseInterval = time.Minute
		b := start(t, setup{Options: p, ledger: ledger.Handle(), roster: true})
		o := named("a", 0)
		o.LeaseInterval = time.Minute
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

// A worker that stops in order while it steps back does so when it is started again.
func TestAWorkerRemembersItsFailuresWhenItIsStartedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ledger := memory.New(memory.Options{})
		o := named("a", 0)
		o.LeaseInterval = time.Minute
		fails := func(context.Context, workerlease.Lease) error { return errors.New("no disk") }
		a := start(t, setup{Options: o, ledger: ledger.Handle(), roster: true, task: fails})
		at(30*time.Minute + 30*time.Second)
		back := a.Status().Effective
		a.stop(t)
		left := ofInstance(present(t, ledger), "a")
		if left.Phase != store.PhaseStopped || left.Failures < 5 || back != 7 {
			t.Fatalf("it has left %+v, and claimed by %d", left, back)
		}
		again := start(t, setup{Options: o, ledger: ledger.Handle(), roster: true, task: fails})
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
		if err := ledger.Attend(t.Context(), all); err != nil {
			t.Fatal(err)
		}
		a := start(t, setup{Options: named("app", 0), ledger: ledger.Handle(), roster: true})
		at(time.Minute)
		if n := len(present(t, ledger)); n != 10 || a.Status().Effective != 0 || len(observed[workerlease.SteppedBack](a)) > 0 {
			t.Errorf("of 10 presences %d are left, it claims by %d, and said %+v", n, a.Status().Effective, observed[workerlease.SteppedBack](a))
		}
	})
}

// A worker takes the place of a namesake on its host that has died, and of none that lives.
func TestAWorkerTakesThePlaceOfTheDeadOnly(t *testing.T) {
	host, err := os.Hostname()
	if err != nil {
		t.Skip("this machine has no name")
	}
	for name, test := range map[string]struct {
		pid, left int
	}{"lives": {os.Getppid(), 2}, "has died": {1 << 30, 1}, "had the same process id": {os.Getpid(), 1}} {
		bubble(t, name, func(t *testing.T) {
			ledger := memory.New(memory.Options{})
			before := store.Presence{
				WorkerType: "job", ID: "other-1.1", Client: "1", InstanceID: "app", Host: host, PID: test.pid, Phase: store.PhaseHolder,
				Failures: 5, Since: t0, Seen: t0, Next: t0.Add(time.Hour),
			}
			if err := ledger.Attend(t.Context(), []store.Presence{before}); err != nil {
				t.Fatal(err)
			}
			start(t, setup{Options: named("app", 0), ledger: ledger.Handle(), roster: true})
			at(time.Minute)
			all := present(t, ledger)
			if own := all[0]; len(all) != test.left || own.Failures > 0 != (test.left == 1) {
				t.Errorf("the roster has %+v, want %d presences", all, test.left)
			}
		})
	}
}
