// Package beside moves jobs and leaders to slotlease from another lock, while workers of both run: those that are deployed
// already, which know the other lock alone, and those that are next. No run is lost, and none happens twice.
//
//   - A leader holds its lease and the other lock, for as long as an old worker may be there: see [Both].
//   - A job takes the ticket of each run, as old workers do, too: see [Once].
//
// When the last old worker has gone, deploy again without either. docs/coming-from.md has the steps. Copy what you need.
package beside

import (
	"context"
	"time"

	"github.com/slotlease/slotlease/workerlease"
)

// Lock is the other lock, as old workers take it.
type Lock interface {
	// TryLock takes the lock, or returns a nil context if another has it. The context ends when the lock may be lost, and
	// with ctx. unlock must be called after that, and gives it back.
	TryLock(ctx context.Context) (held context.Context, unlock func(), err error)
}

// Both is a task that works while this worker has the lease and the other lock, which it tries again and again, so long after
// a failure. It ends without an error when the lease does, as while an old worker leads.
func Both(lock Lock, again time.Duration, task workerlease.Task) workerlease.Task {
	return func(ctx context.Context, l workerlease.Lease) error {
		for {
			held, unlock, err := lock.TryLock(ctx)
			if err == nil && held != nil {
				defer unlock()
				return task(held, l)
			}
			select {
			case <-ctx.Done():
				return nil
			case <-time.After(again):
			}
		}
	}
}

// Ticket takes the run of a job that is due at a time, and reports false if another system has it. A system that has it
// gets it again, so that it may try again what has failed.
type Ticket func(ctx context.Context, due time.Time) (mine bool, err error)

// Once is a task that runs if this system gets the ticket of the slot. Otherwise the slot is done: the other system runs it.
func Once(ticket Ticket, task workerlease.Task) workerlease.Task {
	return func(ctx context.Context, l workerlease.Lease) error {
		mine, err := ticket(ctx, l.Slot.Start)
		if err != nil || !mine {
			return err
		}
		return task(ctx, l)
	}
}
