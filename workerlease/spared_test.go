package workerlease_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/memory"
	"github.com/slotlease/slotlease/workerlease"
	"github.com/slotlease/slotlease/workerlease/event"
	"github.com/slotlease/slotlease/workerlease/operate"
	"github.com/slotlease/slotlease/workerlease/verify"
)

// Three deployments, or orders, in one night: nothing has failed, so all attempts are left, and the run is made to its end. It is
// begun long after the time in which a first attempt may begin.
func TestWhatEndsARunInOrderCostsNoAttempt(t *testing.T) {
	give := func(o operate.Order) func(*testing.T, operate.Desk) {
		return func(t *testing.T, d operate.Desk) {
			o.WorkerType = "job"
			_, err := d.Give(t.Context(), o)
			must(t, err)
		}
	}
	host, err := os.Hostname()
	must(t, err)
	for name, ends := range map[string]func(*testing.T, operate.Desk){
		"a deployment": nil,
		"a pause":      give(operate.Order{Kind: store.OrderPause, For: 10 * time.Second, Now: true}),
		"a drain":      give(operate.Order{Kind: store.OrderDrain, Target: host, For: 10 * time.Second, Now: true}),
		"a release":    give(operate.Order{Kind: store.OrderRelease}),
	} {
		bubble(t, name, func(t *testing.T) {
			ledger := memory.New(memory.Options{})
			o := daily("a", 2)
			o.Job.StartWithin = 10 * time.Minute
			made := 0
			j := &job{do: func(ctx context.Context, l workerlease.Lease, _ int) error {
				select {
				case <-time.After(3 * time.Hour):
					made = l.Attempt
					return nil
				case <-ctx.Done():
					return errors.New("exit code 143")
				}
			}}
			r := runsAtOnce(t, ledger.Handle(), o, j.run)
			for n := range 3 {
				at(time.Duration(n+1) * time.Hour)
				if ends != nil {
					ends(t, operate.On(ledger.Handle()))
					continue
				}
				r.cancel()
				must(t, <-r.ended)
				r.ended <- nil
				r = runsAtOnce(t, ledger.Handle(), o, j.run)
			}
			at(12 * time.Hour)
			if made != 4 {
				t.Errorf("made in attempt %d, want 4 of which 3 were ended in order: %v", made, j.of(0))
			}
			if head := newest(t, ledger); head.Spared != 3 || head.Attempt != 4 {
				t.Errorf("the head counts %d attempts, %d spared, want 4 and 3", head.Attempt, head.Spared)
			}
			if n := len(observed[event.Exhausted](r.worker)); n != 0 {
				t.Errorf("%d Exhausted events, want none", n)
			}
			v := verify.New(verify.Options{WorkerType: "job", Now: time.Now()})
			for _, r := range records(t, ledger) {
				v.Add(r)
			}
			for _, f := range v.Report().Findings {
				if f.Severity == verify.Fault || f.Code == verify.GivenUp || f.Code == verify.RunCut {
					t.Errorf("verify finds %v", f)
				}
			}
		})
	}
}

// What fails by itself counts, before and after deployments, and the last attempt that counts is told given up.
func TestFailuresCountBesideDeployments(t *testing.T) {
	bubble(t, "two failures and two deployments", func(t *testing.T) {
		ledger := memory.New(memory.Options{})
		o := daily("a", 2)
		o.Job.MinRetry = time.Minute
		j := &job{do: func(ctx context.Context, _ workerlease.Lease, attempt int) error {
			if attempt%2 == 1 {
				<-ctx.Done() // until it is deployed
			}
			return errWork
		}}
		r := runsAtOnce(t, ledger.Handle(), o, j.run)
		for n := range 2 {
			at(time.Duration(n+1) * time.Hour)
			r.cancel()
			must(t, <-r.ended)
			r.ended <- nil
			r = runsAtOnce(t, ledger.Handle(), o, j.run)
		}
		at(12 * time.Hour)
		if n := len(j.of(0)); n != 4 {
			t.Errorf("%d attempts, want 4: 2 failed", n)
		}
		failed := observed[event.TaskFailed](r.worker)
		if n := len(failed); n == 0 || !failed[n-1].GivenUp || failed[n-1].Lease.Attempt != 4 {
			t.Errorf("TaskFailed = %+v, want the last one to give the slot up in attempt 4", failed)
		}
		if n := len(observed[event.Exhausted](r.worker)); n != 1 {
			t.Errorf("%d Exhausted events, want 1", n)
		}
	})
}

// The documented nightly job has three attempts: what it needs may be down for a quarter of an hour, on one machine and on several.
func TestThreeAttemptsOfTheNightOutliveAnOutage(t *testing.T) {
	for _, machines := range [][]string{{"a"}, {"a", "b", "c"}} {
		bubble(t, machines[len(machines)-1], func(t *testing.T) {
			ledger := memory.New(memory.Options{})
			j := &job{do: func(context.Context, workerlease.Lease, int) error {
				if time.Since(t0)%(24*time.Hour) < 15*time.Minute {
					return errWork
				}
				return nil
			}}
			for _, name := range machines {
				runs(t, ledger.Handle(), daily(name, 3), j.run)
			}
			at(36 * time.Hour)
			var began []time.Duration
			for _, c := range j.calls {
				began = append(began, c.began-24*time.Hour)
			}
			if n := len(j.calls); n != 3 || j.calls[n-1].err != nil {
				t.Errorf("attempts began at %v after the slot, want the third after the outage of 15m", began)
			}
		})
	}
}

// daily are the options of a job with slots of a day.
func daily(name string, attempts int) workerlease.Options {
	o := perSlot(name, 0)
	o.LeaseInterval, o.Job.MaxAttempts = 24*time.Hour, attempts
	return o
}

// endsAfter is a task that takes so long to end when it is told to, and fails.
func endsAfter(takes time.Duration) workerlease.Task {
	return func(ctx context.Context, _ workerlease.Lease) error {
		<-ctx.Done()
		time.Sleep(takes)
		return errWork
	}
}

// slowStop is a worker whose code takes a while to end when it is told to, with a part of 15 s, and is told so at a time, by an order or by
// a stop; another one waits.
func slowStop(t *testing.T, told, takes time.Duration, most int, order store.OrderKind, then workerlease.Task) (other *running, ledger *memory.Ledger) {
	t.Helper()
	ledger = memory.New(memory.Options{})
	o := daily("a", most)
	a := runsAtOnce(t, ledger.Handle(), o, endsAfter(takes))
	at(time.Minute)
	o.InstanceID, o.Priority = "b", 1
	other = runsAtOnce(t, ledger.Handle(), o, then)
	at(told)
	if order == "" {
		a.cancel()
	} else {
		give(t, ledger, operate.Order{Kind: order, WorkerType: "job"})
	}
	return other, ledger
}

// That nothing has failed is told while the code still takes its time to end: its lease may be over before that.
func TestAStopCostsNoAttemptHoweverLongTheCodeTakes(t *testing.T) {
	for n := range 16 {
		told := time.Hour + time.Duration(n)*time.Second
		takes := []time.Duration{time.Second, 6 * time.Second, 12 * time.Second, time.Minute}[n/2%4]
		order := []store.OrderKind{"", store.OrderRelease}[n%2]
		bubble(t, fmt.Sprint(told, takes, order), func(t *testing.T) {
			attempt := 0
			b, ledger := slowStop(t, told, takes, 1, order, func(_ context.Context, l workerlease.Lease) error {
				attempt = l.Attempt
				return nil
			})
			at(20 * time.Hour)
			if attempt != 2 || len(observed[event.Exhausted](b.worker))+len(observed[event.WorkerDied](b.worker)) > 0 {
				t.Errorf("the last attempt is %d, want 2, and that nothing is given up and nobody died", attempt)
			}
			if head := newest(t, ledger); head.Spared != 1 || head.Attempt != 2 {
				t.Errorf("the head counts %d attempts, %d spared, want 2 and 1", head.Attempt, head.Spared)
			}
		})
	}
}

// What a run came to that was told to end is in the ledger, however long that took, with what it wrote; and it counts once.
func TestWhatCameOfARunThatWasToldToEnd(t *testing.T) {
	for n := range 16 {
		takes := []time.Duration{500 * time.Millisecond, 990 * time.Millisecond, 5 * time.Second, time.Minute}[n/4]
		want := []error{nil, errWork}[n%2]
		order := []store.OrderKind{"", store.OrderRelease}[n/2%2]
		bubble(t, fmt.Sprint(takes, want, order), func(t *testing.T) {
			ledger := memory.New(memory.Options{})
			a := runsAtOnce(t, ledger.Handle(), daily("a", 2), func(ctx context.Context, l workerlease.Lease) error {
				if l.Attempt > 1 {
					return nil
				}
				<-ctx.Done()
				time.Sleep(takes)
				l.Wrote("tidied")
				return want
			})
			at(time.Hour)
			if order == "" {
				a.cancel()
			} else {
				give(t, ledger, operate.Order{Kind: order, WorkerType: "job"})
			}
			at(2 * time.Hour)
			var last store.Outcome // of the first attempt
			for _, o := range told(t, ledger) {
				if o.Attempt == 1 {
					last = o
				}
			}
			spared, took := newest(t, ledger).Spared, last.Ended.Sub(t0.Add(time.Hour))
			if (last.Result == store.Succeeded) != (want == nil) || last.Output != "tidied" || took < takes-time.Millisecond || spared > 1 || want != nil && spared != 1 {
				t.Errorf("it came to %+v, %v after it was told, %d spared", last, took, spared)
			}
		})
	}
}

// That the attempt before counts for nothing may be told while the next one runs: then that isn't the last one.
func TestNothingIsGivenUpThatIsTriedAgain(t *testing.T) {
	bubble(t, "two attempts that count", func(t *testing.T) {
		runs := 0
		b, _ := slowStop(t, time.Hour, time.Minute, 2, "", func(context.Context, workerlease.Lease) error {
			time.Sleep(5 * time.Minute)
			if runs++; runs == 1 {
				return errWork
			}
			return nil
		})
		at(20 * time.Hour)
		for _, e := range observed[event.TaskFailed](b.worker) {
			if e.GivenUp {
				t.Errorf("attempt %d is told given up", e.Lease.Attempt)
			}
		}
		if runs != 2 || len(observed[event.Exhausted](b.worker)) > 0 {
			t.Errorf("%d runs, want 2, and nothing given up", runs)
		}
	})
}

// What waits after failures doesn't wait again after a stop. Nor does an order that is about something else bring that wait back.
func TestAStopIsFollowedAtOnceWhateverFailedBefore(t *testing.T) {
	for name, c := range map[string]struct {
		failures int
		stopped  time.Duration
		order    bool
	}{
		"five failures, and a deployment":                      {5, 8 * time.Hour, false},
		"a failure, a deployment, and a drain of another host": {1, time.Hour, true},
	} {
		bubble(t, name, func(t *testing.T) {
			ledger := memory.New(memory.Options{})
			j := &job{do: func(ctx context.Context, _ workerlease.Lease, n int) error {
				switch {
				case n <= c.failures:
					return errWork
				case n == c.failures+1:
					<-ctx.Done()
					return ctx.Err()
				}
				return nil
			}}
			r := runsAtOnce(t, ledger.Handle(), daily("a", 0), j.run)
			at(c.stopped)
			r.cancel()
			must(t, <-r.ended)
			r.ended <- nil
			if c.order {
				give(t, ledger, operate.Order{Kind: store.OrderDrain, Target: "elsewhere", WorkerType: "job", For: 10 * time.Hour})
			}
			runsAtOnce(t, ledger.Handle(), daily("a", 0), j.run)
			at(23 * time.Hour)
			if n := len(j.calls); n != c.failures+2 || j.calls[n-1].began > c.stopped+time.Minute {
				t.Errorf("calls %+v, want one more at once after %v", j.calls, c.stopped)
			}
		})
	}
}

// A trigger's run that failed waits after that, and not after each slot of the job's own that comes between. The attempts before a
// slot count.
func TestATriggerIsTriedAgainBetweenShortSlots(t *testing.T) {
	bubble(t, "slots of a minute", func(t *testing.T) {
		ledger := memory.New(memory.Options{})
		var runs []time.Duration
		slots, last := 0, 0
		o := perSlot("a", 0)
		o.LeaseInterval, o.Job.MaxAttempts = time.Minute, 5
		start(t, setup{Options: o, ledger: ledger.Handle(), task: func(_ context.Context, l workerlease.Lease) error {
			if !l.Triggered {
				slots++
				return nil
			}
			runs, last = append(runs, time.Since(t0)), l.Attempt
			return errWork
		}})
		at(90 * time.Second)
		give(t, ledger, operate.Order{Kind: store.OrderTrigger, WorkerType: "job", For: 6 * time.Hour})
		at(7 * time.Hour)
		for n := 1; n < len(runs); n++ {
			if least := 90 * time.Second << (n - 1); runs[n]-runs[n-1] < least {
				t.Errorf("run %d comes %v after the one before, want %v or more", n+1, runs[n]-runs[n-1], least)
			}
		}
		if len(runs) != 5 || last != 5 || slots < 410 || newest(t, ledger).Orders != "" {
			t.Errorf("runs at %v, the last one as attempt %d, beside %d slots, and then the orders %q; want 5, 410 slots, and no order", runs, last, slots, newest(t, ledger).Orders)
		}
	})
}
