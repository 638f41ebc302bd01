package workerlease_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/memory"
	"github.com/slotlease/slotlease/workerlease"
)

// pause pauses "job" up to a time since the bubble began.
func pause(t *testing.T, l store.Ledger, until time.Duration, now bool) store.Record {
	t.Helper()
	r, err := workerlease.Pause(t.Context(), l, workerlease.PauseOptions{
		WorkerType: "job", Until: t0.Add(until), Now: now, InstanceID: "ann", Reason: "upgrade",
	})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func missed(w *worker) (out []string) {
	for _, e := range observed[workerlease.Missed](w) {
		out = append(out, fmt.Sprintf("%v %s", since(e.Slot.Start), e.Why))
	}
	return out
}

func TestNobodyClaimsInAPause(t *testing.T) {
	bubble(t, "the slot that has begun goes on, and those that begin before its end are missed once", func(t *testing.T) {
		l, a, b := pair(t, nil)
		at(6 * time.Minute)
		r := pause(t, l.Handle(), 17*time.Minute, false)
		if r.Kind != store.KindOrder || r.Seq != 2 || r.InstanceID != "a" || !r.WindowStart.Equal(t0.Add(10*time.Minute)) || !r.WindowEnd.Equal(r.WindowStart) {
			t.Errorf("the order is %+v, want one that changes no term", r)
		}
		at(12 * time.Minute)
		if s := a.Status(); !strings.HasPrefix(s.Paused, "paused until 2000-01-01T00:17:00.000Z by ann: upgrade") || len(s.Orders) != 1 || !s.Healthy() {
			t.Errorf("Status() = %+v, want it to say that the worker type is paused", s)
		}
		at(23 * time.Minute)
		equal(t, "slots of a", a.starts(), minutes(5, 20)...)
		equal(t, "slots of b", b.starts())
		for _, w := range []*worker{a, b} {
			equal(t, "missed", missed(w), "10m0s paused", "15m0s paused")
		}
		if u := a.turn(t, 0); u.why != workerlease.WindowEnded || u.ended < 9*time.Minute {
			t.Errorf("the lease ended at %v: %s, want it to go on to its end", u.ended, u.why)
		}
		if s := a.Status(); s.Paused != "" || len(s.Orders) != 0 || newest(t, l).Orders != "" {
			t.Errorf("Status() = %+v and the head has %q, want nothing of a pause that is over", s, newest(t, l).Orders)
		}
		if n := len(records(t, l)); n != 3 {
			t.Errorf("%d records, want two grants, and one for the pause", n)
		}
	})
	bubble(t, "a pause that ends at a boundary costs no slot", func(t *testing.T) {
		l, a, _ := pair(t, nil)
		at(6 * time.Minute)
		pause(t, l.Handle(), 15*time.Minute, false)
		at(19 * time.Minute)
		equal(t, "slots of a", a.starts(), minutes(5, 15)...)
		if u := a.turn(t, 1); u.allocated > 15*time.Minute+1050*time.Millisecond { // with what it doesn't know of the time
			t.Errorf("allocated at %v, want it in the turn after the pause", u.allocated)
		}
		equal(t, "missed", missed(a), "10m0s paused")
	})
	bubble(t, "the rest is claimed when a pause ends in mid-slot, with FailoverWithin", func(t *testing.T) {
		l, a, b := pair(t, failsOver)
		at(6 * time.Minute)
		pause(t, l.Handle(), 12*time.Minute+30*time.Second, false)
		at(14 * time.Minute)
		equal(t, "slots of a", a.starts(), minutes(5, 10)...)
		equal(t, "slots of b", b.starts())
		if u := a.turn(t, 0); u.why != workerlease.WindowEnded || u.ended < 10*time.Minute-time.Second || u.ended > 10*time.Minute {
			t.Errorf("the first lease ended at %v: %s, want it to be extended to the end of its slot", u.ended, u.why)
		}
		if u := a.turn(t, 1); u.allocated < 12*time.Minute+30*time.Second || u.allocated > 12*time.Minute+32*time.Second {
			t.Errorf("allocated at %v, want it right after the pause", u.allocated)
		}
	})
	bubble(t, "a lease doesn't go on into the next slot", func(t *testing.T) {
		for _, stays := range []bool{false, true} {
			for _, within := range []time.Duration{0, time.Minute} {
				l, a, b := pair(t, func(o *workerlease.Options) {
					o.Continuous, o.NoFailback, o.FailoverWithin = true, stays, within
				})
				base := time.Since(t0).Truncate(time.Hour) + time.Hour
				at(base + 6*time.Minute)
				pause(t, l.Handle(), base+20*time.Minute, false)
				at(base + 24*time.Minute)
				if u := a.history(); len(u) != 2 || u[0].ended.Round(time.Second) != base+10*time.Minute || u[1].allocated < base+20*time.Minute || len(b.history()) != 0 {
					t.Errorf("NoFailback %v, FailoverWithin %v: %d leases of a, and %d of b, want two: up to 10m, and from 20m on: %+v", stays, within, len(u), len(b.history()), u)
				}
				a.stop(t)
				b.stop(t)
			}
		}
	})
	bubble(t, "before the first worker starts", func(t *testing.T) {
		l := memory.New(memory.Options{})
		pause(t, l.Handle(), 12*time.Minute, false)
		a := start(t, setup{Options: named("a", 0), ledger: l.Handle()})
		at(17 * time.Minute)
		equal(t, "slots of a", a.starts(), minutes(15)...)
		equal(t, "missed", missed(a), "5m0s paused", "10m0s paused")
	})
	bubble(t, "up to a resume", func(t *testing.T) {
		l, a, _ := pair(t, nil)
		at(6 * time.Minute)
		pause(t, l.Handle(), time.Hour, false)
		at(12 * time.Minute)
		r, err := workerlease.Resume(t.Context(), l.Handle(), workerlease.ResumeOptions{WorkerType: "job", InstanceID: "ann"})
		if o, ok := r.Order(); err != nil || !ok || !o.Removes() || r.Orders != "" {
			t.Errorf("Resume() = %+v, %v, want the end of the pause", r, err)
		}
		at(17 * time.Minute)
		equal(t, "slots of a", a.starts(), minutes(5, 15)...)
	})
	bubble(t, "TryClaim says so", func(t *testing.T) {
		l := memory.New(memory.Options{})
		pause(t, l.Handle(), time.Hour, false)
		_, err := workerlease.TryClaim(t.Context(), l.Handle(), named("a", 0))
		if !errors.Is(err, workerlease.ErrNotClaimed) || !strings.Contains(err.Error(), "paused") {
			t.Errorf("TryClaim() in a pause = %v, want ErrNotClaimed that says so", err)
		}
	})
}

func TestAPauseAtOnceStopsTheHolderAndReleasesTheRest(t *testing.T) {
	bubble(t, "", func(t *testing.T) {
		l := memory.New(memory.Options{})
		o := named("a", 0)
		o.FailoverWithin = time.Minute
		const tidies = 5 * time.Second
		a := start(t, setup{Options: o, ledger: l.Handle(), work: func(ctx context.Context, _ workerlease.Lease) {
			<-ctx.Done()
			time.Sleep(tidies)
		}})
		at(6 * time.Minute)
		pause(t, l.Handle(), 12*time.Minute, true)
		at(14 * time.Minute)
		u := a.turn(t, 0)
		if !errors.Is(u.cause, workerlease.ErrPaused) || u.why != workerlease.Paused || u.ended > 7*time.Minute {
			t.Errorf("the lease ended at %v by %v: %s, want it within FailoverWithin by ErrPaused", u.ended, u.cause, u.why)
		}
		var release store.Record
		for _, r := range records(t, l) {
			if r.Kind == store.KindRelease && release.Seq == 0 {
				release = r
			}
		}
		if got := since(release.WindowEnd); got < u.ended+tidies || got > u.ended+tidies+100*time.Millisecond || release.Orders == "" {
			t.Errorf("released as of %v, want it once the code has returned at %v, with the order repeated: %+v", got, u.ended+tidies, release)
		}
		if u := a.turn(t, 1); u.allocated < 12*time.Minute {
			t.Errorf("allocated again at %v, want nothing before the pause has ended", u.allocated)
		}
	})
}

func TestADrainedHostClaimsNothing(t *testing.T) {
	bubble(t, "", func(t *testing.T) {
		l, a, _ := pair(t, nil)
		at(6 * time.Minute)
		if _, err := workerlease.Drain(t.Context(), l.Handle(), workerlease.DrainOptions{WorkerType: "job", Host: "elsewhere", For: time.Hour}); err != nil {
			t.Fatal(err)
		}
		at(11 * time.Minute)
		equal(t, "slots of a", a.starts(), minutes(5, 10)...)
		if _, err := workerlease.Drain(t.Context(), l.Handle(), workerlease.DrainOptions{WorkerType: "job", For: 6 * time.Minute}); err != nil {
			t.Fatal(err)
		}
		at(21 * time.Minute)
		equal(t, "slots of a", a.starts(), minutes(5, 10, 20)...)
		equal(t, "missed by a", missed(a), "15m0s drained")
	})
}
