package faultstore

import (
	"cmp"
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
	through

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
	ahead   time.Duration
	server  string
}

// counted is what N counts.
type counted struct {
	op         Op
	workerType string
}

// New wraps a ledger. Closing the result closes inner.
func New(inner store.Ledger, o Options) *Ledger {
	if o.Clock == nil {
		o.Clock = clock.New()
	}
	if o.Plan == nil {
		o.Plan = func(Call) Fault { return Fault{} }
	}
	ctx, cancel := context.WithCancel(context.Background())
	l := &Ledger{
		clock: o.Clock, plan: o.Plan, caller: o.Caller,
		ctx: ctx, cancel: cancel,
		counts: map[counted]int64{}, struck: map[FaultKind]int{}, settled: make(chan struct{}),
	}
	l.through = through{inner, l.do, l.strike, l.shifted}
	return l
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
	l.ahead, l.server = d, server
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

// do runs one operation with its fault. It returns the error of effect unless the fault
// replaces it.
func (l *Ledger) do(ctx context.Context, o operation, effect func(f Fault) error) error {
	f, err := l.begin(ctx, o.Call)
	if err == nil {
		err = l.wait(ctx, f.Before)
	}
	var outcome error
	if err == nil {
		switch {
		case f.Effect == Applied:
			outcome = effect(f)
		case f.Effect == Late && o.Op == OpAppend:
			err = l.landLater(o.Call, f.LateBy)
		}
	}
	switch {
	case err != nil:
	case f.Block:
		l.strike(KindBlackHole)
		err = l.block(ctx, nil)
	default:
		err = l.wait(ctx, f.After)
	}
	if err == nil {
		if f.Err == nil && f.Effect == Applied {
			return outcome
		}
		err = cmp.Or(f.Err, ErrInjected)
		l.countReply(f, err, outcome)
	}
	if o.WorkerType == "" {
		return fmt.Errorf("faultstore: %s: %w", o.Op, err)
	}
	return fmt.Errorf("faultstore: %s %.100q, seq %d: %w", o.Op, o.WorkerType, o.Seq, err)
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
	store.ErrConflict, store.ErrNotFound, store.ErrNotStored, store.ErrWentBack, store.ErrInvalid, store.ErrThrottled, store.ErrRefused, store.ErrDenied, store.ErrMissing,
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

// shifted applies the fault and Ledger.Shift to a stamp.
func (l *Ledger) shifted(s store.Stamp, f Fault) store.Stamp {
	if s.IsZero() {
		return s
	}
	was := s
	l.mu.Lock()
	s.Time = s.Time.Add(l.ahead + f.Shift).Truncate(max(s.Granularity, 1))
	s.Server = cmp.Or(f.Server, l.server, s.Server)
	l.mu.Unlock()
	if s != was {
		l.strike(KindStamp)
	}
	return s
}

// Watch passes on the hints of the inner ledger, except during an outage of Break, in which they are lost. Plan isn't
// called: a hint is no operation.
func (l *Ledger) Watch(ctx context.Context, changed func(workerType string)) error {
	return l.through.Watch(ctx, func(workerType string) {
		l.mu.Lock()
		lost := l.closed || l.outage != nil
		l.mu.Unlock()
		if !lost {
			changed(workerType)
		}
	})
}
