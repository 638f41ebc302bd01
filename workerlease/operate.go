package workerlease

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/workerlease/event"
	"github.com/slotlease/slotlease/workerlease/internal/machine"
	"github.com/slotlease/slotlease/workerlease/internal/timeline"
)

// operates reports whether an action is a ledger operation.
func operates(a machine.Action) bool {
	switch a.(type) {
	case machine.Sample, machine.ReadHead, machine.ReadRecord, machine.Append, machine.Trim, machine.Sight:
		return true
	}
	return false
}

// operate runs one ledger operation on a goroutine of its own, which then runs the worker.
func (w *WorkerLease) operate(op machine.Op, f operation) {
	c, timeout := w.client, w.machine.Timeout(&w.state)
	w.pulse.late = c.ticks() + timeout
	c.activity.add(w, 1)
	go func() {
		reserveStack()
		if w.accept(w.call(op, timeout, f)) {
			w.run()
		}
	}()
}

// operation is a ledger operation that begins at a local reading.
type operation func(ctx context.Context, sent time.Duration) arrival

// call carries out an operation, with a time-out by the client's clock, and looks at its
// receipt.
func (w *WorkerLease) call(op machine.Op, timeout time.Duration, f operation) arrival {
	c := w.client
	ctx, cancel := c.clock.WithTimeout(context.Background(), timeout)
	defer cancel()
	if w.cancelOp.Store(&cancel); w.gaveUp.Load() {
		cancel()
	}
	ctx, receipt := store.WithReceipt(ctx)
	sent := c.local()
	a := f(ctx, sent)
	if c.observer != nil {
		a.observed = append(a.observed, event.Operated{Worker: w.label(), Operation: op.String(), Took: c.local() - sent, Err: failureOf(a.event)})
	}
	if stamp := receipt.Stamp(); !stamp.IsZero() {
		observed, odd := w.sampled(stamp, sent)
		a.observed, a.err = append(a.observed, observed...), cmp.Or(a.err, odd)
	}
	if units := receipt.Units(); units > 0 {
		a.observed = append(a.observed, event.Charged{Worker: w.label(), Operation: op.String(), Units: units})
	}
	return a
}

// failureOf is the error that an operation ended with; nil if it did not fail.
func failureOf(e machine.Event) error {
	switch e := e.(type) {
	case machine.Sampled:
		return e.Err
	case machine.HeadRead:
		return e.Err
	case machine.RecordRead:
		return e.Err
	case machine.Appended:
		return e.Err
	case machine.Trimmed:
		return e.Err
	case machine.Sighted:
		return e.Err
	}
	return nil
}

// cancelOps ends the operation under way, and those to come. The mere context of an operation that
// is over would keep 500 bytes for each worker.
func (w *WorkerLease) cancelOps() {
	w.gaveUp.Store(true)
	if cancel := w.cancelOp.Load(); cancel != nil {
		(*cancel)()
	}
}

// sample asks the store for its time.
func (w *WorkerLease) sample(ctx context.Context, sent time.Duration) ([]event.Event, error) {
	stamp, err := w.client.ledger.Now(ctx)
	if err != nil {
		return nil, err
	}
	return w.sampled(stamp, sent)
}

var verdicts = map[timeline.Outcome]event.ClockVerdict{
	timeline.Contradicted: event.ClockInQuestion,
	timeline.Dropped:      event.AnswerDropped,
	timeline.Jumped:       event.JumpConfirmed,
}

// append appends a record, above one if that is not the zero Record.
func (c *Client) append(ctx context.Context, r, prev store.Record) error {
	if prev.Seq == 0 || c.follower == nil {
		return c.ledger.Append(ctx, r)
	}
	err := c.follower.AppendAfter(ctx, r, prev)
	if errors.Is(err, errors.ErrUnsupported) {
		err = c.ledger.Append(ctx, r) // The record below can't be compared, and its writer must stop nobody.
	}
	return err
}

// sampled puts a stamp on the time line.
func (w *WorkerLease) sampled(stamp store.Stamp, sent time.Duration) ([]event.Event, error) {
	received := w.client.local()
	outcome, now := w.client.sample(w, stamp, sent, received)
	switch outcome {
	case timeline.Rejected:
		return nil, fmt.Errorf("store time %s from %q is not plausible", store.Format(stamp.Time), stamp.Server)
	case timeline.Contradicted, timeline.Dropped, timeline.Jumped:
		return []event.Event{event.ClockJump{
			Worker: w.label(), Server: stamp.Server, Verdict: verdicts[outcome],
			StoreTime: now.Mid(), Uncertainty: now.Uncertainty(),
		}}, nil
	default:
		return []event.Event{event.ClockSample{
			Worker: w.label(), Server: stamp.Server, RoundTrip: received - sent,
			StoreTime: now.Mid(), Uncertainty: now.Uncertainty(), Note: w.client.storeNote(),
		}}, nil
	}
}
