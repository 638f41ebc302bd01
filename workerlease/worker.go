package workerlease

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/slotlease/slotlease/slots"
	"github.com/slotlease/slotlease/workerlease/internal/machine"
	"github.com/slotlease/slotlease/workerlease/internal/timeline"
)

// WorkerLease is a worker. It is safe for concurrent use. It has one goroutine; ledger
// operations and callbacks run on goroutines that end with them.
type WorkerLease struct {
	client    *Client
	options   Options
	callbacks Callbacks
	machine   machine.Machine
	base      context.Context // the values of StartLeasing's context, without its end
	unhook    func() bool
	listen    func(Event) // besides the observer; may be nil

	events    chan arrival
	wake      chan struct{}
	done      chan struct{}
	stopping  sync.Once
	givingUp  sync.Once
	ops       context.Context // ends when leasing is given up
	cancelOps context.CancelFunc

	settled atomic.Int64 // the machine's settled epoch

	shortest time.Duration // of the slots

	// Of the worker's goroutine only.
	state            machine.State
	uncertainSamples int // how often in a row store time was too uncertain

	active atomic.Pointer[activeLease] // the newest; set by the worker's goroutine

	mu      sync.Mutex
	status  Status
	holders machine.Holders
}

func (c *Client) newWorker(ctx context.Context, o Options, cb Callbacks) *WorkerLease {
	w := &WorkerLease{
		client: c, options: o, callbacks: cb, machine: o.machine(c.rules),
		base:   context.WithoutCancel(ctx),
		events: make(chan arrival, 8), wake: make(chan struct{}, 1), done: make(chan struct{}),
	}
	w.ops, w.cancelOps = context.WithCancel(context.Background())
	w.state = c.start()
	w.settled.Store(int64(w.state.Clock.Settled))
	w.shortest = shortestSlot(o.Schedule)
	w.status = Status{WorkerType: o.WorkerType, InstanceID: o.InstanceID}
	return w
}

// Client returns the client that the worker belongs to.
func (w *WorkerLease) Client() *Client { return w.client }

// Done is closed when the worker has stopped: all callbacks have returned, and no goroutine
// of it is left.
func (w *WorkerLease) Done() <-chan struct{} { return w.done }

// now contains store time.
func (w *WorkerLease) now() timeline.Interval {
	return w.client.interval(int(w.settled.Load()))
}

// StopLeasing stops the worker: it ends the lease's context, calls LeaseExpired, waits for
// all callbacks, and releases what is left of the lease. It may be called more than once and
// from several goroutines, but not from a callback, which it would wait for.
//
// While the store can't be reached, it retries: the release up to the end of the slot, and
// the record that a slot is done up to the end of that slot, or for a minute if that is
// longer.
//
// If ctx ends first, the error wraps its cause, and ErrNotReleased if all callbacks have
// returned. The worker then begins no more ledger operations, and ends when the callbacks
// have returned. An unreleased lease ends with its window.
func (w *WorkerLease) StopLeasing(ctx context.Context) error {
	w.stopping.Do(func() { w.order(machine.Stop{}) })
	select {
	case <-w.done:
		return nil
	case <-ctx.Done():
	}
	select {
	case <-w.done:
		return nil
	default:
	}
	w.givingUp.Do(func() {
		w.cancelOps()
		w.order(machine.GiveUp{})
	})
	if w.Status().Running {
		return fmt.Errorf("stop leasing %q: %w: the callbacks have not returned", w.options.WorkerType, context.Cause(ctx))
	}
	return fmt.Errorf("stop leasing %q: %w: %w", w.options.WorkerType, ErrNotReleased, context.Cause(ctx))
}

// Status is what a worker is doing, as of its last step.
type Status struct {
	WorkerType string
	InstanceID string
	// Holding says that a lease is held, and Lease which.
	Holding bool
	Lease   Lease `json:",omitzero"`
	// Running says that a callback has not returned. Overrunning says that its lease is
	// over nevertheless, so that the worker claims nothing.
	Running, Overrunning bool
	// Won is a slot that was won and has not begun; zero if there is none.
	Won slots.Slot `json:",omitzero"`
	// Contending is the slot that the worker tries to win, or whose claims it waits for;
	// zero until the store has answered.
	Contending slots.Slot `json:",omitzero"`
	// Stopped says that the worker has ended.
	Stopped bool

	// StoreTime is the best guess of store time when Status was called, and Uncertainty
	// how far it may be off; zero until the store has answered.
	StoreTime   time.Time `json:",omitzero"`
	Uncertainty time.Duration
	// SampleAge is how old the newest sample of store time is.
	SampleAge time.Duration

	// Failures counts ledger operations that failed in a row. LastError is the newest
	// error, nil if there was none.
	Failures  int
	LastError error `json:",omitzero"`
	// Allocated, Lost and Missed count slots: those with a lease, those that another won,
	// and those that passed without a holder that this worker knows of.
	Allocated, Lost, Missed int

	// Charges is what the store has billed for this worker's operations; nil if it bills
	// nothing.
	Charges Charges `json:",omitzero"`
}

// MarshalJSON leaves out slots, leases and times that are not known, and LastError if there
// is none; else LastError is its text. Durations are in nanoseconds.
func (s Status) MarshalJSON() ([]byte, error) {
	type plain Status // without this method
	text := ""
	if s.LastError != nil {
		text = s.LastError.Error()
	}
	return json.Marshal(struct {
		plain
		LastError string `json:",omitzero"`
	}{plain(s), text})
}

// Charges are sums by operation (append, tail, get, now, trim), in the unit of the store:
// request units for Cosmos DB.
type Charges map[string]float64

// Total is the sum over all operations.
func (c Charges) Total() float64 {
	sum := 0.0
	for _, op := range slices.Sorted(maps.Keys(c)) {
		sum += c[op]
	}
	return sum
}

func (c *Charges) add(op string, units float64) {
	if *c == nil {
		*c = Charges{}
	}
	(*c)[op] += units
}

// Healthy reports that the store has answered at least once, and not failed three times in
// a row just now, that the worker is not stopped, and that its user code doesn't overrun.
// Holding no lease is healthy. Use it for alerts and readiness. For a liveness probe use
// Overrunning alone, because a restart doesn't fix a store.
func (s Status) Healthy() bool {
	return !s.Stopped && !s.Overrunning && s.Failures < 3 && !s.StoreTime.IsZero()
}

// String is one line for a person.
func (s Status) String() string {
	parts := []string{s.WorkerType, s.InstanceID}
	switch {
	case s.Stopped:
		parts = append(parts, "stopped")
	case s.Holding:
		parts = append(parts, "holding "+s.Lease.Slot.String())
	case s.Overrunning:
		parts = append(parts, "overrunning")
	case s.Contending.IsZero():
		parts = append(parts, "waiting for the store")
	default:
		parts = append(parts, "waiting for "+s.Contending.String())
	}
	if s.Failures > 0 {
		parts = append(parts, fmt.Sprintf("%d failures: %v", s.Failures, s.LastError))
	}
	return strings.Join(parts, ": ")
}

// Status returns what the worker is doing. It asks nobody, and never blocks for long.
func (w *WorkerLease) Status() Status {
	w.mu.Lock()
	s := w.status
	s.Charges = maps.Clone(s.Charges)
	w.mu.Unlock()
	if now := w.now(); now.Known() {
		s.StoreTime, s.Uncertainty = now.Mid(), now.Uncertainty()
		w.client.mu.Lock()
		s.SampleAge = w.client.line.Age(w.client.local())
		w.client.mu.Unlock()
	}
	return s
}

// publish makes the state visible to Status.
func (w *WorkerLease) publish() {
	s := w.state
	w.mu.Lock()
	defer w.mu.Unlock()
	t := &w.status
	h := w.active.Load()
	t.Holding, t.Lease = h != nil && !s.Hold.Held.IsZero() && h.term.Load().Claim == s.Hold.Held.Claim, Lease{}
	if t.Holding {
		t.Lease = h.lease()
	}
	t.Running, t.Overrunning = s.Hold.Running, s.Hold.Running && s.Hold.Held.IsZero() && s.Hold.Overran
	t.Won, t.Contending = s.Hold.Next.Slot, s.Bid.Slot
	t.Failures = s.Retries.Failures
	w.holders = s.View.Holders
	t.Stopped = s.Bid.Stage == machine.Halted
}
