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

// ErrNotClaimed is wrapped by the error of TryClaim when the slot can't be had.
var ErrNotClaimed = errors.New("slot not claimed")

// Claim is a lease that TryClaim got.
type Claim struct {
	// Lease is what was claimed.
	Lease Lease

	ctx   context.Context
	w     *WorkerLease
	try   *try
	taken atomic.Bool // by Release or Complete
}

// Context ends at the last safe moment of the lease, or when Release is called, with
// a cause as that of Callbacks.LeaseAllocated has.
func (c *Claim) Context() context.Context { return c.ctx }

// Release frees what is left of the slot, as StopLeasing does. The work must have
// ended. It may be called more than once.
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
	c.w.post(arrival{event: machine.Finished{Done: true}})
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

// TryClaim claims what is left of the slot that is now, once: with Options.JoinMidSlot,
// at once whatever the priority is. It returns when the slot is claimed, and may be
// worked in; or an error that wraps ErrNotClaimed if another has the slot or too little
// is left of it, and the cause of ctx if that ends first. When less than Options.Lead is
// left of a slot, claims for the next one are open: who has made one keeps others from
// what is left of this one, and TryClaim says so. While the store doesn't answer, it is
// tried again.
//
// The claim lives for as long as the slot, independently of ctx; with
// Options.Continuous it goes on into the next ones, until Release. To keep others out
// up to the end of the slot, don't release it. With Options.Job, a slot that
// is done can't be claimed: see Claim.Complete.
func (c *Client) TryClaim(ctx context.Context, o Options) (*Claim, error) {
	t := &try{got: make(chan *Claim, 1), lost: make(chan error, 1)}
	o.JoinMidSlot = true
	l := launch{what: "try to claim", prepare: func(w *WorkerLease) {
		t.w, w.listen = w, t.observe
		w.machine.Single = true
	}}
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

// observe is told of events on the worker's goroutine.
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
	case Missed:
		why = fmt.Errorf("%w: slot %v: %s", ErrNotClaimed, e.Slot, e.Why)
	default:
		return
	}
	t.once.Do(func() { t.lost <- why })
}
