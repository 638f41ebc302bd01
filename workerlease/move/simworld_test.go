package move_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/benbjohnson/clock"

	"github.com/slotlease/slotlease/slots"
	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/memory"
	"github.com/slotlease/slotlease/testutil/clocks"
	"github.com/slotlease/slotlease/workerlease"
)

// place is one of the stores.
type place struct {
	name    string
	l       *memory.Ledger
	mu      sync.Mutex
	paused  time.Time           // when the first pause of a move to it landed
	resumed []time.Time         // when moves to it ended that pause
	landed  map[int64]time.Time // when the first grant with a token did
	workers bool
}

// handle is a connection to a place. Some of its appends land late, though nobody waits for them.
type handle struct {
	store.Ledger
	p    *place
	late func(r store.Record) time.Duration
	slow func() time.Duration // how long a read takes; nil: no time
}

func (h *handle) wait() {
	if h.slow != nil {
		time.Sleep(h.slow())
	}
}

func (h *handle) Get(ctx context.Context, workerType string, seq int64) (store.Record, error) {
	h.wait()
	return h.Ledger.Get(ctx, workerType, seq)
}

func (h *handle) Tail(ctx context.Context, workerType string, limit int) ([]store.Record, store.Stamp, error) {
	h.wait()
	return h.Ledger.Tail(ctx, workerType, limit)
}

func (h *handle) Append(ctx context.Context, r store.Record) error {
	d := time.Duration(0)
	if h.late != nil {
		d = h.late(r)
	}
	if d == 0 {
		return h.append(ctx, r)
	}
	done := make(chan error, 1)
	go func() {
		time.Sleep(d)
		done <- h.append(context.WithoutCancel(ctx), r)
	}()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (h *handle) append(ctx context.Context, r store.Record) error {
	err := h.Ledger.Append(ctx, r)
	h.p.mu.Lock()
	defer h.p.mu.Unlock()
	if err == nil && h.p.paused.IsZero() && strings.Contains(r.Orders, string(store.MoveArriving)) {
		h.p.paused = time.Now()
	}
	if _, is := h.p.landed[r.Token]; err == nil && r.Kind == store.KindGrant && !is {
		h.p.landed[r.Token] = time.Now()
	}
	return err
}

// session is one worker's work under one lease.
type session struct {
	p            *place
	group        string
	token        int64
	slot         slots.Slot
	done         bool // The job returned without an error.
	began, ended time.Time
}

type world struct {
	t       *testing.T
	r       *rand.Rand
	broken  string
	places  []*place
	o       workerlease.Options
	slow    bool // Some of the workers' appends land late.
	groups  bool // The workers are members of two groups.
	old     bool // One worker on the first store, until shortly before the first move there, is too old to know orders.
	stays   bool // It goes on: it obeys no pause, and has to be named.
	ctx     context.Context
	mu      sync.Mutex
	turns   []*session
	log     []string
	unnamed []string // moves that didn't name the worker that is too old
	// overridden says that an operator let two hold on one store.
	overridden bool
	tally      tally
}

func newWorld(t *testing.T, seed uint64, broken string) *world {
	t.Helper()
	w := &world{t: t, r: rand.New(rand.NewPCG(seed, 41)), broken: broken}
	w.o = workerlease.Options{WorkerType: "mail", LeaseInterval: time.Minute}
	switch w.r.IntN(5) {
	case 4:
		w.groups = true
	case 0:
		w.o.FailoverWithin = 20 * time.Second
	case 1:
		w.o.FailoverWithin, w.o.Continuous = 20*time.Second, true
	case 2:
		w.o.Job = &workerlease.Job{CatchUp: workerlease.CatchUpNewest}
	}
	w.o.WaitForBoundary = w.r.IntN(2) == 1
	w.slow = w.r.IntN(3) == 0
	drawn := rand.New(rand.NewPCG(seed, 40)) // beside w.r, so that the other draws of a seed stay as they were
	w.old = drawn.IntN(4) == 0
	w.stays = w.old && drawn.IntN(2) == 0
	for _, name := range []string{"a", "b", "c"} {
		// Any two are a minute apart at most, with what their stamps are off by.
		l := memory.New(memory.Options{Clock: clocks.Skewed(clock.New(), time.Duration(w.r.IntN(59_000)-29_500)*time.Millisecond)})
		w.places = append(w.places, &place{name: name, l: l, landed: map[int64]time.Time{}})
	}
	if w.r.IntN(2) == 0 {
		w.plant(w.places[0], 885, 120, 3*time.Hour)
	}
	if w.r.IntN(3) == 0 {
		w.plant(w.places[1], 1, 1+w.r.IntN(4), 24*time.Hour)
	}
	return w
}

// plant puts grants of slots in a row into a ledger, whose older records were trimmed, up to so long ago.
func (w *world) plant(p *place, first int64, n int, ago time.Duration) {
	stamp, _ := p.l.Now(w.t.Context())
	end := stamp.Time.Add(-ago).Truncate(time.Minute)
	for i := range n {
		start := end.Add(time.Duration(i-n) * time.Minute)
		p.l.Put(store.Record{
			WorkerType: "mail", Seq: first + int64(i), Kind: store.KindGrant, InstanceID: "past", Claim: fmt.Sprintf("%032x", i+1), Token: start.UnixMilli(),
			SlotStart: start, SlotEnd: start.Add(time.Minute), WindowStart: start, WindowEnd: start.Add(time.Minute), DoneUntil: start,
			Schedule: "@every 1m", FixedAt: start.Add(-time.Second), ReadAt: start.Add(-time.Second),
		})
	}
}

// sometimes lets one of so many appends land up to 20 s late.
func sometimes(r *rand.Rand, of int) func(store.Record) time.Duration {
	return func(store.Record) time.Duration {
		if r.IntN(of) > 0 {
			return 0
		}
		return time.Duration(r.Int64N(int64(20 * time.Second)))
	}
}

// stuck lets one of so many reads take up to 80 s.
func stuck(r *rand.Rand, of int) func() time.Duration {
	return func() time.Duration {
		if r.IntN(of) > 0 {
			return 0
		}
		return time.Duration(r.Int64N(int64(80 * time.Second)))
	}
}

// startOld starts a worker that knows no orders, and returns how to stop it.
func (w *world) startOld(p *place) (stop func()) {
	o := w.o
	o.InstanceID = oldName
	c := workerlease.NewClient(&tooOld{&handle{p.l.Handle(), p, nil, nil}}, workerlease.ClientOptions{Clock: clock.New()})
	lease, err := c.StartTask(w.ctx, o, w.work(p, o))
	if err != nil {
		w.t.Error(err)
		return func() {}
	}
	stop = func() { _ = lease.StopLeasing(context.Background()) }
	w.t.Cleanup(stop)
	return stop
}

// oldName is the instance id of the worker that is too old to know orders.
const oldName = "old0"

// start starts workers on a store.
func (w *world) start(p *place, n int, late func(r store.Record) time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if p.workers {
		return
	}
	p.workers = true
	for i := range n {
		o := w.o
		o.InstanceID = fmt.Sprint(p.name, i)
		if w.groups {
			o.Group = []string{"east", "west"}[w.r.IntN(2)]
		}
		h := &handle{p.l.Handle(), p, late, nil}
		if h.late == nil && w.slow {
			h.late = sometimes(rand.New(rand.NewPCG(w.r.Uint64(), uint64(i))), 10)
		}
		c := workerlease.NewClient(h, workerlease.ClientOptions{Clock: clock.New()})
		lease, err := c.StartTask(w.ctx, o, w.work(p, o))
		if err != nil {
			w.t.Error(err)
			return
		}
		w.t.Cleanup(func() { _ = lease.StopLeasing(context.Background()) })
	}
}

// work is what a worker of a store does under a lease, and writes down.
func (w *world) work(p *place, o workerlease.Options) func(context.Context, workerlease.Lease) error {
	return func(ctx context.Context, l workerlease.Lease) error {
		x := &session{p: p, group: o.Group, token: l.Token, slot: l.Slot, began: time.Now()}
		w.mu.Lock()
		w.turns = append(w.turns, x)
		w.mu.Unlock()
		defer func() {
			w.mu.Lock()
			defer w.mu.Unlock()
			x.ended = time.Now()
		}()
		if o.Job == nil {
			<-ctx.Done()
			return context.Cause(ctx)
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(5 * time.Second):
			x.done = true
			return nil
		}
	}
}

// run lets two operators do what they like for a while, and then one of them end what is open.
func (w *world) run() {
	ctx, cancel := context.WithCancel(w.t.Context())
	defer cancel()
	w.ctx = ctx
	stopOld := func() {}
	if w.old {
		stopOld = w.startOld(w.places[0])
	}
	w.start(w.places[0], 2, nil)
	time.Sleep(2*time.Minute + w.upTo(time.Minute))
	if !w.stays {
		stopOld()
	}
	if w.r.IntN(3) == 0 { // too early
		d := w.upTo(2 * time.Minute)
		left := 1 + w.r.IntN(2)
		w.start(w.places[1+w.r.IntN(2)], 1, func(r store.Record) time.Duration {
			if left--; r.Kind != store.KindGrant || left < 0 {
				return 0
			}
			return d
		})
		time.Sleep(w.upTo(30 * time.Second))
	}
	var both sync.WaitGroup
	for i := range 2 {
		r := rand.New(rand.NewPCG(w.r.Uint64(), uint64(i)))
		both.Go(func() { w.operate(i, r) })
	}
	both.Wait()
	w.end()
	cancel()
	time.Sleep(5 * time.Minute) // What lands late has landed.
}

func (w *world) upTo(d time.Duration) time.Duration { return time.Duration(w.r.Int64N(int64(d))) }

func (w *world) note(format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.log = append(w.log, time.Now().Format("15:04:05.000 ")+fmt.Sprintf(format, args...))
}
