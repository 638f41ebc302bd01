package main

import (
	"context"
	"crypto/sha256"
	"fmt"
	"strings"
	"sync"

	"github.com/go-co-op/gocron/v2"

	"github.com/slotlease/slotlease/workerlease"
)

// Elector is a [gocron.Elector]: its scheduler runs jobs only while Worker holds the
// lease. The lease should be Continuous, as one that isn't has no holder for some
// milliseconds around the boundary of a slot, where most jobs are due. While the
// lease moves from one node to another, whose clock is another, a job may run on both
// or on none.
type Elector struct{ Worker *workerlease.WorkerLease }

// IsLeader returns nil if the worker holds the lease.
func (e Elector) IsLeader(context.Context) error {
	if e.Worker.IsHolder() {
		return nil
	}
	if h, held := e.Worker.Holder(); held {
		return fmt.Errorf("the lease is held by %s", h.InstanceID)
	}
	return fmt.Errorf("the lease is not held by %s", e.Worker.Status().InstanceID)
}

// Locker is a [gocron.Locker]: a job runs once in each slot, on one of all schedulers.
//
// A lock that is held only while the job runs lets it run twice: a second scheduler,
// whose clock is a little later, finds it free again. This one is held to the end of
// the slot: Unlock does nothing. So clocks may be apart, by as much as lies between
// the time at which the job is due and the boundaries of the slots.
//
// A job gets no context that ends with the slot: it must be done by then.
type Locker struct {
	Client *workerlease.Client
	// Options are those of the claims. The worker type is made of the job's name, which
	// gocron.WithName sets. Of its schedule, each slot must contain one time at which
	// the job is due, far from both boundaries: for a job at 02:00,
	// slots.Cron("0 14 * * *", zone). Three of them Lock refuses: FailoverWithin and
	// Job, as the slot of a scheduler that dies would be free again, though the
	// job may have been done (workerlease.Run is for that); and Continuous, as the
	// claim would never end.
	Options workerlease.Options

	claims sync.WaitGroup
}

// Lock claims the slot that is now, or says who has it.
func (l *Locker) Lock(ctx context.Context, key string) (gocron.Lock, error) {
	o := l.Options
	if o.FailoverWithin != 0 || o.Job != nil || o.Continuous {
		return nil, fmt.Errorf("lock %q: FailoverWithin is %v, Job %v, Continuous %v: leave them out, a lock is held to the end of its slot",
			key, o.FailoverWithin, o.Job != nil, o.Continuous)
	}
	o.WorkerType = workerType(key)
	claim, err := l.Client.TryClaim(ctx, o)
	if err != nil {
		return nil, err
	}
	l.claims.Go(func() {
		<-claim.Context().Done()
		_ = claim.Release(context.Background()) // There is nothing left to release: it waits for the worker.
	})
	return kept{}, nil
}

// Wait waits for the end of all slots that were claimed. Only then may the ledger be
// closed, unless the process ends anyway.
func (l *Locker) Wait() { l.claims.Wait() }

// kept is a claim that ends with its slot.
type kept struct{}

// Unlock leaves the lock as it is.
func (kept) Unlock(context.Context) error { return nil }

// workerType is a worker type for any name of a job, and another one for each.
func workerType(name string) string {
	legible := strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("._-", r) {
			return r
		}
		return '-'
	}, name)
	sum := sha256.Sum256([]byte(name))
	return fmt.Sprintf("job-%.40s-%x", legible, sum[:8])
}
