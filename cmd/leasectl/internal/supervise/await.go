package supervise

import (
	"context"
	"errors"
	"time"

	"github.com/slotlease/slotlease/cmd/leasectl/internal/exit"
	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/workerlease"
)

// attempts are the attempts of Once to claim its slot.
type attempts struct {
	*job

	client   *workerlease.Client
	seen     *sightings
	checked  <-chan error // whether the ledger is fit
	stop     func()       // breaks off reads
	patience Patience
}

// leastWait lies between two attempts: hints may come in numbers, and a window that is over may not be so surely.
const leastWait = 100 * time.Millisecond

// hintsCome is within what a watch begins, mostly.
const hintsCome = time.Second

// await claims the slot. If that has a job which another worker has, or which may not be tried again yet, it waits:
// until that one has done it, has failed or has died, and until the time has come.
func (j *attempts) await(ctx context.Context, ledger store.Ledger) (claim *workerlease.Claim, unfit, err error) {
	waiting, end := context.WithCancel(ctx)
	defer end()
	var hints <-chan struct{}
	var first *workerlease.NotClaimed
	for allowed := j.patience.Store - time.Since(j.patience.Since); ; {
		claim, unfit, err = j.claim(ctx, allowed)
		n, refused := errors.AsType[*workerlease.NotClaimed](err)
		switch {
		case first != nil && claim != nil && claim.Lease.Slot != first.Slot:
			_ = claim.Release(ctx) // The next slot has begun, which isn't the one to be claimed; it ends by itself if need be.
			return nil, nil, j.inVain(first)
		case !refused || j.Options.Job == nil:
			return claim, unfit, err
		case first != nil && n.Slot != first.Slot:
			return nil, nil, j.inVain(first)
		case n.Why != workerlease.HeldByAnother && n.Why != workerlease.TooSoon:
			return nil, nil, j.inVain(n)
		}
		first = n
		wait, left := max(j.seen.until(n.Until), leastWait), j.left(n)
		if left <= 0 || n.Why == workerlease.TooSoon && wait > left {
			return nil, nil, j.inVain(n)
		}
		if hints == nil { // What comes before they do is seen by one look more.
			hints, wait = j.hints(waiting, ledger), min(wait, hintsCome)
		}
		if err := j.rest(ctx, min(wait, left), hints); err != nil {
			return nil, nil, err
		}
		if allowed = j.patience.allowed(); allowed <= 0 {
			return nil, nil, j.inVain(n)
		}
	}
}

// allowed is how long a claim may take after a wait: what that has left of a time-out for all of it, or else the
// time for the store anew.
func (p Patience) allowed() time.Duration {
	if p.Done == 0 {
		return p.Store
	}
	return p.Done - time.Since(p.Since)
}

// rest waits, but not long once a hint has come. An error is that of the end.
func (j *attempts) rest(ctx context.Context, wait time.Duration, hints <-chan struct{}) error {
	over := time.After(wait)
	for {
		select {
		case <-hints:
			over, hints = time.After(leastWait), nil
		case <-over:
			return nil
		case <-ctx.Done():
			j.Log.Stopping(context.Cause(ctx))
			return exit.Quiet(exit.Interrupted)
		case <-j.Urgent:
			return exit.Quiet(exit.Interrupted)
		}
	}
}

// left is how long the wait may go on: not so long that the next slot might be claimed in place of this one.
func (j *attempts) left(n *workerlease.NotClaimed) time.Duration {
	left := j.seen.until(n.Slot.End) - 2*leastWait
	if most := j.patience.Done; most > 0 {
		left = min(left, most-time.Since(j.patience.Since))
	}
	return left
}

// inVain logs why a slot can't be had, and returns that.
func (j *attempts) inVain(n *workerlease.NotClaimed) error {
	j.Log.Unclaimed(n)
	return n
}

// hints get an element when another worker may have given a slot back.
func (j *attempts) hints(ctx context.Context, ledger store.Ledger) <-chan struct{} {
	heard := make(chan struct{}, 1)
	if w, ok := store.As[store.Watcher](ledger); ok {
		go func() {
			// Where it fails, the ends of windows have to do.
			_ = w.Watch(ctx, func(of string) {
				if of == "" || of == j.Options.WorkerType {
					keep(heard, struct{}{})
				}
			})
		}()
	}
	return heard
}
