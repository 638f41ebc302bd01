package supervise

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/slotlease/slotlease/cmd/leasectl/internal/advice"
	"github.com/slotlease/slotlease/cmd/leasectl/internal/exit"
	"github.com/slotlease/slotlease/cmd/leasectl/internal/guard"
	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/workerlease"
)

// Once claims what is left of the current slot, runs the command under that lease, and gives the rest
// back: as done, if the command is a job and has ended with exit code 0. It returns the exit code of
// the command. The error wraps [workerlease.ErrNotClaimed] if the slot can't be had, which is logged
// already. unfit is why the store could not be used within timeout, or when a job was to be recorded as
// done. A lease that can't be released is logged, and ends by itself; a job that can't be recorded as
// done is an error.
func Once(ctx context.Context, ledger store.Ledger, t workerlease.Timing, c Command, timeout time.Duration) (code int, unfit, err error) {
	work, over, err := newJob(t, c)
	if err != nil {
		return 0, nil, err
	}
	defer over()
	stopping, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	seen := &sightings{observer: observer{c.Log, work.extended, newRefusals(), c.Observer}, charges: workerlease.Charges{}}
	client := workerlease.NewClient(readsUntil{ledger, stopping}, workerlease.ClientOptions{Observer: seen, Roster: c.Roster})
	c.Log.Began(t.Options)
	claim, unfit, err := work.claim(ctx, client, ledger, seen, stop, timeout)
	if claim == nil {
		return 0, unfit, err
	}
	e, held := work.underClaim(ctx, claim)
	if kept := work.kept.error(); kept != nil {
		ended, cancel := context.WithCancel(context.Background())
		cancel()
		_ = claim.Release(ended) // It says that the code has not returned, and makes the worker give up.
		return 0, nil, kept
	}
	seen.forget()
	code, err = work.giveBack(ctx, claim, e, held)
	last := seen.last()
	switch {
	case err == nil:
		c.Log.Cost(seen.cost())
		c.Log.Stopped()
	case errors.Is(err, errUnrecorded) && last != nil:
		return 0, fmt.Errorf("%w: %w", errUnrecorded, last), nil
	}
	return code, nil, err
}

// claim claims the slot. Without a claim, there is an error, or the store is unfit.
func (j *job) claim(ctx context.Context, client *workerlease.Client, ledger store.Ledger, seen *sightings, stop func(), timeout time.Duration) (claim *workerlease.Claim, unfit, err error) {
	trying, end := context.WithCancelCause(ctx)
	defer end(nil)
	late := fmt.Errorf("the slot could not be claimed within %v", timeout)
	defer time.AfterFunc(timeout, func() { end(late) }).Stop()
	barred := make(chan error, 1)
	checked := j.check(trying, ledger)
	go func() {
		select {
		case err := <-checked:
			barred <- err
			end(err)
		case <-trying.Done():
		case <-j.Urgent:
			end(context.Canceled)
		}
	}()
	goOn := context.AfterFunc(trying, func() {
		if !j.Log.Reached() {
			stop()
		}
	})
	claim, err = client.TryClaim(trying, j.Options)
	goOn()
	switch {
	case err == nil:
		return claim, nil, nil
	case errors.Is(err, workerlease.ErrOptions):
		return nil, nil, exit.BadUsage("", err)
	case errors.Is(err, workerlease.ErrNotClaimed):
		// A slot that passed while the store failed isn't somebody else's.
		if last := seen.last(); last != nil && seen.passed() {
			j.Log.Failing()
			return nil, nil, fmt.Errorf("%w: %w", errPassed, last)
		}
		return nil, nil, err
	case ctx.Err() != nil:
		j.Log.Stopping(context.Cause(ctx))
		return nil, nil, exit.Quiet(exit.Interrupted)
	}
	j.Log.Failing()
	select {
	case unfit = <-barred:
		return nil, unfit, nil
	default:
	}
	if last := seen.last(); last != nil {
		return nil, fmt.Errorf("%w: %w", late, last), nil
	}
	return nil, nil, late
}

// underClaim runs the command under a claim, until it has ended or processes are left that can't be
// killed. The end of ctx stops it. held says that the claim was still held.
func (j *job) underClaim(ctx context.Context, claim *workerlease.Claim) (e ending, held bool) {
	until, end := context.WithCancelCause(context.WithoutCancel(ctx))
	defer end(nil)
	defer context.AfterFunc(ctx, func() {
		j.Log.Stopping(context.Cause(ctx))
		end(workerlease.ErrStopped)
	})()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		held, _ = claim.RunIfHeld(until, func(ctx context.Context, l workerlease.Lease) error {
			for {
				j.look(&l)
				e = j.under(ctx, &l, l.Slot)
				// What was told to end is over, also if the lease goes on after all.
				if started := e.Reason != 0; e.held || started || !e.cut() || !j.extends() || !j.timeAgain(ctx, &l, e) {
					return nil
				}
			}
		})
	}()
	select {
	case <-ended:
		return e, held
	case <-j.kept.known.Done():
		return ending{}, true
	}
}

// errPassed is that a slot ended before it could be claimed.
var errPassed = errors.New("the slot ended before it could be claimed")

// errUnrecorded is that a job has ended well, and the ledger may not say so.
var errUnrecorded = errors.New("the command ended with exit code 0, but may not be recorded as done, and the slot may be run again")

// giveBack ends a claim whose command has ended.
func (j *job) giveBack(ctx context.Context, claim *workerlease.Claim, e ending, held bool) (code int, err error) {
	limit, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopTime)
	defer cancel()
	started := e.Reason != 0
	if e.failed() {
		claim.Lease.FailedWith(e.failure())
	}
	if started && e.ExitCode() == 0 && j.Options.Job != nil {
		if err := claim.Complete(limit); err != nil {
			return 0, fmt.Errorf("%w: %w", errUnrecorded, err)
		}
	} else if err := claim.Release(limit); err != nil {
		j.Log.Unreleased(err)
	}
	switch {
	case started:
		return e.ExitCode(), nil
	case !held, e.cut(), errors.Is(e.err, guard.ErrTooLate):
		return 0, fmt.Errorf("%w: too little of it was left to start the command", workerlease.ErrNotClaimed)
	}
	return 0, advice.ForCommand(j.Name, e.err)
}

// sightings keeps what a store did wrong last, whether a slot was missed since it may have failed, and what the store has billed.
type sightings struct {
	observer

	mu      sync.Mutex
	failure error
	missed  bool
	charges workerlease.Charges
}

// Observe takes note of an event, and passes it on.
func (s *sightings) Observe(e workerlease.Event) {
	s.mu.Lock()
	switch e := e.(type) {
	case workerlease.StoreFailed:
		s.failure = e.Err
	case workerlease.Unknown:
		s.failure = e.Err
	case workerlease.Throttled:
		s.failure = e.Err
	case workerlease.Missed:
		s.missed = slices.Contains(storesOwn, e.Why)
	case workerlease.Charged:
		s.charges[e.Operation] += e.Units
	}
	s.mu.Unlock()
	s.observer.Observe(e)
}

// forget drops the error that was seen last.
func (s *sightings) forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.failure = nil
}

// last is the newest error since, nil if there was none.
func (s *sightings) last() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.failure
}

// storesOwn are the reasons of missed slots for which a store that failed can be to blame: not a pause, for one.
var storesOwn = []workerlease.Reason{workerlease.Unreachable, workerlease.Denied, workerlease.Refused, workerlease.TooLate}

// passed reports that a slot has passed without a holder that is known, and perhaps because the store failed.
func (s *sightings) passed() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.missed
}

// cost is what was billed.
func (s *sightings) cost() workerlease.Charges {
	s.mu.Lock()
	defer s.mu.Unlock()
	return maps.Clone(s.charges)
}
