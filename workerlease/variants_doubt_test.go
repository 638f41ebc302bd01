package workerlease_test

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/testutil/sim"
	"github.com/slotlease/slotlease/workerlease"
	"github.com/slotlease/slotlease/workerlease/internal/machine"
)

// doubtVariants let a doubt about the time cost more than it must.
var doubtVariants = []variant{
	// The store's clock is off by hours for 20 s, and w0 notices that. It samples no more until claims
	// for the next slot open, which is hours later by one of the clocks.
	{
		name: "a doubt is settled when a claim needs it", rule: "Samples: IfApart", regime: comesBack,
		instead: standard.Samples &^ (machine.IfApart | machine.IfAhead), audit: idleFor(14 * time.Hour),
	},
	// For two minutes, servers a part of a slot apart answer in turn. w0's lease ends, and it turns to
	// the next slot: nothing could be claimed in this one.
	{
		name: "a slot that can't be claimed is over", rule: "InDoubt: Contending", regime: inTurnAtTimes,
		instead: standard.InDoubt &^ machine.Contending, audit: idleFor(30 * time.Minute),
	},
	// The same, right when w0's work is done. w0 samples until it knows the time, and w1 begins.
	{
		name: "a done record waits for the time", rule: "InDoubt: Recording", regime: inTurnWhenDone,
		instead: standard.InDoubt &^ machine.Recording, audit: doneAgain,
	},
}

// misled is a run in which stamps are off by what is returned for a time of the run, and the number
// of the stamp among a client's. The world doesn't know that, and demands no more than beyond the
// assumptions.
func misled(o sim.Options, off func(at time.Duration, n int64) time.Duration) sim.Options {
	o.Faults = sim.Faults{Latency: 30 * time.Millisecond, Apart: time.Millisecond}
	o.Client = func(l store.Ledger, c workerlease.ClientOptions) *workerlease.Client {
		var n atomic.Int64
		return workerlease.NewClient(&hooked{Ledger: l, stamp: func(s *store.Stamp, _ time.Time) {
			s.Time = s.Time.Add(off(sinceBegin(time.Now()), n.Add(1)))
		}}, c)
	}
	return o
}

// comesBack: in the middle of a slot of 12 h, the store's clock is off for 20 s. For that
// time, the client of whoever has the slot has another worker, which notices that.
func comesBack(seed int64) sim.Options {
	from := 12*time.Hour + 10*time.Minute + time.Duration(seed)*time.Second
	o := misled(sim.Options{
		Seed: seed, Workers: 1, Length: 40 * time.Hour,
		Worker: workers(func(n int, w *workerlease.Options) { w.Priority, w.LeaseInterval = n, 12*time.Hour }),
	}, func(at time.Duration, _ int64) time.Duration {
		if at >= from && at < from+20*time.Second {
			return -4 * time.Hour
		}
		return 0
	})
	o.Callbacks = func(p *sim.Process) workerlease.Callbacks {
		var notice sync.Once
		return workerlease.Callbacks{LeaseAllocated: func(ctx context.Context, l workerlease.Lease) {
			p.Work(l)
			if wait := from - 10*time.Second - sinceBegin(time.Now()); wait > 0 && wait < 12*time.Hour {
				p.Clock().Sleep(wait)
				notice.Do(func() { besideFor(p, 50*time.Second) })
			}
			<-ctx.Done()
		}}
	}
	return o
}

// besideFor runs another worker of a process's client, with short slots, for so long.
func besideFor(p *sim.Process, d time.Duration) {
	other := workerlease.Options{WorkerType: "other", InstanceID: p.String(), LeaseInterval: 5 * time.Second}
	w, err := p.Leasing().Client().StartLeasing(context.Background(), other, workerlease.Callbacks{LeaseAllocated: nothing})
	if err != nil {
		panic(err)
	}
	go func() {
		p.Clock().Sleep(d)
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		_ = w.StopLeasing(ctx)
	}()
}

// inTurnAtTimes: servers a minute apart answer in turn for two minutes of each hour, in slots of three
// hours that are taken over within a minute.
func inTurnAtTimes(seed int64) sim.Options {
	return misled(sim.Options{
		Seed: seed, Workers: 1, Length: 8 * time.Hour,
		Worker: workers(func(n int, w *workerlease.Options) {
			w.Priority, w.LeaseInterval, w.FailoverWithin = n, 3*time.Hour, time.Minute
		}),
	}, func(at time.Duration, n int64) time.Duration {
		if into := (at - time.Duration(seed)*time.Second).Abs() % time.Hour; into < 30*time.Minute || into >= 32*time.Minute || n%2 == 0 {
			return 0
		}
		return time.Minute
	})
}

// inTurnWhenDone: a job takes a minute, once per slot. When it is done, two servers answer its worker
// in turn.
func inTurnWhenDone(seed int64) sim.Options {
	o := sim.Options{
		Seed: seed, Workers: 2, Length: 2 * time.Hour, Task: brief(time.Minute),
		Faults: sim.Faults{Latency: 30 * time.Millisecond, Apart: time.Millisecond},
		Worker: workers(func(n int, w *workerlease.Options) {
			w.Priority, w.LeaseInterval, w.FailoverWithin, w.Job = n, 10*time.Minute, time.Minute, &workerlease.Job{StartWithin: 10 * time.Minute, Overrun: workerlease.Stop}
		}),
	}
	o.Client = func(l store.Ledger, c workerlease.ClientOptions) *workerlease.Client {
		var won, n atomic.Int64
		return workerlease.NewClient(&hooked{
			Ledger:       l,
			beforeAppend: func(r store.Record) { won.Store(int64(sinceBegin(r.SlotStart))) },
			stamp: func(s *store.Stamp, _ time.Time) {
				if d := sinceBegin(time.Now()) - time.Duration(won.Load()); d >= time.Minute && d < 4*time.Minute && n.Add(1)%2 == 1 {
					s.Time = s.Time.Add(50 * time.Second)
				}
			},
		}, c)
	}
	return o
}
