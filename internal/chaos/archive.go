//go:build linux

package main

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/slotlease/slotlease/store"
)

// archive takes old records out of the ledgers while a run goes on, and keeps them
// for the verdict. The test server for MongoDB reads all of a collection to find its
// newest record: after some hundreds of slots no worker would get its turn in time.
// (leasectl trims, too, but not before two hours.)
type archive struct {
	mu      sync.Mutex
	records map[string]map[int64]store.Record // by worker type
	wrong   []string
}

// rested is how long before the newest record a window must have ended for its
// record to be taken out. No fault holds an append back for nearly as long, so
// that none can come when its key is free again.
const rested = 90 * time.Second

// keep shortens all ledgers until ctx ends. What fails under a fault is done the next
// time.
func (a *archive) keep(ctx context.Context, teams []*team) {
	for pause(ctx, 15*time.Second) {
		for _, t := range teams {
			a.shorten(ctx, t.ledger, t.of)
		}
	}
}

func (a *archive) shorten(ctx context.Context, l store.Ledger, of workerType) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	records, _, err := l.Tail(ctx, of.name, allRecords)
	if err != nil {
		return
	}
	a.take(of, records)
	if before := oldBelow(records); before > 0 {
		_, _ = l.Trim(ctx, of.name, before)
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
func (a *archive) take(t workerType, records []store.Record) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.records == nil {
		a.records = map[string]map[int64]store.Record{}
	}
	kept := a.records[t.name]
	if kept == nil {
		kept = map[int64]store.Record{}
		a.records[t.name] = kept
	}
	for _, r := range records {
		if old, ok := kept[r.Seq]; ok && old != r {
			a.wrong = append(a.wrong, fmt.Sprintf("%s: record %d was %+v, and is now %+v", t.name, r.Seq, old, r))
			continue
		}
		kept[r.Seq] = r
	}
}

// all are the records of a worker type, with those that are in its ledger now, the
// oldest first.
func (a *archive) all(t workerType, now []store.Record) []store.Record {
	a.take(t, now)
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.SortedFunc(maps.Values(a.records[t.name]), func(x, y store.Record) int { return cmp.Compare(x.Seq, y.Seq) })
}
