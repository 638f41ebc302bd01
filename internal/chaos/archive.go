//go:build linux

package main

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/slotlease/slotlease/store"
)

// archive moves old records out of a ledger during a run, and keeps them for the
// verdict. The test server for MongoDB reads a whole collection to find its newest
// record: after some hundreds of slots no worker would get its turn in time. (leasectl
// trims, too, but not before two hours.)
type archive struct {
	records map[int64]store.Record
	wrong   []string
}

// rested is how long before the newest record a window must have ended for its
// record to be taken out. No fault holds an append back for nearly as long, so
// that none can come when its key is free again.
const rested = 90 * time.Second

// shorten moves old records out of the ledger. What fails under a fault is done the
// next time.
func (a *archive) shorten(ctx context.Context, l store.Ledger, workerType string) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	records, _, err := l.Tail(ctx, workerType, allRecords)
	if err != nil {
		return
	}
	a.take(records)
	if before := oldBelow(records); before > 0 {
		_, _ = l.Trim(ctx, workerType, before)
	}
}

// oldBelow is the Seq below which all is old, newest record first, or 0.
func oldBelow(records []store.Record) int64 {
	for _, r := range records {
		if r.WindowEnd.Before(records[0].WindowStart.Add(-rested)) {
			return r.Seq + 1
		}
	}
	return 0
}

// take keeps records. A key holds one record forever, even when it was taken out.
func (a *archive) take(records []store.Record) {
	if a.records == nil {
		a.records = map[int64]store.Record{}
	}
	for _, r := range records {
		if old, ok := a.records[r.Seq]; ok && old != r {
			a.wrong = append(a.wrong, fmt.Sprintf("%s: record %d was %+v, and is now %+v", r.WorkerType, r.Seq, old, r))
			continue
		}
		a.records[r.Seq] = r
	}
}

// all are the records that were taken out and those in the ledger now, the oldest first.
func (a *archive) all(now []store.Record) []store.Record {
	a.take(now)
	return slices.SortedFunc(maps.Values(a.records), func(x, y store.Record) int { return cmp.Compare(x.Seq, y.Seq) })
}
