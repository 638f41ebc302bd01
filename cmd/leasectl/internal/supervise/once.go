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
	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/workerlease"
	"github.com/slotlease/slotlease/workerlease/event"
)

// Patience is how long Once waits.
type Patience struct {
	Since time.Time     // when it began
	Store time.Duration // for the store
	Done  time.Duration // for another worker that has the slot of a job, for the next attempt, and in all; 0: to the slot's end
}

// Once claims what is left of the current slot, runs the command under that lease, and gives the rest
// back: as done, if the command is a job and has ended with exit code 0. It returns the exit code of
// the command. The error wraps [workerlease.ErrNotClaimed] if the slot can't be had, which is logged
// already. unfit is why the store could not be used, or when a job was to be recorded as
// done. A lease that can't be released is logged, and ends by itself; a job that can't be recorded as
// done is an error.
func Once(ctx context.Context, ledger store.Ledger, t workerlease.Timing, c Command, p Patience) (code int, unfit, err error) {
	work := newJob(Wanted{Timing: t, Command: c})
	defer work.over()
	stopping, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	seen := &sightings{observer: observer{c.Log, work.extended, newRefusals(), c.Observer}, charges: workerlease.Charges{}}
	client := workerlease.NewClient(breakingOff(ledger, stopping), workerlease.ClientOptions{Observer: seen, Roster: c.Roster})
	c.Log.Began(t.Options, t.Options.Job != nil)
	tries := &attempts{job: work, client: client, seen: seen, checked: check(stopping, ledger, c.Log), stop: stop, patience: p}
	claim, unfit, err := tries.await(ctx, ledger)
	if claim == nil {
		return 0, unfit, err
	}
	e, held := work.underClaim(ctx, claim)
	for e.tooLate(held) && t.Options.Job != nil && ctx.Err() == nil && work.kept.error() == nil && p.allowed() > 0 {
		// The lease was lost before the command could start, as on a machine that stood still: another one may be had.
		_, _ = work.giveBack(ctx, claim, e, held)
		again, unfit, err := tries.await(ctx, ledger)
		if again == nil {
			return 0, unfit, err
		}
		claim = again
		e, held = work.underClaim(ctx, claim)
	}
	if kept := work.kept.error(); kept != nil {
		ended, cancel := context.WithCancel(context.Background())
		cancel()
		_ = claim.Release(ended) // It says that the code has not returned, and makes the worker give up.
		return 0, nil, kept
	}
	seen.forget()
	if e.succeeded() || t.Options.Job != nil && e.done() {
		seen.Observe(e.success(claim.Lease))
	}
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

// giveUpTime is how long a claim may take to end once it is too late for it. An append that the store
// leaves unanswered is given up then: if it lands, its lease ends by itself.
const giveUpTime = 800 * time.Millisecond

// claim claims the slot. Without a claim, there is an error, or the store is unfit. allowed is how long it may take.
func (j *attempts) claim(ctx context.Context, allowed time.Duration) (claim *workerlease.Claim, unfit, err error) {
	trying, end := context.WithCancelCause(ctx)
	defer end(nil)
	late := fmt.Errorf("the slot could not be claimed within %v", j.patience.Store)
	defer time.AfterFunc(allowed, func() { end(late) }).Stop()
	barred := make(chan error, 1)
	go func() {
		select {
		case err := <-j.checked:
			barred <- err
			end(err)
		case <-trying.Done():
		case <-j.Urgent:
			end(context.Canceled)
		}
	}()
	claim, err = j.tryClaim(ctx, trying, late)
	switch {
	case err == nil:
		return claim, nil, nil
	case errors.Is(err, workerlease.ErrOptions):
		return nil, nil, exit.BadUsage("", err)
	case errors.Is(err, workerlease.ErrNotClaimed):
		// A slot that passed while the store failed isn't somebody else's.
		if last := j.seen.last(); last != nil && j.seen.passed() {
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
	if last := j.seen.last(); last != nil {
		return nil, fmt.Errorf("%w: %w", late, last), nil
	}
	return nil, late, nil
}

// tryClaim claims the slot until trying ends, and a little longer, unless ctx has ended: then as long as that takes.
func (j *attempts) tryClaim(ctx, trying context.Context, late error) (claim *workerlease.Claim, err error) {
	givenUp := make(chan struct{})
	defer context.AfterFunc(trying, func() {
		interrupted := ctx.Err() != nil
		if !interrupted || !j.Log.Reached() {
			j.stop()
		}
		if !interrupted {
			time.AfterFunc(giveUpTime, func() { close(givenUp) })
		}
	})()
	type outcome struct {
		claim *workerlease.Claim
		err   error
	}
	tried := make(chan outcome, 1)
	go func() {
		claim, err := j.client.TryClaim(trying, j.Options)
		tried <- outcome{claim, err}
	}()
	select {
	case o := <-tried:
		return o.claim, o.err
	case <-givenUp:
		return nil, late
	}
}

// underClaim runs the command under a claim, until it has ended or processes are left that can't be
// killed. The end of ctx stops it. held says that the claim was still held.
func (j *job) underClaim(ctx context.Context, claim *workerlease.Claim) (e ending, held bool) {
	until, end := context.WithCancelCause(context.WithoutCancel(ctx))
	defer end(nil)
	ended := make(chan struct{})
	defer context.AfterFunc(ctx, func() {
		why := context.Cause(ctx)
		if j.Options.DrainTimeout > 0 {
			if why = j.drained(why, ended); why == nil {
				return
			}
		}
		j.Log.Stopping(why)
		end(workerlease.ErrStopped)
	})()
	go func() {
		defer close(ended)
		held, _ = claim.RunIfHeld(until, func(ctx context.Context, l workerlease.Lease) error {
			for {
				j.look(&l)
				e = j.under(ctx, &l)
				// What was told to end is over, also if the lease goes on after all.
				if started := e.Reason != 0; e.held || started || !e.cut() || !j.extends() || !j.timeAgain(ctx, &l, e) {
					e.late = j.Options.Job != nil && errors.Is(context.Cause(ctx), workerlease.ErrTimedOut)
					if !e.held && (e.failed() || started && !e.done() && (e.cut() || j.Options.Job != nil)) {
						claim.Fail(e.failureBy(context.Cause(ctx)))
					}
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

// tooLate reports that too little of a lease was left to start the command.
func (e ending) tooLate(held bool) bool { return e.Reason == 0 && (!held || e.cut()) }

// errPassed is that a slot ended before it could be claimed.
var errPassed = errors.New("the slot ended before it could be claimed")

// errUnrecorded is that a job has ended well, and the ledger may not say so.
var errUnrecorded = errors.New("the command ended with exit code 0, but may not be recorded as done, and the slot may be run again")

// errTookTooLong is that a command was told to end by its time-out, and has ended well: most do when they are told to.
var errTookTooLong = errors.New("the command took longer than --run-timeout, so its job has failed, though it ended with exit code 0 when it was told to")

// giveBack ends a claim whose command has ended.
func (j *job) giveBack(ctx context.Context, claim *workerlease.Claim, e ending, held bool) (code int, err error) {
	limit, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopTime)
	defer cancel()
	if e.done() && j.Options.Job != nil {
		if err := claim.Complete(limit); err != nil {
			return 0, fmt.Errorf("%w: %w", errUnrecorded, err)
		}
	} else if err := claim.Release(limit); err != nil {
		j.Log.Unreleased(err)
	}
	switch started := e.Reason != 0; {
	case started && e.late && e.ExitCode() == 0:
		return 0, errTookTooLong
	case started:
		return e.ExitCode(), nil
	case e.tooLate(held):
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
	mixed   bool // another command has been heard of
	charges workerlease.Charges
	clock   event.ClockSample // the newest
	at      time.Time         // when it came
}

// Observe takes note of an event, and passes it on.
func (s *sightings) Observe(e event.Event) {
	s.mu.Lock()
	switch e := e.(type) {
	case event.StoreFailed:
		s.failure = e.Err
	case event.Unknown:
		s.failure = e.Err
	case event.Throttled:
		s.failure = e.Err
	case event.Missed:
		s.missed = slices.Contains(storesOwn, e.Why)
	case event.Charged:
		s.charges[e.Operation] += e.Units
	case event.ClockSample:
		s.clock, s.at = e, time.Now()
	case event.WorkMismatch:
		if s.mixed {
			s.mu.Unlock()
			return // Each try to claim says it.
		}
		s.mixed = true
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
var storesOwn = []workerlease.Reason{workerlease.Unreachable, workerlease.Denied, workerlease.Refused, workerlease.StoreWentBack, workerlease.TooLate}

// passed reports that a slot has passed without a holder that is known, and perhaps because the store failed.
func (s *sightings) passed() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.missed
}

// until is how long it is until a store time may have come, and is negative if it may have already.
func (s *sightings) until(t time.Time) time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	return t.Sub(s.clock.StoreTime) - s.clock.Uncertainty - time.Since(s.at)
}

// cost is what was billed.
func (s *sightings) cost() workerlease.Charges {
	s.mu.Lock()
	defer s.mu.Unlock()
	return maps.Clone(s.charges)
}

// success is the event of a command that has succeeded under a claim.
func (e ending) success(l workerlease.Lease) event.Event {
	return event.TaskSucceeded{Worker: event.Worker{WorkerType: l.WorkerType, InstanceID: l.InstanceID}, Took: e.took, Lease: eventLease(l)}
}

// eventLease is a lease as events have it.
func eventLease(l workerlease.Lease) event.Lease {
	return event.Lease{WorkerType: l.WorkerType, InstanceID: l.InstanceID, Slot: l.Slot, Start: l.Start, Expiry: l.Expiry, Token: l.Token, Attempt: l.Attempt}
}
