package workerlease_test

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/benbjohnson/clock"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/memory"
	"github.com/slotlease/slotlease/workerlease"
	"github.com/slotlease/slotlease/workerlease/event"
	"github.com/slotlease/slotlease/workerlease/internal/machine"
	"github.com/slotlease/slotlease/workerlease/operate"
)

// t0 is when bubbles begin. It is a boundary of every schedule used here.
var t0 = time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)

// since is a time as it is given in these tests: since the bubble began.
func since(t time.Time) time.Duration { return t.Sub(t0) }

// at sleeps until a time after the bubble began, and until everything that
// happens then has happened.
func at(d time.Duration) {
	time.Sleep(d - time.Since(t0))
	synctest.Wait()
}

// bubble is a subtest in a bubble.
func bubble(t *testing.T, name string, test func(*testing.T)) {
	t.Helper()
	t.Run(name, func(t *testing.T) { synctest.Test(t, test) })
}

// setup is a worker to be started. The zero value is a worker of type "job"
// on its own ledger, whose LeaseAllocated blocks until its context ends. It has
// default options, but for one: it waits for a boundary, where time is counted from.
type setup struct {
	workerlease.Options
	ledger   store.Ledger
	client   *workerlease.Client
	clock    clock.Clock
	logger   *slog.Logger
	roster   bool
	ctx      context.Context
	work     func(context.Context, workerlease.Lease)
	task     workerlease.Task // in place of callbacks
	expired  func(workerlease.Lease, workerlease.Reason)
	extended func(workerlease.Lease)
	observe  func(event.Event) // on the worker's goroutine
	joins    bool              // the slot in which it starts, whatever its options
	asGiven  bool              // whether it joins that slot: by its options; else it waits for the next one
	// plain leaves LeaseExpired and Error nil.
	plain bool
}

// worker is a worker that writes down what happens to it.
type worker struct {
	*workerlease.WorkerLease
	observe func(event.Event)
	mu      sync.Mutex
	turns   []*turn
	events  []seen
	errs    []error
}

// turn is one lease, with times since the bubble began; 0 is "not yet".
type turn struct {
	ctx                                   context.Context
	lease                                 workerlease.Lease
	allocated, ended, returned, expiredAt time.Duration
	cause                                 error
	why                                   workerlease.Reason
	expiries                              int
	aliveAtExpiry, validAtExpiry          bool
	last                                  workerlease.Lease // as LeaseExpired got it
	extended                              []extension
}

// extension is a call of LeaseExtended.
type extension struct{ at, expiry time.Duration }

// seen is an event and when it came.
type seen struct {
	at time.Duration
	event.Event
}

func newClient(w *worker, s setup) *workerlease.Client {
	if s.clock == nil {
		s.clock = clock.New()
	}
	return workerlease.NewClient(s.ledger, workerlease.ClientOptions{Clock: s.clock, Logger: s.logger, Observer: w, Roster: s.roster})
}

// start starts a worker. It is stopped, in the bubble, when the test ends.
func start(t *testing.T, s setup) *worker {
	t.Helper()
	w := &worker{observe: s.observe}
	if s.ledger == nil {
		s.ledger = memory.New(memory.Options{})
	}
	if s.client == nil {
		s.client = newClient(w, s)
	}
	if s.WorkerType == "" {
		s.WorkerType = "job"
	}
	switch {
	case s.asGiven:
	case !s.joins:
		s.WaitForBoundary = true
	default:
		rules := machine.Standard
		rules.Entry = func(bool, string) machine.Entry { return machine.AtOnce }
		workerlease.SetRules(s.client, rules)
	}
	if s.ctx == nil {
		s.ctx = t.Context()
	}
	cb := workerlease.Callbacks{LeaseAllocated: func(ctx context.Context, l workerlease.Lease) { w.allocated(ctx, l, s.work) }}
	if !s.plain {
		cb.LeaseExpired = func(l workerlease.Lease, why workerlease.Reason) { w.expired(l, why, s.expired) }
		cb.LeaseExtended = func(l workerlease.Lease) { w.extended(l, s.extended) }
		cb.Error = w.failed
	}
	var err error
	if s.task != nil {
		w.WorkerLease, err = s.client.StartTask(s.ctx, s.Options, s.task)
	} else {
		w.WorkerLease, err = s.client.StartLeasing(s.ctx, s.Options, cb)
	}
	if err != nil {
		t.Fatalf("the worker was not started: %v", err)
	}
	t.Cleanup(func() {
		// Time stands still in a bubble whose test function has returned.
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		_ = w.StopLeasing(ctx)
		<-w.Done()
	})
	return w
}

// allocated is LeaseAllocated.
func (w *worker) allocated(ctx context.Context, l workerlease.Lease, work func(context.Context, workerlease.Lease)) {
	now := time.Since(t0)
	w.mu.Lock()
	u := &turn{ctx: ctx, lease: l, allocated: now}
	w.turns = append(w.turns, u)
	w.mu.Unlock()
	context.AfterFunc(ctx, func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		u.ended, u.cause = time.Since(t0), context.Cause(ctx)
	})
	defer func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		u.returned = time.Since(t0)
	}()
	if work == nil {
		<-ctx.Done()
		return
	}
	work(ctx, l)
}

// expired is LeaseExpired.
func (w *worker) expired(l workerlease.Lease, why workerlease.Reason, then func(workerlease.Lease, workerlease.Reason)) {
	w.mu.Lock()
	for _, u := range w.turns {
		if u.lease.Token == l.Token {
			u.last = l
			u.why, u.expiredAt = why, time.Since(t0)
			u.aliveAtExpiry, u.validAtExpiry = u.ctx.Err() == nil, l.Valid()
			u.expiries++
		}
	}
	w.mu.Unlock()
	if then != nil {
		then(l, why)
	}
}

// extended is LeaseExtended.
func (w *worker) extended(l workerlease.Lease, then func(workerlease.Lease)) {
	w.mu.Lock()
	for _, u := range w.turns {
		if u.lease.Token == l.Token {
			u.extended = append(u.extended, extension{time.Since(t0), since(l.Expiry)})
		}
	}
	w.mu.Unlock()
	if then != nil {
		then(l)
	}
}

// failed is Error.
func (w *worker) failed(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.errs = append(w.errs, err)
}

// Observe makes the worker an observer of its client.
func (w *worker) Observe(e event.Event) {
	w.mu.Lock()
	w.events = append(w.events, seen{time.Since(t0), e})
	w.mu.Unlock()
	if w.observe != nil {
		w.observe(e)
	}
}

// history is a copy of the turns so far.
func (w *worker) history() []turn {
	w.mu.Lock()
	defer w.mu.Unlock()
	var out []turn
	for _, u := range w.turns {
		out = append(out, *u)
	}
	return out
}

// starts are the slots that the worker was allocated, by their starts.
func (w *worker) starts() []time.Duration {
	var out []time.Duration
	for _, u := range w.history() {
		out = append(out, since(u.lease.Slot.Start))
	}
	return out
}

// turn returns the n-th lease, from 0.
func (w *worker) turn(t *testing.T, n int) turn {
	t.Helper()
	h := w.history()
	if n >= len(h) {
		t.Fatalf("%s had %d leases, want more than %d", w.Status().InstanceID, len(h), n)
	}
	return h[n]
}

// observed are the events of one type so far.
func observed[E event.Event](w *worker) []E {
	w.mu.Lock()
	defer w.mu.Unlock()
	var out []E
	for _, s := range w.events {
		if e, ok := s.Event.(E); ok {
			out = append(out, e)
		}
	}
	return out
}

// reported says whether Error was given an error like target.
func (w *worker) reported(target error) bool { return w.count(target) > 0 }

// count is how many errors like target Error was given.
func (w *worker) count(target error) (n int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, err := range w.errs {
		if errors.Is(err, target) {
			n++
		}
	}
	return n
}

// stop stops the worker, which must do so in no time at all.
func (w *worker) stop(t *testing.T) {
	t.Helper()
	began := time.Now()
	must(t, w.StopLeasing(t.Context()))
	if took := time.Since(began); took > 10*time.Millisecond {
		t.Errorf("StopLeasing took %v, want no time", took)
	}
}

// records are the ledger's records, oldest first.
func records(t *testing.T, l store.Ledger) []store.Record {
	t.Helper()
	r, _, err := l.Tail(context.Background(), "job", 1<<20)
	must(t, err)
	slices.Reverse(r)
	return r
}

// holders are the instances of the grants in the ledger, oldest first.
func holders(t *testing.T, l store.Ledger) []string {
	t.Helper()
	var out []string
	for _, r := range records(t, l) {
		if r.Kind == store.KindGrant {
			out = append(out, r.InstanceID)
		}
	}
	return out
}

// must ends the test if something went wrong. It is for the test's own goroutine.
func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// give gives an order.
func give(t *testing.T, l store.Ledger, o operate.Order) store.Record {
	t.Helper()
	r, err := operate.On(l).Give(t.Context(), o)
	must(t, err)
	return r
}

// near checks a time to the microsecond.
func near(t *testing.T, what string, got, want time.Duration) {
	t.Helper()
	if (got - want).Abs() > time.Microsecond {
		t.Errorf("%s at %v, want %v", what, got, want)
	}
}

func equal[S ~[]E, E comparable](t *testing.T, what string, got S, want ...E) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("%s = %v, want %v", what, got, want)
	}
}

// named are the options of a worker with a name and a priority.
func named(name string, priority int) workerlease.Options {
	return workerlease.Options{WorkerType: "job", InstanceID: name, Priority: priority}
}

// slotted are the same for slots of a length, which others take over within failover.
func slotted(name string, priority int, slot, failover time.Duration) workerlease.Options {
	o := named(name, priority)
	o.LeaseInterval, o.FailoverWithin = slot, failover
	return o
}

// minutes are whole minutes since the bubble began.
func minutes(n ...int) []time.Duration {
	var out []time.Duration
	for _, m := range n {
		out = append(out, time.Duration(m)*time.Minute)
	}
	return out
}
