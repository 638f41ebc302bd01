package sim_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/slotlease/slotlease/internal/suites"
	"github.com/slotlease/slotlease/slots"
	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/testutil/sim"
	"github.com/slotlease/slotlease/workerlease"
	"github.com/slotlease/slotlease/workerlease/event"
)

// jobRegimes: work that its slot is too short for, that hangs, and that is caught up; and workers as they were before
// there was any of that.
var jobRegimes = []regime{
	{"jobs that overrun, time out and are caught up", func(o *sim.Options, r *rand.Rand) {
		f := &o.Faults
		f.Restarts, f.Stalls, f.Outages, f.Partitions = pick(r, 0, 5*time.Minute, 20*time.Minute), pick(r, 0, 10*time.Minute), pick(r, 0, 20*time.Minute), pick(r, 0, 30*time.Minute)
		f.Delayed, f.LostReply, f.Late = pick(r, 0, 0.02), pick(r, 0, 0.1), pick(r, 0, 0.1)
		j := workerlease.Job{
			CatchUp: pick(r, workerlease.CatchUpNone, workerlease.CatchUpNewest, workerlease.CatchUpAll),
			Timeout: pick(r, 2*time.Minute, 5*time.Minute), MaxAttempts: pick(r, 0, 2, 3), StartWithin: pick(r, 0, 10*time.Second),
		}
		careers(o, r, func(_ int, w *workerlease.Options) { w.Job = &j })
	}, eachSlotHasItsFate, forgetful, "done", true},
	{"earlier versions beside new ones", func(o *sim.Options, r *rand.Rand) {
		f := &o.Faults
		f.Restarts, f.Outages, f.LostReply = pick(r, 5*time.Minute, 20*time.Minute), pick(r, 0, 20*time.Minute), pick(r, 0, 0.1)
		kind, odd := r.IntN(4), r.IntN(2)
		careers(o, r, func(n int, w *workerlease.Options) {
			switch kind {
			case 0:
				w.Continuous, w.FailoverWithin = true, 15*time.Second
			case 1:
				w.FailoverWithin = 15 * time.Second
			default:
				w.Job = &workerlease.Job{MaxAttempts: 3}
			}
			if n%2 == odd {
				earlier(w)
			}
		})
	}, noSlotIsDoneTwice, forgetful, "done", true},
}

// earlier gives a worker what all of its version had: it waits for a boundary, and its work begins at any time of
// its slot and ends with it.
func earlier(w *workerlease.Options) {
	w.WaitForBoundary = true
	if w.Job != nil {
		w.Job = &workerlease.Job{MaxAttempts: w.Job.MaxAttempts, StartWithin: w.LeaseInterval, Overrun: workerlease.Stop}
	}
}

// careers draws an hour of slots of a minute, and keeps what workers do and say.
func careers(o *sim.Options, r *rand.Rand, worker func(int, *workerlease.Options)) {
	o.Length, o.Workers = time.Hour, pick(r, 2, 4, 6)
	x := &career{origin: o.Begin, seed: o.Seed, self: map[string]*workerlease.WorkerLease{}, beats: map[string][]time.Duration{}, told: map[time.Time]string{}}
	if x.origin.IsZero() {
		x.origin = time.Date(2000, time.January, 1, 0, 0, 0, 0, time.UTC)
	}
	eachWorker(o, func(n int, w *workerlease.Options) {
		w.LeaseInterval, w.Retention = time.Minute, 24*time.Hour
		worker(n, w)
	})
	o.Task = x.task
	o.Client = x.client
	careerBySeed.Store(o.Seed, x)
}

var careerBySeed sync.Map

// career is what the workers of a run did and said.
type career struct {
	origin time.Time
	seed   int64

	mu    sync.Mutex
	self  map[string]*workerlease.WorkerLease // the newest process of each worker
	beats map[string][]time.Duration          // when a process ran, about once a second
	told  map[time.Time]string                // what was said of a slot, by its start
}

func (x *career) client(l store.Ledger, c workerlease.ClientOptions) *workerlease.Client {
	inner := c.Observer
	c.Observer = event.ObserverFunc(func(e event.Event) {
		x.observe(e)
		inner.Observe(e)
	})
	return workerlease.NewClient(l, c)
}

func (x *career) observe(e event.Event) {
	x.mu.Lock()
	defer x.mu.Unlock()
	switch e := e.(type) {
	case event.Started:
		x.self[e.InstanceID] = e.Self.(*workerlease.WorkerLease)
	case event.Missed:
		every := slots.Must(slots.Every(time.Minute))
		for s := e.Slot; s.Start.Before(e.Until); s = every.Next(s.Start) {
			x.told[s.Start] = "missed"
		}
	case event.Skipped:
		x.told[e.Slot.Start] = "skipped"
	}
}

// task takes a while, which may be several slots, and may fail or hang.
func (x *career) task(p *sim.Process) workerlease.Task {
	go x.beat(p)
	return func(ctx context.Context, l workerlease.Lease) error {
		r := rand.New(rand.NewPCG(uint64(x.seed), uint64(l.Token)+uint64(l.Slot.Start.Unix())))
		parts, u := 1+r.IntN(40), r.IntN(20)
		switch {
		case u < 4:
			parts = 40 + r.IntN(40)
		case u < 7:
			parts = 80 + r.IntN(200)
		case u == 7:
			parts = 10000
		}
		for range parts {
			if !(exporter{process: p}).wait(ctx, 1200*time.Millisecond) {
				return context.Cause(ctx)
			}
			if l.Valid() {
				p.Work(l)
			}
		}
		if u > 17 {
			return errors.New("no luck")
		}
		return nil
	}
}

// beat notes that a process runs, for as long as it lives.
func (x *career) beat(p *sim.Process) {
	name := fmt.Sprint("w", p.Worker)
	for {
		sleep(p, time.Second)
		x.mu.Lock()
		self := x.self[name]
		x.beats[name] = append(x.beats[name], time.Since(x.origin))
		x.mu.Unlock()
		if p.Dead() {
			return
		}
		select {
		case <-self.Done():
			return
		default:
		}
	}
}

// attended reports that one process ran from one time to another, and could use the store.
func (x *career) attended(r *sim.Result, from, to time.Duration) bool {
	if slices.ContainsFunc(r.Down, func(s sim.Span) bool { return s.From < to && s.To > from }) {
		return false
	}
	for _, beats := range x.beats {
		last := from - time.Minute
		for _, at := range beats {
			switch {
			case at <= from || at-last <= 3*time.Second && at < to:
				last = at
			case at-last <= 3*time.Second:
				return true
			}
		}
	}
	return false
}

// noSlotIsDoneTwice by what the ledger says of its work. In a lossy world the first record of it may come late.
func noSlotIsDoneTwice(o sim.Options, r *sim.Result, sum *tally) (wrong []string) {
	careerBySeed.Delete(o.Seed)
	return doneTwice(r, sum)
}

func doneTwice(r *sim.Result, sum *tally) (wrong []string) {
	by := map[time.Time]string{}
	for _, x := range r.Records["quiet"] {
		o, ok := x.Outcome()
		if x.Kind != store.KindDone || !ok || o.Result != store.Succeeded {
			continue
		}
		if claim := by[o.SlotStart]; claim != "" && claim != x.Claim {
			wrong = append(wrong, fmt.Sprintf("the slot from %v is done twice, in seq %d once more", o.SlotStart, x.Seq))
		}
		if by[o.SlotStart] == "" {
			sum.Slots++
		}
		by[o.SlotStart] = x.Claim
	}
	return wrong
}

// eachSlotHasItsFate: work is begun in time and in order, none is done twice, and what was not begun is told, if
// anybody could tell.
func eachSlotHasItsFate(o sim.Options, r *sim.Result, sum *tally) (wrong []string) {
	v, _ := careerBySeed.LoadAndDelete(o.Seed)
	x := v.(*career)
	wrong = doneTwice(r, sum)
	job := o.Worker(0).Job
	within := job.StartWithin
	if within == 0 {
		within = 15 * time.Second
	}
	begun, covered := map[time.Time]bool{}, map[time.Time]bool{}
	every := slots.Must(slots.Every(time.Minute))
	var since, newest time.Time
	claim := ""
	for _, g := range r.Records["quiet"] {
		if g.Kind == store.KindDone && since.IsZero() {
			since = g.SlotStart
		}
		if g.Kind != store.KindGrant {
			continue
		}
		late := g.WindowStart.Sub(g.SlotStart)
		if g.Claim != claim && g.Attempt == 1 && late > within && job.CatchUp == workerlease.CatchUpNone {
			wrong = append(wrong, fmt.Sprintf("seq %d begins the slot from %v %v late", g.Seq, g.SlotStart, late))
		}
		if g.SlotStart.Before(newest) {
			wrong = append(wrong, fmt.Sprintf("seq %d goes back to the slot from %v", g.Seq, g.SlotStart))
		}
		claim, newest, begun[g.SlotStart] = g.Claim, g.SlotStart, true
		for s := every.Next(g.SlotStart); s.Start.Before(g.WindowEnd); s = every.Next(s.Start) {
			covered[s.Start] = covered[s.Start] || !s.Start.Before(g.WindowStart) || g.WindowStart.Before(s.End)
		}
	}
	end := x.origin.Add(o.Length - 10*time.Minute)
	for s := every.Next(since); !since.IsZero() && s.Start.Before(end); s = every.Next(s.Start) {
		at := s.Start.Sub(x.origin)
		if begun[s.Start] || covered[s.Start] || x.told[s.Start] != "" || !x.attended(r, at-90*time.Second, at+90*time.Second) {
			continue
		}
		wrong = append(wrong, fmt.Sprintf("the slot from %v vanishes: it isn't begun, and nobody says so", at))
	}
	return wrong
}

// Each of these worlds is as seldom as all others in the test of all regimes: see some more of them.
func TestJobsOfAllKindsAndVersions(t *testing.T) {
	suites.Prove(t, "it simulates for minutes")
	skipUnderRace(t)
	for i, g := range jobRegimes {
		t.Run(g.name, func(t *testing.T) {
			t.Parallel()
			sum := tally{}
			for n := range int64(60) {
				seed := 1000 + 2*n + int64(i) // What a run's workers do is kept by its seed.
				o := drawn(g, seed)
				r := sim.Run(t, o)
				r.Check(t)
				for _, wrong := range append(g.judge(o, r, &sum), unsound(o, r)...) {
					t.Errorf("seed %d: %s", seed, wrong)
				}
			}
			if sum.Slots < 400 {
				t.Errorf("%d slots are done: too little went on", sum.Slots)
			}
		})
	}
}
