package workerlease

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/slotlease/slotlease/slots"
	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/workerlease/event"
	"github.com/slotlease/slotlease/workerlease/internal/machine"
	"github.com/slotlease/slotlease/workerlease/internal/option"
)

// ErrNotClaimed is wrapped by the error of TryClaim if the slot can't be claimed, which is a NotClaimed then.
var ErrNotClaimed = errors.New("slot not claimed")

// NotClaimed is why TryClaim could not claim the slot. Times are store time.
type NotClaimed struct {
	Slot slots.Slot
	// Why is HeldByAnother, AlreadyDone, PassedOver, TooSoon, UsedUp, Ineligible, or a reason for a missed slot.
	Why Reason
	// Holder is the worker that has the slot, or has done it; empty if that isn't known.
	Holder string
	// Work is what that worker does, as it says; empty if it doesn't.
	Work string
	// Until is the end of the holder's window, which it may extend, or TooSoon before which no attempt begins; else zero.
	Until time.Time

	text  string
	cause error // may be nil
}

func (e *NotClaimed) Error() string { return ErrNotClaimed.Error() + ": " + e.text }

// Unwrap returns ErrNotClaimed and, of an Ineligible worker, the error of Options.Eligible.
func (e *NotClaimed) Unwrap() []error { return []error{ErrNotClaimed, e.cause} }

// Claim is a lease that TryClaim got. It ends by itself with the slot, unless it goes on: see Client.TryClaim. The zero Claim, and nil, hold nothing.
type Claim struct {
	// Lease is the lease as it was when the slot was claimed.
	Lease Lease

	ctx   context.Context
	w     *WorkerLease
	try   *try
	taken atomic.Bool // by Release or Complete
}

// Context ends at the last safe moment of the lease, or when Release or Complete is called,
// with a cause as in Callbacks.LeaseAllocated. The work must have stopped by then.
func (c *Claim) Context() context.Context {
	if !c.got() {
		return ended
	}
	return c.ctx
}

// got reports that TryClaim has made the claim.
func (c *Claim) got() bool { return c != nil && c.w != nil }

// RunIfHeld calls f if the claim is held now, as WorkerLease.RunIfHeld does: the lease is not
// released before f has returned, also if it ends early. The context of f ends as Context does.
func (c *Claim) RunIfHeld(ctx context.Context, f Task) (held bool, err error) {
	if !c.got() {
		return false, nil
	}
	return c.w.RunIfHeld(ctx, f)
}

// Release frees the rest of the slot, so that another worker can have it. Call it when
// the work has ended; it may be called more than once. Errors are those of StopLeasing.
func (c *Claim) Release(ctx context.Context) error {
	if !c.got() {
		return nil
	}
	c.taken.Store(true)
	return c.w.StopLeasing(ctx)
}

// Fail reports that the work of the slot has failed, as Lease.FailedWith does, also if the lease has ended: then with the
// cause of that. An error that wraps ErrLeaseExpired or ErrStopped says of work that was told to end in time that this is the
// cause. With Options.Job it is a failed attempt. Call it before the work returns from RunIfHeld, or before Release.
func (c *Claim) Fail(err error) {
	if !c.got() {
		return
	}
	w, l, claim, work := c.w, c.Lease, c.Lease.active.term.Load().Claim, c.Lease.work(err, 0)
	a := arrival{}
	switch cause := context.Cause(c.ctx); {
	case cause != nil:
		work.Cause = w.cause(l, cause)
		a.event = machine.Worked{Claim: claim, Failed: true, Work: work}
	case errors.Is(err, ErrLeaseExpired), errors.Is(err, ErrStopped):
		work.Cause = w.cause(l, err)
		fallthrough
	default:
		a.event = machine.Faltered{Claim: claim, Work: work}
	}
	a.observed = []event.Event{event.TaskFailed{Worker: w.label(), Lease: l.plain(), Err: err, Cause: work.Cause, GivenUp: w.givesUp(l, work.Cause)}}
	if w.options.Job == nil {
		a.observed = []event.Event{event.Faltered{Worker: w.label(), Lease: l.plain(), Err: err}}
	}
	w.post(a)
}

// Complete records that the work of the slot is done: with Options.Job, no worker claims
// the slot again. It stops the claim as Release does, and returns nil when the record is
// in the ledger. An error says that this is not known: because ctx ended first, or
// because the lease had ended before, with the cause of that. The slot may then be
// claimed again. If Job.Timeout or Options.ProgressWithin has ended the lease, Complete always returns an error.
func (c *Claim) Complete(ctx context.Context) error {
	if !c.got() {
		return fmt.Errorf("complete: %w: the Claim is not one of TryClaim", ErrNotClaimed)
	}
	if c.w.options.Job == nil {
		var errs option.Errors
		errs.Missing("Job", "only a Job can be completed: set it")
		return fmt.Errorf("complete %q: %w: %w", c.Lease.WorkerType, ErrOptions, errs.Join())
	}
	c.taken.Store(true)
	if !tookTooLong(context.Cause(c.ctx)) {
		c.w.post(arrival{event: machine.Finished{Done: true, Work: c.Lease.work(nil, 0)}})
	}
	err := c.w.StopLeasing(ctx)
	if err == nil && !c.try.done.Load() {
		err = fmt.Errorf("complete %q: slot %v: not recorded as done: %w", c.Lease.WorkerType, c.Lease.Slot, context.Cause(c.ctx))
	}
	return err
}

// TryClaim claims a slot on its own client: see Client.TryClaim. Warnings and errors are
// logged to slog.Default(), as by the package's StartLeasing.
func TryClaim(ctx context.Context, ledger store.Ledger, o Options) (*Claim, error) {
	return newDefaultClient(ledger).TryClaim(ctx, o)
}

// TryClaim claims the rest of the current slot, at once, whatever the priority, and whoever is preferred. It
// returns when the slot is claimed and work may begin. The error wraps ErrNotClaimed if
// another worker has the slot, if it is done, if its next attempt is not due yet by
// Job.MinRetry, or if too little of it is left, and ErrIneligible if Options.Eligible says so;
// the cause of ctx if that ends first; ErrOptions; or what waiting can't help against, as StartLeasing's does. While the
// store doesn't answer, TryClaim retries.
//
// Less than Options.Lead before the next boundary, a claim for the next slot may have been
// made already. That keeps others from the rest of the current slot.
//
// The claim ends with the slot, independently of ctx. With Options.Continuous it goes on
// until Release, and with Options.Job until Complete or Release, unless Job.Overrun is Stop.
// A slot that was not begun within Job.StartWithin is TooLate. To keep others out up to the end of the slot, don't
// release it. With Options.Job, call Claim.Complete when the work is done; Job.CatchUp is refused.
func (c *Client) TryClaim(ctx context.Context, o Options) (*Claim, error) {
	t := &try{got: make(chan *Claim, 1), lost: make(chan error, 1)}
	l := launch{what: "try to claim", until: ctx, prepare: func(w *WorkerLease) {
		t.w, w.listen, w.begins = w, t.observe, t.begins
		w.machine.Single, w.machine.Joins = true, true
		if o.job().StartWithin == 0 {
			w.machine.StartWithin = 0 // Its caller says when.
		}
	}}
	if o.job().CatchUp != CatchUpNone {
		l.wrong.Add(option.Error{Field: "Job.CatchUp", Value: o.Job.CatchUp.String(), Found: "is " + o.Job.CatchUp.String(), Rule: "a claim is for one slot, and can't catch up on another: use Run"})
	}
	o.DrainTimeout = 0 // Who has the claim decides when it ends.
	w, err := c.launch(context.WithoutCancel(ctx), o, Callbacks{LeaseAllocated: t.allocated}, l)
	if err != nil {
		return nil, err
	}
	var why error
	select {
	case claim := <-t.got:
		return claim.begun(), nil
	case why = <-t.lost:
	case <-ctx.Done():
		t.lose(context.Cause(ctx))
		select {
		case claim := <-t.got: // Its attempt counts: so the caller has it.
			return claim.begun(), nil
		case why = <-t.lost:
		}
	}
	limited, cancel := c.clock.WithTimeout(context.Background(), stopGrace)
	defer cancel()
	// Whatever was claimed meanwhile is freed, or ends by itself.
	err = w.StopLeasing(limited)
	return nil, errors.Join(fmt.Errorf("try to claim %.70q: %w", o.WorkerType, why), err)
}

// begun is a claim that its caller gets.
func (c *Claim) begun() *Claim {
	context.AfterFunc(c.ctx, c.end)
	return c
}

// end stops the worker when its lease has ended by itself.
func (c *Claim) end() {
	if c.taken.Load() {
		return
	}
	limited, cancel := c.w.client.clock.WithTimeout(context.Background(), stopGrace)
	defer cancel()
	_ = c.w.StopLeasing(limited)
}

// try is a claim that is being tried.
type try struct {
	w    *WorkerLease
	got  chan *Claim
	lost chan error
	done atomic.Bool // the slot is known to be done
	// outcome is tryBegins or tryLost, whichever came first.
	outcome atomic.Int32
}

const (
	tryBegins int32 = iota + 1
	tryLost
)

// begins reports that there is a caller that gets the claim. Else it is no attempt.
func (t *try) begins() bool {
	return t.outcome.CompareAndSwap(0, tryBegins) || t.outcome.Load() == tryBegins
}

func (t *try) lose(why error) {
	if t.outcome.CompareAndSwap(0, tryLost) {
		t.lost <- why
	}
}

func (t *try) allocated(ctx context.Context, l Lease) {
	select {
	case t.got <- &Claim{Lease: l, ctx: ctx, w: t.w, try: t}:
	default: // It has one already.
	}
}

// observe gets the worker's events.
func (t *try) observe(e event.Event) {
	if _, done := e.(event.SlotDone); done {
		t.done.Store(true)
	}
	if why, lost := notClaimed(e); lost {
		t.lose(&why)
	}
}

// notClaimed is why a slot can't be claimed, if an event says so.
func notClaimed(e event.Event) (why NotClaimed, lost bool) {
	switch e := e.(type) {
	case event.Lost:
		why = lostTo(e)
	case event.Exhausted:
		why = NotClaimed{Slot: e.Slot, Why: UsedUp, text: fmt.Sprintf("slot %v was tried %d times", e.Slot, e.Attempts)}
	case event.Postponed:
		why = NotClaimed{Slot: e.Slot, Why: TooSoon, Until: e.After, text: fmt.Sprintf("attempt %d at slot %v has failed, and the next one may not begin before %s", e.Attempts, e.Slot, store.Format(e.After))}
	case event.BecameIneligible:
		err := fmt.Errorf("%w: %w", ErrIneligible, e.Err)
		why = NotClaimed{Slot: e.Slot, Why: Ineligible, text: err.Error(), cause: err}
	case event.Missed:
		why = NotClaimed{Slot: e.Slot, Why: e.Why, text: fmt.Sprintf("slot %v: %s", e.Slot, e.Why)}
	default:
		return NotClaimed{}, false
	}
	return why, true
}

// lostTo is why a slot that another worker has, or has done, can't be claimed.
func lostTo(e event.Lost) NotClaimed {
	h := e.Holder
	n := NotClaimed{Slot: e.Slot, Why: HeldByAnother, Holder: h.InstanceID, Work: h.Work, Until: h.WindowEnd}
	switch {
	case e.Done && h.SlotStart.Before(e.Slot.Start): // It is a record of the run that went on into the slot.
		n.Why, n.Until, n.text = PassedOver, time.Time{}, fmt.Sprintf("slot %v was skipped, since %s still ran for an earlier one", e.Slot, h.InstanceID)
	case e.Done:
		n.Why, n.Until, n.text = AlreadyDone, time.Time{}, fmt.Sprintf("slot %v is done", e.Slot)
		if !h.SlotStart.Equal(e.Slot.Start) {
			n.Holder = "" // The record is one of a later slot.
		}
	case !h.WindowStart.Before(e.Slot.End):
		n.text = fmt.Sprintf("%s has claimed the slot after %v already", h.InstanceID, e.Slot)
	default:
		n.text = fmt.Sprintf("%s has slot %v until %s", h.InstanceID, e.Slot, store.Format(h.WindowEnd))
	}
	return n
}
