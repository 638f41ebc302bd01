package workerlease

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/workerlease/internal/machine"
)

// ErrNotClaimed is wrapped by the error of TryClaim if the slot can't be claimed.
var ErrNotClaimed = errors.New("slot not claimed")

// Claim is a lease that TryClaim got. It ends by itself with the slot.
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
func (c *Claim) Context() context.Context { return c.ctx }

// RunIfHeld calls f if the claim is held now, as WorkerLease.RunIfHeld does: the lease is not
// released before f has returned, also if it ends early. The context of f ends as Context does.
func (c *Claim) RunIfHeld(ctx context.Context, f Task) (held bool, err error) {
	return c.w.RunIfHeld(ctx, f)
}

// Release frees the rest of the slot, so that another worker can have it. Call it when
// the work has ended; it may be called more than once. Errors are those of StopLeasing.
func (c *Claim) Release(ctx context.Context) error {
	c.taken.Store(true)
	return c.w.StopLeasing(ctx)
}

// Complete records that the work of the slot is done: with Options.Job, no worker claims
// the slot again. It stops the claim as Release does, and returns nil when the record is
// in the ledger. An error says that this is not known: because ctx ended first, or
// because the lease had ended before, with the cause of that. The slot may then be
// claimed again.
func (c *Claim) Complete(ctx context.Context) error {
	if c.w.options.Job == nil {
		var errs optionErrors
		errs.missing("Job", "only a Job can be completed: set it")
		return fmt.Errorf("complete %q: %w: %w", c.Lease.WorkerType, ErrOptions, errs.join())
	}
	c.taken.Store(true)
	c.w.post(arrival{event: machine.Finished{Done: true, Work: workOf(nil, 0)}})
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

// TryClaim claims the rest of the current slot, at once, whatever the priority. It
// returns when the slot is claimed and work may begin. The error wraps ErrNotClaimed if
// another worker has the slot, if it is done, if its next attempt is not due yet by
// Job.MinRetry, or if too little of it is left, and ErrIneligible if Options.Eligible says so;
// the cause of ctx if that ends first; or ErrOptions. While the store doesn't answer, TryClaim retries.
//
// Less than Options.Lead before the next boundary, a claim for the next slot may have been
// made already. That keeps others from the rest of the current slot.
//
// The claim ends with the slot, independently of ctx. With Options.Continuous it goes on
// until Release. To keep others out up to the end of the slot, don't release it. With
// Options.Job, call Claim.Complete when the work is done; Job.RunMissed is refused.
func (c *Client) TryClaim(ctx context.Context, o Options) (*Claim, error) {
	t := &try{got: make(chan *Claim, 1), lost: make(chan error, 1)}
	o.JoinMidSlot = true
	l := launch{what: "try to claim", prepare: func(w *WorkerLease) {
		t.w, w.listen = w, t.observe
		w.machine.Single = true
	}}
	if o.job().RunMissed {
		l.wrong.add(OptionError{Field: "Job.RunMissed", found: "is set", Rule: "a claim is for one slot, and can't make up for another: use Run"})
	}
	w, err := c.launch(context.WithoutCancel(ctx), o, Callbacks{LeaseAllocated: t.allocated}, l)
	if err != nil {
		return nil, err
	}
	var why error
	select {
	case claim := <-t.got:
		context.AfterFunc(claim.ctx, claim.end)
		return claim, nil
	case why = <-t.lost:
	case <-ctx.Done():
		why = context.Cause(ctx)
	}
	limited, cancel := c.clock.WithTimeout(context.Background(), stopGrace)
	defer cancel()
	// Whatever was claimed meanwhile is freed, or ends by itself.
	err = w.StopLeasing(limited)
	return nil, errors.Join(fmt.Errorf("try to claim %.70q: %w", o.WorkerType, why), err)
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
	once sync.Once
	done atomic.Bool // the slot is known to be done
}

func (t *try) allocated(ctx context.Context, l Lease) {
	t.once.Do(func() { t.got <- &Claim{Lease: l, ctx: ctx, w: t.w, try: t} })
}

// observe gets the worker's events.
func (t *try) observe(e Event) {
	var why error
	switch e := e.(type) {
	case SlotDone:
		t.done.Store(true)
		return
	case Lost:
		if !e.Slot.End.After(e.Holder.DoneUntil) {
			why = fmt.Errorf("%w: slot %v is done", ErrNotClaimed, e.Slot)
			break
		}
		if !e.Holder.WindowStart.Before(e.Slot.End) {
			why = fmt.Errorf("%w: %s has claimed the slot after %v already", ErrNotClaimed, e.Holder.InstanceID, e.Slot)
			break
		}
		why = fmt.Errorf("%w: %s has slot %v until %s", ErrNotClaimed, e.Holder.InstanceID, e.Slot, store.Format(e.Holder.WindowEnd))
	case Exhausted:
		why = fmt.Errorf("%w: slot %v was tried %d times", ErrNotClaimed, e.Slot, e.Attempts)
	case Postponed:
		why = fmt.Errorf("%w: slot %v was tried %d times, and is not tried again before %s", ErrNotClaimed, e.Slot, e.Attempts, store.Format(e.After))
	case BecameIneligible:
		why = fmt.Errorf("%w: %w: %w", ErrNotClaimed, ErrIneligible, e.Err)
	case Missed:
		why = fmt.Errorf("%w: slot %v: %s", ErrNotClaimed, e.Slot, e.Why)
	default:
		return
	}
	t.once.Do(func() { t.lost <- why })
}
