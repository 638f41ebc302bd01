package workerlease_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/slotlease/slotlease/slots"
	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/testutil/sim"
	"github.com/slotlease/slotlease/workerlease"
	"github.com/slotlease/slotlease/workerlease/internal/machine"
)

// faultVariants let a single fault cost more than it must: slots that nobody has, or work that
// is done again. No two holders work at once for that.
var faultVariants = []variant{
	// One answer of the store is wrong by hours. It is taken for a clock in force, and nobody
	// works until all that could have been begun by it is over.
	{name: "each answer tells the time", rule: "Confirm", regime: lies, instead: 1, as: "nobody had", audit: idleFor(9 * time.Minute)},
	// The answer that shows that w0 has the slot is wrong by hours. w1 aims at the next slot by that, and
	// waits for hours.
	{name: "a turn stays where a wrong answer has put it", rule: "Reaims", regime: liesOften, instead: false, as: "has called the store for nothing"},
	// The store's clock is set back by hours. What was granted by it before is waited for by it,
	// for hours.
	{
		name: "a clock that has jumped is waited for by the new one", rule: "Patience", regime: setBack,
		instead: 1000 * time.Hour, audit: idleFor(45 * time.Minute),
	},
	// w0's first answer is wrong by hours. It joins the slot of that time.
	{
		name: "the first answer tells the time", rule: "Samples: IfSingle", regime: liesFirst,
		instead: standard.Samples &^ machine.IfSingle, audit: outOfTime,
	},
	// w0's client has been idle for hours, and its clock drifts. w0 starts right after a
	// boundary, takes the slot for one that is yet to begin, and works in the middle of it.
	{
		name: "what a client knows of the time stays true", rule: "Samples: IfIdle", regime: idleClients,
		instead: standard.Samples &^ machine.IfIdle, audit: outOfTime,
	},
	// The first answers come late. w0 waits for as long in its slot, until that has surely begun.
	{
		name: "a sample is as good as another", rule: "Samples: IfWide", regime: lateAnswers,
		instead: standard.Samples &^ machine.IfWide, audit: late,
	},
	// Samples contradict each other for a moment, and w0's lease of three hours ends. Nobody else
	// looks at the slot, and w0 doesn't either.
	{
		name: "what a jump has ended is lost", rule: "GivesBack: AfterJump", regime: liesInTheMiddle,
		instead: standard.GivesBack &^ machine.AfterJump, audit: idleFor(30 * time.Minute),
	},
	// w0's code runs on for most of the slot that w0 has won next. Somebody who would take it is
	// refused.
	{
		name: "what was won is kept", rule: "GivesBack: WhileOverrun", regime: overrunsNext,
		instead: standard.GivesBack &^ machine.WhileOverrun, audit: nothingToTry,
	},
	// A job fails each time. It is tried again and again, for all of its slot.
	{
		name: "a job that fails is tried again at once", rule: "Retry", regime: hopeless,
		instead: func(least time.Duration, _ int, _ time.Duration) time.Duration { return least }, audit: tirelessly,
	},
	// The store asks for 50 minutes, once. All workers wait for as long.
	{
		name: "a store gets all the time that it asks for", rule: "Pause", regime: throttled,
		instead: func(asked, _ time.Duration) time.Duration { return asked }, audit: idleFor(11 * time.Minute),
	},
	// w0's work is done in an outage, and its record is refused a few times. When the store is up
	// again, w0 waits on, and w1 begins.
	{
		name: "a done record waits as all do", rule: "CloseSoon", regime: doneInOutages(time.Minute),
		instead: time.Hour, audit: doneAgain,
	},
	// The same, and w1 begins as soon as the store is up.
	{name: "after an outage nobody has done the work", rule: "Defers", regime: doneInOutages(time.Second), instead: false, audit: doneAgain, seldom: true},
	// Work is recorded as done while w1, to whom the rest of the slot was granted, waits for that
	// to begin.
	{
		name: "what was not done at the grant is not done", rule: "Looks: AtRetry", regime: doneLate,
		instead: standard.Looks &^ machine.AtRetry, audit: begunWhenDone,
	},
}

// idleFor reports that nobody had a lease for longer, from the first lease to the last.
func idleFor(most time.Duration) func(*sim.Result) []string {
	return func(r *sim.Result) []string {
		end := time.Duration(-1)
		for _, l := range r.Leases {
			if end >= 0 && l.Began-end > most {
				return []string{fmt.Sprintf("at %v: nobody had a lease for %v", l.Began, l.Began-end)}
			}
			end = max(end, l.Ended, l.Began)
		}
		return nil
	}
}

// outOfTime finds leases of slots in whose middle their process started, or which are not the
// one of the time.
func outOfTime(r *sim.Result) (wrong []string) {
	for _, l := range r.Leases {
		if late := l.Began - sinceBegin(l.Slot.Start); late > time.Second {
			wrong = append(wrong, fmt.Sprintf("at %v: %v begins %v after its slot", l.Began, l, late))
		}
	}
	return wrong
}

// late finds leases that began late in their window.
func late(r *sim.Result) (wrong []string) {
	for _, l := range r.Leases {
		if d := l.Began - l.Start; d > time.Second {
			wrong = append(wrong, fmt.Sprintf("at %v: %v begins %v after its window", l.Began, l, d))
		}
	}
	return wrong
}

// sinceBegin is a store time as a time of the run.
func sinceBegin(t time.Time) time.Duration { return t.Sub(time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)) }

// lies: now and then one answer of the store is wrong by hours.
func lies(seed int64) sim.Options {
	return sim.Options{
		Seed: seed, Workers: 4, Length: 12 * time.Hour,
		Faults: sim.Faults{Latency: 30 * time.Millisecond, WrongStamps: time.Hour, WrongBy: 2 * time.Hour},
		Worker: workers(func(n int, w *workerlease.Options) { w.Priority, w.LeaseInterval = n, 5*time.Minute }),
	}
}

// liesOften: slots are short, so that a wrong answer often comes with the look that shows who has one.
func liesOften(seed int64) sim.Options {
	o := lies(seed)
	o.Workers, o.Length, o.Faults.WrongStamps, o.Faults.NoBoottime = 8, 6*time.Hour, 20*time.Minute, true
	o.Faults.Skew = 100 * time.Millisecond
	o.Worker = workers(func(_ int, w *workerlease.Options) { w.LeaseInterval = 10 * time.Second })
	return o
}

// setBack: now and then the store's clock is wrong by hours, for a while.
func setBack(seed int64) sim.Options {
	o := lies(seed)
	o.Faults = sim.Faults{Latency: 30 * time.Millisecond, WrongClocks: 6 * time.Hour, WrongClockBy: 4 * time.Hour}
	return o
}

// liesFirst: some processes get a wrong answer first, by less than a slot.
func liesFirst(seed int64) sim.Options {
	o := lies(seed)
	o.Faults = sim.Faults{Latency: 30 * time.Millisecond, Restarts: 10 * time.Minute, FirstStamps: 0.5, WrongBy: time.Minute}
	return o
}

// idleClients: each process has had no worker for three hours when it starts one.
func idleClients(seed int64) sim.Options {
	return sim.Options{
		Seed: seed, Workers: 2, Length: 9 * time.Hour,
		Faults: sim.Faults{Latency: 5 * time.Millisecond, Drift: 0.001},
		Worker: workers(func(_ int, w *workerlease.Options) { w.Schedule = slots.Must(slots.Every(20 * time.Second)) }),
		Client: func(l store.Ledger, c workerlease.ClientOptions) *workerlease.Client {
			client := workerlease.NewClient(l, c)
			claim, err := client.TryClaim(context.Background(), workerlease.Options{WorkerType: "before"})
			if err == nil {
				_ = claim.Release(context.Background())
			}
			time.Sleep(3 * time.Hour)
			return client
		},
	}
}

// lateAnswers: the first answers that a process gets take a second and a half to come.
func lateAnswers(seed int64) sim.Options {
	o := idleClients(seed)
	o.Workers, o.Length = 2, 6*time.Hour
	o.Faults.Drift, o.Faults.NoFreeStamp, o.Faults.Restarts = 0, true, 3*time.Minute
	change(&o, func(_ int, w *workerlease.Options) { w.Schedule = slots.Must(slots.Every(10 * time.Second)) })
	o.Client = func(l store.Ledger, c workerlease.ClientOptions) *workerlease.Client {
		var n atomic.Int64
		return workerlease.NewClient(&hooked{Ledger: l, stamp: func(*store.Stamp, time.Time) {
			if n.Add(1) <= 2 {
				time.Sleep(1500 * time.Millisecond)
			}
		}}, c)
	}
	return o
}

// liesInTheMiddle is the same as lies, in slots of three hours. The client of whoever has one has
// another worker, which samples the time.
func liesInTheMiddle(seed int64) sim.Options {
	o := lies(seed)
	change(&o, func(_ int, w *workerlease.Options) { w.LeaseInterval = 3 * time.Hour })
	o.Callbacks = func(p *sim.Process) workerlease.Callbacks {
		beside := sync.OnceFunc(func() {
			other := workerlease.Options{WorkerType: "other", InstanceID: p.String(), LeaseInterval: 10 * time.Minute}
			w, err := p.Leasing().Client().StartLeasing(context.Background(), other, workerlease.Callbacks{LeaseAllocated: nothing})
			if err != nil {
				panic(err)
			}
			go func() {
				<-p.Leasing().Done()
				ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
				defer cancel()
				_ = w.StopLeasing(ctx)
			}()
		})
		return workerlease.Callbacks{LeaseAllocated: func(ctx context.Context, l workerlease.Lease) {
			p.Clock().Sleep(time.Millisecond) // Leasing is known by then.
			beside()
			p.Work(l)
			<-ctx.Done()
		}}
	}
	return o
}

// overrunsNext: w0's code runs on for most of the next slot, and the client of a worker of another
// type tries to claim each slot all the time.
func overrunsNext(seed int64) sim.Options {
	const slot = 20 * time.Minute
	each := workerlease.Options{Schedule: slots.Must(slots.Every(slot))}
	o := sim.Options{
		Seed: seed, Workers: 2, Length: 3 * time.Hour,
		Faults: sim.Faults{Latency: 30 * time.Millisecond},
		Worker: func(n int) workerlease.Options {
			w := each
			w.InstanceID, w.WorkerType = fmt.Sprint("w", n), []string{"sim", "other"}[n]
			return w
		},
	}
	o.Callbacks = func(p *sim.Process) workerlease.Callbacks {
		return workerlease.Callbacks{LeaseAllocated: func(ctx context.Context, l workerlease.Lease) {
			p.Work(l)
			for p.Worker == 1 && ctx.Err() == nil {
				p.Clock().Sleep(time.Minute)
				try := each
				try.InstanceID, try.WorkerType = "try", "sim"
				if claim, err := p.Leasing().Client().TryClaim(ctx, try); err == nil {
					_ = claim.Release(context.WithoutCancel(ctx))
				}
			}
			if <-ctx.Done(); p.Worker == 0 {
				p.Clock().Sleep(slot * 2 / 3)
			}
		}}
	}
	return o
}

// nothingToTry reports that whoever tries to claim a slot never gets one.
func nothingToTry(r *sim.Result) []string {
	if slices.ContainsFunc(r.Records["sim"], func(x store.Record) bool {
		return x.InstanceID == "try" && sinceBegin(x.WindowStart) > r.Leases[0].Began
	}) {
		return nil
	}
	return []string{"nobody could have what w0 kept"}
}

// hopeless: a job fails each time.
func hopeless(seed int64) sim.Options {
	o := sim.Options{
		Seed: seed, Workers: 2, Length: 5 * time.Hour,
		Faults: sim.Faults{Latency: 30 * time.Millisecond},
		Worker: workers(func(_ int, w *workerlease.Options) {
			w.LeaseInterval, w.Job = 2*time.Hour, &workerlease.Job{MinRetry: 10 * time.Second, StartWithin: 2 * time.Hour, Overrun: workerlease.Stop}
		}),
	}
	o.Task = func(p *sim.Process) workerlease.Task {
		return func(_ context.Context, l workerlease.Lease) error {
			p.Work(l)
			return errors.New("hopeless")
		}
	}
	return o
}

// tirelessly reports a slot that was tried more than 30 times.
func tirelessly(r *sim.Result) []string {
	tries := map[time.Time]int{}
	for _, l := range r.Leases {
		if tries[l.Slot.Start]++; tries[l.Slot.Start] > 30 {
			return []string{fmt.Sprintf("at %v: a slot is tried for the %d. time", l.Began, tries[l.Slot.Start])}
		}
	}
	return nil
}

// throttled: once an hour the store asks each client for 50 minutes, and serves the next call.
func throttled(seed int64) sim.Options {
	o := lies(seed)
	o.Faults = sim.Faults{Latency: 30 * time.Millisecond}
	o.Worker = workers(func(n int, w *workerlease.Options) {
		w.Priority, w.Schedule = n, slots.Must(slots.Every(5*time.Minute))
	})
	o.Client = func(l store.Ledger, c workerlease.ClientOptions) *workerlease.Client {
		var mu sync.Mutex
		began, asked := time.Now(), time.Duration(0)
		return workerlease.NewClient(&hooked{Ledger: l, before: func() error {
			mu.Lock()
			defer mu.Unlock()
			if n := time.Since(began) / time.Hour; n > asked {
				asked = n
				return &store.ThrottledError{RetryAfter: 50 * time.Minute}
			}
			return nil
		}}, c)
	}
	return o
}

// doneInOutages: a job takes a minute, once per slot, and the store often has an outage. Workers
// that can't reach it wait for up to a time.
func doneInOutages(most time.Duration) regime {
	return func(seed int64) sim.Options {
		return sim.Options{
			Seed: seed, Workers: 4, Length: 24 * time.Hour, Task: brief(time.Minute),
			Faults: sim.Faults{Latency: 30 * time.Millisecond, Outages: 10 * time.Minute},
			Worker: workers(func(n int, w *workerlease.Options) {
				w.Priority, w.LeaseInterval, w.FailoverWithin, w.Job = n, 10*time.Minute, 2*time.Minute, &workerlease.Job{StartWithin: 10 * time.Minute, Overrun: workerlease.Stop}
				w.MaxBackoff = most
			}),
		}
	}
}

// brief is a task that takes some time, and never fails.
func brief(d time.Duration) func(*sim.Process) workerlease.Task {
	return func(p *sim.Process) workerlease.Task {
		return func(ctx context.Context, l workerlease.Lease) error {
			p.Work(l)
			select {
			case <-p.Clock().After(d):
				return nil
			case <-ctx.Done():
				return context.Cause(ctx)
			}
		}
	}
}

// doneAgain finds slots that were done, and begun again after that.
func doneAgain(r *sim.Result) []string {
	done := map[time.Time]time.Duration{}
	for _, l := range r.Leases {
		if first, ok := done[l.Slot.Start]; ok && l.Began > first {
			return []string{fmt.Sprintf("at %v: %v begins, and it was done at %v", l.Began, l, first)}
		}
		if took := l.Ended - l.Began; took > 59*time.Second && took < 61*time.Second {
			done[l.Slot.Start] = l.Ended
		}
	}
	return nil
}

// doneLate: each job fails, and is recorded as done right after the grant of its second attempt.
// The store's time is so uncertain that this one waits for a second.
func doneLate(seed int64) sim.Options {
	o := hopeless(seed)
	o.Faults.Skew = 500 * time.Millisecond
	change(&o, func(_ int, w *workerlease.Options) {
		w.LeaseInterval, w.Job.StartWithin = 10*time.Minute, 10*time.Minute
	})
	o.Client = func(l store.Ledger, c workerlease.ClientOptions) *workerlease.Client {
		return workerlease.NewClient(&hooked{Ledger: l, afterAppend: func(r store.Record) {
			if r.Attempt != 2 || r.Kind != store.KindGrant {
				return
			}
			r.Seq, r.Kind, r.WindowStart, r.DoneUntil, r.Done = r.Seq+1, store.KindDone, r.WindowEnd, r.SlotEnd, store.Done{Start: r.SlotStart, End: r.SlotEnd}.String()
			r.Metadata = store.Outcome{Result: store.Succeeded, InstanceID: r.InstanceID, SlotStart: r.SlotStart, SlotEnd: r.SlotEnd}.Metadata()
			time.Sleep(100 * time.Millisecond)
			_ = l.Append(context.Background(), r)
		}}, c)
	}
	return o
}

// begunWhenDone finds slots that were tried again.
func begunWhenDone(r *sim.Result) (wrong []string) {
	tried := map[time.Time]bool{}
	for _, l := range r.Leases {
		if tried[l.Slot.Start] {
			wrong = append(wrong, fmt.Sprintf("at %v: %v begins, and it was done", l.Began, l))
		}
		tried[l.Slot.Start] = true
	}
	return wrong
}
