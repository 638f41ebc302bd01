package faultstore

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/benbjohnson/clock"

	"github.com/slotlease/slotlease/store"
)

// Options of New. The zero value makes a ledger without faults.
type Options struct {
	// Clock times latencies and late landings. Default: the real clock, which in a
	// testing/synctest bubble is the bubble's.
	Clock clock.Clock
	// Plan returns the fault of each operation, before it begins. It runs on the
	// goroutine of the operation, so it must be safe for concurrent use if the ledger
	// is used concurrently. Default: no faults.
	Plan func(Call) Fault
	// Caller names the user of this ledger, for Plan. Default: empty.
	Caller string
}

// Ledger is a store.Ledger with faults. It is safe for concurrent use.
type Ledger struct {
	inner  store.Ledger
	clock  clock.Clock
	plan   func(Call) Fault
	caller string

	ctx    context.Context // Ends with Close.
	cancel context.CancelFunc
	late   sync.WaitGroup

	mu      sync.Mutex
	closed  bool
	counts  map[counted]int64
	struck  map[FaultKind]int
	pending int
	settled chan struct{} // Closed, and replaced, whenever pending falls to 0.
	outage  *Fault
	shift   time.Duration
	server  string
}

// counted is what N counts.
type counted struct {
	op         Op
	workerType string
}

var _ store.Ledger = (*Ledger)(nil)

// New wraps a ledger. Closing the result closes inner.
func New(inner store.Ledger, o Options) *Ledger {
	if o.Clock == nil {
		o.Clock = clock.New()
	}
	if o.Plan == nil {
		o.Plan = func(Call) Fault { return Fault{} }
	}
	ctx, cancel := context.WithCancel(context.Background())
	return &Ledger{
		inner: inner, clock: o.Clock, plan: o.Plan, caller: o.Caller,
		ctx: ctx, cancel: cancel,
		counts: map[counted]int64{}, struck: map[FaultKind]int{}, settled: make(chan struct{}),
	}
}

// Break begins an outage: until Mend, every new operation has the fault f, and Plan
// isn't called. Down() is the usual f. A second Break changes the outage.
func (l *Ledger) Break(f Fault) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.outage = &f
}

// Mend ends the outage of Break, if there is one.
func (l *Ledger) Mend() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.outage = nil
}

// Shift makes the store's clock jump: from now on stamps are ahead by d (late if d is
// negative) and come from the named server, or from their own if the name is empty.
// Shift(0, "") ends it.
func (l *Ledger) Shift(d time.Duration, server string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.shift, l.server = d, server
}

// Struck returns how often each kind of fault really happened. One call can count for
// several kinds.
func (l *Ledger) Struck() map[FaultKind]int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return maps.Clone(l.struck)
}

func (l *Ledger) strike(k FaultKind) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.struck[k]++
}

// begin counts a call and finds its fault.
func (l *Ledger) begin(ctx context.Context, c Call) (Fault, error) {
	if err := ctx.Err(); err != nil {
		return Fault{}, ended(ctx)
	}
	c.Caller, c.At = l.caller, l.clock.Now()
	l.mu.Lock()
	if l.closed {
		l.mu.Unlock()
		return Fault{}, store.ErrClosed
	}
	of := counted{c.Op, c.WorkerType}
	l.counts[of]++
	c.N = l.counts[of]
	outage := l.outage
	if outage != nil {
		l.struck[KindOutage]++
	}
	l.mu.Unlock()
	if outage != nil {
		return *outage, nil
	}
	return l.plan(c), nil
}

// do runs one operation with its fault. It returns the result of effect unless the fault
// replaces it.
func do[T any](ctx context.Context, l *Ledger, c Call, effect func(f Fault) (T, error)) (T, error) {
	var none T
	fail := func(err error) (T, error) {
		if c.WorkerType == "" {
			return none, fmt.Errorf("faultstore: %s: %w", c.Op, err)
		}
		return none, fmt.Errorf("faultstore: %s %.100q, seq %d: %w", c.Op, c.WorkerType, c.Seq, err)
	}
	f, err := l.begin(ctx, c)
	if err != nil {
		return fail(err)
	}
	if err := l.wait(ctx, f.Before); err != nil {
		return fail(err)
	}
	var result T
	switch {
	case f.Effect == Applied:
		result, err = effect(f)
	case f.Effect == Late && c.Op == OpAppend:
		if err := l.landLater(c.Record, f.LateBy); err != nil {
			return fail(err)
		}
	}
	if f.Block {
		l.strike(KindBlackHole)
		return fail(l.block(ctx, nil))
	}
	if err := l.wait(ctx, f.After); err != nil {
		return fail(err)
	}
	if f.Err == nil && f.Effect == Applied {
		return result, err
	}
	reply := f.Err
	if reply == nil {
		reply = ErrInjected
	}
	l.countReply(f, reply, err)
	return fail(reply)
}

// countReply counts the error that a caller gets in place of the outcome.
func (l *Ledger) countReply(f Fault, reply, outcome error) {
	if errors.Is(reply, store.ErrThrottled) {
		l.strike(KindThrottled)
	}
	done := f.Effect == Applied && outcome == nil
	switch {
	case done && errors.Is(reply, store.ErrConflict):
		l.strike(KindOwnConflict)
	case done:
		l.strike(KindLostReply)
	case f.Effect != Late:
		l.strike(KindFailure)
	}
}

// wait lets time pass, unless the context or the ledger ends first.
func (l *Ledger) wait(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return nil
	}
	l.strike(KindLatency)
	timer := l.clock.Timer(d)
	defer timer.Stop()
	return l.block(ctx, timer.C)
}

// block waits until the context or the ledger ends, and returns the error of that, or nil if
// wake comes first.
func (l *Ledger) block(ctx context.Context, wake <-chan time.Time) error {
	select {
	case <-wake:
		return nil
	case <-ctx.Done():
		return ended(ctx)
	case <-l.ctx.Done():
		return store.ErrClosed
	}
}

// ended is the error of a context that has ended, with its cause. One that is the failure of another operation, as an
// errgroup's, is no more than said: what became of this one isn't known.
func ended(ctx context.Context) error {
	err, cause := ctx.Err(), context.Cause(ctx)
	if slices.ContainsFunc(outcomes, func(o error) bool { return errors.Is(cause, o) }) {
		return fmt.Errorf("%w: %s", err, cause.Error())
	}
	if errors.Is(cause, err) {
		return cause
	}
	return fmt.Errorf("%w: %w", err, cause)
}

// outcomes are what errors of operations mean.
var outcomes = []error{
	store.ErrConflict, store.ErrNotFound, store.ErrNotStored, store.ErrInvalid, store.ErrThrottled, store.ErrRefused, store.ErrDenied, store.ErrMissing,
	store.ErrClosed,
}

// Close closes the inner ledger. Pending appends are dropped, as if they had been lost
// on the way, and waiting callers return with store.ErrClosed. When Close returns, all
// goroutines of the ledger have ended.
func (l *Ledger) Close(ctx context.Context) error {
	l.mu.Lock()
	l.closed = true
	l.mu.Unlock()
	l.cancel()
	l.late.Wait()
	return l.inner.Close(ctx)
}
