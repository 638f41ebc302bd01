package inspect

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/slotlease/slotlease/cmd/leasectl/internal/charges"
	"github.com/slotlease/slotlease/store"
)

// recordsAround reads the records of a worker type around a time, without gaps, newest first: up to
// one that begins later, or else the newest, and back to the slot before. It reads the newest few, and
// what is older is found by its key: records begin in the order of their keys.
func recordsAround(ctx context.Context, l *charges.Ledger, workerType string, at time.Time) ([]store.Record, error) {
	var records []store.Record
	for _, limit := range []int{100, 1000} {
		var err error
		if records, _, err = l.Tail(ctx, workerType, limit); err != nil {
			return nil, err
		}
		if len(records) < limit || slotsUpTo(records, at) > 1 {
			return records, nil
		}
	}
	oldest := records[len(records)-1].Seq
	k, err := firstAfter(ctx, l, workerType, oldest, at)
	if err != nil {
		return nil, err
	}
	const below, above = 40, 200
	page, err := l.Page(ctx, workerType, max(0, k-below-1), below+above)
	var found []store.Record
	for i, r := range page {
		if i > 0 && r.Seq != page[i-1].Seq+1 {
			found = nil // What is between has been trimmed.
		}
		found = append(found, r)
		if r.Kind == store.KindGrant && r.Defect == "" && !r.Triggered() && r.SlotStart.After(at) {
			break
		}
	}
	slices.Reverse(found)
	return found, err
}

// slotsUpTo is how many slots there are grants of that begin up to a time.
func slotsUpTo(records []store.Record, at time.Time) int {
	begun := map[time.Time]bool{}
	for _, r := range records {
		if r.Kind == store.KindGrant && r.Defect == "" && !r.WindowStart.After(at) {
			begun[r.SlotStart] = true
		}
	}
	return len(begun)
}

// firstAfter finds the first key, below one that is known to be later, whose record begins after a time.
func firstAfter(ctx context.Context, l store.Ledger, workerType string, later int64, at time.Time) (int64, error) {
	low := int64(1)
	for low < later {
		middle := low + (later-low)/2
		r, err := l.Get(ctx, workerType, middle)
		switch {
		case err != nil && !errors.Is(err, store.ErrNotFound):
			return 0, err
		case err == nil && r.Defect == "" && r.WindowStart.After(at):
			later = middle
		default: // It begins earlier, has been trimmed, or can't be read.
			low = middle + 1
		}
	}
	return low, nil
}
