package operate

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/workerlease"
	"github.com/slotlease/slotlease/workerlease/internal/machine"
	"github.com/slotlease/slotlease/workerlease/internal/option"
	"github.com/slotlease/slotlease/workerlease/internal/timeline"
)

// Trim deletes old records of a worker type, in batches of at most store.TrimBatch, and returns how
// many. Workers do so by themselves, a batch now and then: it is for operators, after a longer
// retention, or for a type that has no workers any more. It deletes only what a later record shows
// to be older than a retention, as workers do: the age of a record alone proves nothing. The newest 100 records are kept.
//
// The retention is at least workerlease.MinRetention, and at least that of all workers; 0 is workerlease.DefaultRetention. If
// ctx ends, what was deleted until then is counted, beside the error. An error wraps ErrOptions,
// ErrTimeUnknown, ErrUnfitHead or what the store answered.
func (d Desk) Trim(ctx context.Context, workerType string, retention time.Duration) (trimmed int, err error) {
	retention = cmp.Or(retention, workerlease.DefaultRetention)
	var errs option.Errors
	if retention < workerlease.MinRetention {
		errs.Is("Retention", retention, "must be 0 (default) or at least %v", workerlease.MinRetention)
	}
	s, err := d.begin("trim", workerType, errs)
	if err != nil {
		return 0, err
	}
	if _, err = s.sample(ctx); err == nil {
		trimmed, err = s.trim(ctx, workerType, retention)
	}
	if err != nil {
		return trimmed, fmt.Errorf("trim %q: %w", workerType, err)
	}
	return trimmed, nil
}

func (s *session) trim(ctx context.Context, workerType string, retention time.Duration) (trimmed int, err error) {
	below, now, err := s.look(ctx, workerType)
	switch {
	case err != nil:
		return 0, err
	case below.Why != nil:
		return 0, fmt.Errorf("%w, seq %d: %w", ErrUnfitHead, below.Head.Seq, below.Why)
	}
	before, err := s.justified(ctx, workerType, retention, below.Head.Seq-machine.Standard.Keep, now)
	for n := 1; err == nil && before > 1 && n > 0; trimmed += n {
		n, err = s.Ledger.Trim(ctx, workerType, before)
	}
	return trimmed, err
}

// justified is the newest record, up to a Seq, that shows all below it to be old enough; 0 if none
// does. The records were read one after the other, so what holds of one holds of those below it.
func (s *session) justified(ctx context.Context, workerType string, retention time.Duration, newest int64, now timeline.Interval) (int64, error) {
	low, high := int64(0), newest+1 // What is at low justifies it, or is gone; what is at high doesn't.
	found := int64(0)
	for step := machine.Standard.Keep; low+1 < high; step *= 2 {
		at := max(high-step, (low+high)/2) // Near the newest first: most ledgers are trimmed by their workers.
		if low > 0 {
			at = (low + high) / 2
		}
		at = min(max(at, low+1), high-1)
		r, err := s.Ledger.Get(ctx, workerType, at)
		switch {
		case errors.Is(err, store.ErrNotFound):
			low = at
		case err != nil:
			return 0, err
		case machine.Standard.TrimBelow(r, now, retention) > 0:
			low, found = at, at
		default:
			high = at
		}
	}
	return found, nil
}
