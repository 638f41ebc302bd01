package workerlease_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/memory"
	"github.com/slotlease/slotlease/testutil/faultstore"
	"github.com/slotlease/slotlease/workerlease"
	"github.com/slotlease/slotlease/workerlease/event"
	"github.com/slotlease/slotlease/workerlease/history"
	"github.com/slotlease/slotlease/workerlease/verify"
)

// until is when a store answers again that stands still at a claim.
const until = 65 * time.Second

func answeredLate(now time.Duration) faultstore.Fault { return faultstore.Fault{After: until - now} }

// standsStill is a connection to a store that stands still from the first append on.
func standsStill(t *testing.T, inner *memory.Ledger, stall func(now time.Duration) faultstore.Fault) *faultstore.Ledger {
	stalled := false
	return struck(t, inner.Handle(), func(c faultstore.Call) faultstore.Fault {
		now := since(c.At)
		if stalled = stalled || c.Op == faultstore.OpAppend; stalled && now < until {
			return stall(now)
		}
		return faultstore.Fault{}
	})
}

// A store stands still at a claim: it is stored, and its worker hears of that when its part of the slot is over. Nothing has run. So
// it is no attempt, whether the store answers late or not at all. Once it used up the only one, and its worker had died. Others
// that look before it can say so may still take it for dead; then nothing remains of that but their word.
func TestAClaimThatIsHeardOfTooLateIsNoAttempt(t *testing.T) {
	for name, stall := range map[string]func(now time.Duration) faultstore.Fault{
		"answered late":  answeredLate,
		"never answered": func(time.Duration) faultstore.Fault { return faultstore.BlackHole(faultstore.Applied) },
	} {
		for _, workers := range []int{1, 3} {
			bubble(t, fmt.Sprintf("%s, of %d", name, workers), func(t *testing.T) {
				inner := memory.New(memory.Options{})
				link := standsStill(t, inner, stall)
				var runs []int
				task := func(_ context.Context, l workerlease.Lease) error { runs = append(runs, l.Attempt); return nil }
				var all []*worker
				for i := range workers {
					o := named(string(rune('a'+i)), i)
					o.LeaseInterval, o.FailoverWithin = time.Minute, 5*time.Second
					o.Job = &workerlease.Job{MaxAttempts: 1, StartWithin: time.Minute}
					ledger := store.Ledger(inner.Handle())
					if i == 0 {
						ledger = link
					}
					all = append(all, start(t, setup{ledger: ledger, Options: o, task: task}))
				}
				at(109 * time.Second)
				got := records(t, inner)
				i := slices.IndexFunc(got, func(r store.Record) bool { return r.Kind == store.KindRelease })
				if i < 0 || got[i].Attempt != 0 || got[i].Claim != got[0].Claim || !got[i].WindowEnd.Equal(got[0].WindowEnd) {
					t.Fatalf("of %+v none is a release of the first at its end that takes the attempt back", got)
				}
				if !slices.Equal(runs, []int{1}) {
					t.Errorf("the slot's work began as the attempts %v, want it begun once, as the first", runs)
				}
				if lost, missed, s := observed[event.WorkerDied](all[0]), observed[event.Missed](all[0]), all[0].Status(); len(lost)+len(missed) > 0 || s.GivenUp > 0 {
					t.Errorf("its worker says that attempts were lost, %+v, and slots missed, %+v, and that %d were given up", lost, missed, s.GivenUp)
				}
				if e := history.Read(got, time.Now(), nil)[0]; e.State != history.Released || !e.Unbegun || e.Note() != "never begun" {
					t.Errorf("history says of the claim that it is %s, %q, want it released, never begun", e.State, e.Note())
				}
				v := verify.New(verify.Options{WorkerType: "job", Now: time.Now()})
				for _, r := range got {
					v.Add(r)
				}
				if found := v.Report().Findings; len(found) > 0 {
					t.Errorf("verify finds %+v, want nothing", found)
				}
			})
		}
	}
}

// So it is with a leader, which has the rest of the slot.
func TestALeaderWhoseClaimIsHeardOfTooLateMissesNothing(t *testing.T) {
	bubble(t, "", func(t *testing.T) {
		link := standsStill(t, memory.New(memory.Options{}), answeredLate)
		o := slotted("a", 0, time.Minute, 5*time.Second)
		o.Continuous = true
		w := start(t, setup{ledger: link, Options: o})
		at(109 * time.Second)
		if u := w.history(); len(u) != 1 || u[0].allocated > 65*time.Second+o.FailoverWithin {
			t.Errorf("its leases: %+v, want one that begins within %v after 1m5s", u, o.FailoverWithin)
		}
		if missed := observed[event.Missed](w); len(missed) > 0 {
			t.Errorf("it says that %+v were missed, want nothing", missed)
		}
	})
}

// A store is so slow at claims that each is heard of too late. That is two records for each, and no attempt: so the claims come less and
// less often, and MaxAttempts need not bound them. Once they came 1,160 times an hour. The slot is missed once, if at all.
func TestClaimsThatAreHeardOfTooLateComeLessAndLessOften(t *testing.T) {
	bubble(t, "by one worker", func(t *testing.T) {
		inner, _ := cut(t)
		claims := map[time.Duration]int{} // by the hour
		link := struck(t, inner.Handle(), func(c faultstore.Call) faultstore.Fault {
			if c.Op == faultstore.OpAppend {
				claims[since(c.At).Truncate(time.Hour)]++
				return faultstore.BlackHole(faultstore.Applied)
			}
			return eachCall(faultstore.Fault{After: 3 * time.Second}, faultstore.OpGet)(c)
		})
		o := slotted("a", 0, time.Hour, 5*time.Second)
		o.Job = &workerlease.Job{MaxAttempts: 2, StartWithin: time.Hour}
		w := start(t, setup{ledger: link, Options: o, task: func(context.Context, workerlease.Lease) error { return nil }})
		at(2*time.Hour + time.Minute)
		if n := claims[time.Hour]; n < 10 || n > 60 {
			t.Errorf("%d records were appended in an hour, want 10 to 60", n)
		}
		if missed := observed[event.Missed](w); len(missed) != 1 || since(missed[0].Slot.Start) != time.Hour {
			t.Errorf("its worker says that %+v were missed, want the first slot alone", missed)
		}
	})
	// Another takes over, and is done: then the slot is not missed.
	bubble(t, "and another takes over", func(t *testing.T) {
		inner, _ := cut(t)
		link := struck(t, inner.Handle(), func(c faultstore.Call) faultstore.Fault {
			if c.Op == faultstore.OpAppend && since(c.At) < 62*time.Second {
				return faultstore.Fault{After: 75*time.Second - since(c.At)}
			}
			return during(50*time.Second, 75*time.Second, faultstore.Fault{After: 16 * time.Second}, faultstore.OpGet)(c)
		})
		var all []*worker
		runs := 0
		for i, ledger := range []store.Ledger{link, inner.Handle()} {
			o := slotted(string(rune('a'+i)), i, time.Minute, 5*time.Second)
			o.Job = &workerlease.Job{StartWithin: time.Minute}
			all = append(all, start(t, setup{ledger: ledger, Options: o, task: func(context.Context, workerlease.Lease) error { runs++; return nil }}))
		}
		at(109 * time.Second)
		for _, w := range all {
			if missed := observed[event.Missed](w); len(missed) > 0 {
				t.Errorf("a worker says that %+v were missed", missed)
			}
		}
		if runs != 1 || len(holders(t, inner)) < 2 {
			t.Errorf("%d runs, by the claims of %v, want one by another", runs, holders(t, inner))
		}
	})
}
