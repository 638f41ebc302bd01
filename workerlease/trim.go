package workerlease

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/workerlease/internal/machine"
	"github.com/slotlease/slotlease/workerlease/internal/timeline"
)

// TrimOptions of Trim. WorkerType is required.
type TrimOptions struct {
	WorkerType string
	// Retention is how long records are kept: at least MinRetention, and at least as long as that
	// of all workers. Default: DefaultRetention. The newest 100 records are kept in any case.
	Retention time.Duration
}

// Trim trims a ledger on its own client: see Client.Trim.
func Trim(ctx context.Context, ledger store.Ledger, o TrimOptions) (int, error) {
	return newDefaultClient(ledger).Trim(ctx, o)
}

// Trim deletes old records of a worker type, in batches of at most store.TrimBatch, and returns how
// many. Workers do so by themselves, a batch now and then: it is for operators, after a longer
// retention, or for a type that has no workers any more. It deletes only what a later record shows
// to be older than Retention, as workers do: the age of a record alone proves nothing.
//
// If ctx ends, what was deleted until then is counted, beside the error. An error wraps ErrOptions,
// ErrTimeUnknown, ErrUnfitHead or what the store answered.
func (c *Client) Trim(ctx context.Context, o TrimOptions) (trimmed int, err error) {
	if o.Retention == 0 {
		o.Retention = DefaultRetention
	}
	var errs optionErrors
	errs.workerType(o.WorkerType)
	if o.Retention < MinRetention {
		errs.is("Retention", o.Retention, "must be 0 (default) or at least %v", MinRetention)
	}
	if c.ledger == nil {
		errs.missing("ledger", "open one with store/mongo, store/cosmos, store/sqlite or store/memory")
	}
	if err := errs.join(); err != nil {
		return 0, fmt.Errorf("trim %.70q: %w: %w", o.WorkerType, ErrOptions, err)
	}
	if _, err = c.sampleAnew(ctx); err == nil {
		trimmed, err = c.trim(ctx, o)
	}
	if err != nil {
		return trimmed, fmt.Errorf("trim %q: %w", o.WorkerType, err)
	}
	return trimmed, nil
}

func (c *Client) trim(ctx context.Context, o TrimOptions) (trimmed int, err error) {
	below, now, err := c.lookBelow(ctx, o.WorkerType)
	switch {
	case err != nil:
		return 0, err
	case below.Why != nil:
		return 0, fmt.Errorf("%w, seq %d: %w", ErrUnfitHead, below.Head.Seq, below.Why)
	}
	before, err := c.justified(ctx, o, below.Head.Seq-machine.Standard.Keep, now)
	for n := 1; err == nil && before > 1 && n > 0; trimmed += n {
		n, err = c.ledger.Trim(ctx, o.WorkerType, before)
	}
	return trimmed, err
}

// justified is the newest record, up to a Seq, that shows all below it to be old enough; 0 if none
// does. The records were read one after the other, so what holds of one holds of those below it.
func (c *Client) justified(ctx context.Context, o TrimOptions, newest int64, now timeline.Interval) (int64, error) {
	low, high := int64(0), newest+1 // What is at low justifies it, or is gone; what is at high doesn't.
	found := int64(0)
	for step := machine.Standard.Keep; low+1 < high; step *= 2 {
		at := max(high-step, (low+high)/2) // Near the newest first: most ledgers are trimmed by their workers.
		if low > 0 {
			at = (low + high) / 2
		}
		at = min(max(at, low+1), high-1)
		r, err := c.ledger.Get(ctx, o.WorkerType, at)
		switch {
		case errors.Is(err, store.ErrNotFound):
			low = at
		case err != nil:
			return 0, err
		case machine.Standard.TrimBelow(r, now, o.Retention) > 0:
			low, found = at, at
		default:
			high = at
		}
	}
	return found, nil
}
