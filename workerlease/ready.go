package workerlease

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/workerlease/internal/option"
)

const (
	// readyWait is how long a start waits for a store that doesn't answer: then leasing begins, and retries.
	readyWait = 5 * time.Second
	// refusalLasts is how long a store refuses or denies what it is asked, before that counts: an election, a failover or
	// a backup may make it do so for a moment.
	refusalLasts = 10 * time.Second
	// askAgain is the pause between two looks at a store that refuses, and at first at one that doesn't answer.
	askAgain   = time.Second
	latestLook = 30 * time.Second
)

// readiness is what a client knows of its ledger when a worker starts.
type readiness struct {
	gate chan struct{} // has an element while a worker's start checks the ledger
	// settled: the ledger has answered, or was waited for long enough. pending: it hasn't answered.
	settled, pending atomic.Bool
}

// Ready asks the ledger what its workers will ask, and stores nothing. It returns nil if they can use it. An error that
// wraps [store.ErrMissing], ErrRefused, ErrDenied, ErrInvalid or ErrClosed means that waiting doesn't help, and ends with
// what to do: see [store.Remedy]. A refusal or a denial is such an error when it has lasted for 10 s of the client's
// clock, or up to the end of ctx, and at once if it wraps store.ErrFinal. Any other error means that the ledger can't be reached: it has 5 s to answer.
//
// Run, StartTask, StartLeasing and TryClaim do the same before they start a worker, once for each client, and start it if
// the ledger can't be reached. They don't ask a ledger that can neither check its rights nor examine itself ([store.Description]), as
// one in memory: it needs no Init.
func (c *Client) Ready(ctx context.Context) error {
	var errs option.Errors
	c.checkLedger(&errs)
	if err := errs.Join(); err != nil {
		return fmt.Errorf("ready: %w: %w", ErrOptions, err)
	}
	if err := c.insist(ctx, store.Sightings, nil); err != nil {
		return fmt.Errorf("ready: %w", remedied(err))
	}
	return nil
}

// check finds out whether the ledger can be used, before a worker starts. It returns an error only if waiting doesn't help.
// told gets the first answer that may be one.
func (c *Client) check(ctx context.Context, workerType string, told func(error)) error {
	if c.described.CheckRights == nil && c.described.Examine == nil || c.ready.settled.Load() {
		return nil
	}
	select {
	case c.ready.gate <- struct{}{}:
		defer func() { <-c.ready.gate }()
	case <-ctx.Done():
		return nil
	}
	if c.ready.settled.Load() {
		return nil
	}
	err := c.insist(ctx, workerType, told)
	switch {
	case ctx.Err() != nil:
		return nil // The worker starts, and stops at once.
	case isAnswer(err):
		return remedied(err)
	}
	c.ready.pending.Store(err != nil)
	c.ready.settled.Store(true)
	return nil
}

// await asks on a ledger that hadn't answered when its worker started, until it answers or ctx ends. The channel gets an
// error if it turns out that waiting doesn't help.
func (c *Client) await(ctx context.Context, workerType string) <-chan error {
	refused := make(chan error, 1)
	if !c.ready.pending.Load() {
		return refused
	}
	go func() {
		for pause := askAgain; c.ready.pending.Load(); pause = min(2*pause, latestLook) {
			if !c.pause(ctx, pause) {
				return
			}
			err := c.insist(ctx, workerType, nil)
			switch {
			case ctx.Err() != nil:
				return
			case isAnswer(err):
				refused <- remedied(err)
				return
			case err == nil:
				c.ready.pending.Store(false)
			}
		}
	}()
	return refused
}

// insist asks the ledger, and again while it refuses or denies that, for as long as that may pass. told, unless it is nil,
// gets the first such answer.
func (c *Client) insist(ctx context.Context, workerType string, told func(error)) error {
	began := c.local()
	for {
		err := c.ask(ctx, workerType)
		if !errors.Is(err, store.ErrRefused) && !errors.Is(err, store.ErrDenied) || errors.Is(err, store.ErrMissing) || errors.Is(err, store.ErrFinal) {
			return err
		}
		if told != nil {
			told(err)
			told = nil
		}
		if c.local()-began >= refusalLasts || !c.pause(ctx, askAgain) {
			return err
		}
	}
}

// ask asks the ledger once. The rights come first: a read may create what is missing.
func (c *Client) ask(ctx context.Context, workerType string) error {
	ctx, cancel := c.clock.WithTimeout(ctx, readyWait)
	defer cancel()
	if c.described.CheckRights != nil {
		if err := c.described.CheckRights(ctx); err != nil {
			return err
		}
	}
	_, _, err := c.ledger.Tail(ctx, workerType, 1)
	return err
}

// pause waits, and reports whether ctx goes on.
func (c *Client) pause(ctx context.Context, d time.Duration) bool {
	t := c.clock.Timer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// isAnswer reports whether an error says that waiting doesn't help.
func isAnswer(err error) bool {
	for _, answer := range []error{store.ErrMissing, store.ErrRefused, store.ErrDenied, store.ErrInvalid, store.ErrClosed} {
		if errors.Is(err, answer) {
			return true
		}
	}
	return false
}

// remedied is an error with what to do about it.
func remedied(err error) error {
	if remedy := store.Remedy(err); remedy != "" {
		return fmt.Errorf("%w: %s", err, remedy)
	}
	return err
}
