package sim_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/testutil/sim"
	"github.com/slotlease/slotlease/workerlease"
)

// asked: operators ask for runs at any time, beside the slots of a job.
func asked(seed int64) sim.Options {
	o := sim.Options{
		Seed: seed, Workers: 4, Length: 4 * time.Hour, Triggers: 5 * time.Minute, Hints: seed%3 != 0,
		Task: sim.DefaultTask,
		Faults: sim.Faults{
			Latency: 10 * time.Millisecond, Skew: 10 * time.Millisecond, Restarts: 40 * time.Minute, Stalls: time.Hour, Outages: 2 * time.Hour, Partitions: 2 * time.Hour,
			Delayed: 0.01, LostReply: 0.05, Late: 0.05,
		},
	}
	if seed%2 == 0 {
		o.Orders = 20 * time.Minute
	}
	o.Worker = func(n int) workerlease.Options {
		return workerlease.Options{
			WorkerType: "sim", InstanceID: fmt.Sprint("w", n), Priority: n, LeaseInterval: 10 * time.Minute, Retention: 24 * time.Hour,
			Job: &workerlease.Job{MaxAttempts: int(seed % 4), CatchUp: workerlease.CatchUp(seed % 3), Timeout: 20 * time.Minute},
		}
	}
	return o
}

// triggersLeft are the triggers that nobody has run, or has given up, although their time is over.
func triggersLeft(r *sim.Result) (left []store.Order) {
	records := r.Records["sim"]
	last := records[len(records)-1]
	for _, given := range records {
		o, ok := given.Order()
		if !ok || o.Kind != store.OrderTrigger || o.Until.After(last.WindowEnd) {
			continue
		}
		settled := slices.ContainsFunc(records, func(r store.Record) bool {
			out, told := r.Outcome()
			return told && r.Triggered() && out.SlotStart.Equal(o.At) && (out.Result == store.Succeeded || out.GivenUp)
		})
		if !settled {
			left = append(left, o)
		}
	}
	return left
}

func TestRunsThatOperatorsAskForAreOneAtATime(t *testing.T) {
	calls := 0
	for seed := range int64(12) {
		r := sim.Run(t, asked(seed))
		r.Check(t)
		calls += r.Demands.Asked
	}
	if calls < 100 {
		t.Errorf("%d runs were asked for and made, want 100 or more", calls)
	}
}

// In these seeds, what came of work whose lease had ended was recorded on the term of another. In 12 the trigger stood, and the record
// was appended again and again for a minute; in 21 the work was a slot's, and the next slot was said to be done, which waited for the
// run of a trigger.
func TestSeedsInWhichWorkWasRecordedWronglyOnTheTermOfAnother(t *testing.T) {
	for _, seed := range []int64{12, 21, 31} {
		o := asked(seed)
		o.Length = 3 * time.Hour
		r := sim.Run(t, o)
		r.Check(t)
		if n := len(r.Records["sim"]); n > 700 {
			t.Errorf("seed %d: %d records, want 700 or fewer", seed, n)
		}
	}
}

// Where runs are short, workers die and stop all the time, and the store is there, each run that is asked for is made within five
// minutes, and each slot has its own.
func TestEachRunThatIsAskedForIsMade(t *testing.T) {
	asked, done := 0, 0
	for seed := range int64(4) {
		o := sim.Options{
			Seed: seed, Workers: 4, Length: 6 * time.Hour, Triggers: 4 * time.Minute, Hints: seed%2 == 0, Task: short,
			Faults: sim.Faults{Latency: 10 * time.Millisecond, Restarts: 15 * time.Minute, LostReply: 0.05, Late: 0.05},
			Worker: func(n int) workerlease.Options {
				return workerlease.Options{
					WorkerType: "sim", InstanceID: fmt.Sprint("w", n), Priority: n, LeaseInterval: 5 * time.Minute, Retention: 24 * time.Hour,
					Job: &workerlease.Job{CatchUp: workerlease.CatchUpAll},
				}
			},
		}
		r := sim.Run(t, o)
		r.Check(t)
		slotsDone := map[time.Time]bool{}
		for _, x := range r.Records["sim"] {
			if out, told := x.Outcome(); told && out.Result == store.Succeeded && !x.Triggered() {
				slotsDone[out.SlotStart] = true
			}
			if given, ok := x.Order(); ok && given.Kind == store.OrderTrigger {
				asked++
			}
		}
		for _, o := range triggersLeft(r) {
			if o.Until.Sub(o.At) >= 5*time.Minute {
				t.Errorf("seed %d: nobody has run %v", seed, o)
			}
		}
		done += len(slotsDone)
	}
	if asked < 200 || done < 4*70 {
		t.Errorf("%d runs were asked for, and %d slots done, want 200 and 280 or more", asked, done)
	}
	t.Logf("%d runs were asked for, and %d slots done", asked, done)
}

// short is a task of some seconds, which fails now and then.
func short(p *sim.Process) workerlease.Task {
	return func(ctx context.Context, l workerlease.Lease) error {
		p.Work(l)
		p.Clock().Sleep(time.Duration(1+l.Token%7) * time.Second)
		if l.Token%11 == 0 {
			return errors.New("now and then")
		}
		return ctx.Err()
	}
}
