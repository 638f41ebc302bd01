package sqlite

import (
	"context"
	"database/sql"
	"time"

	"github.com/slotlease/slotlease/internal/ledger"
	"github.com/slotlease/slotlease/store"
)

// tail are the newest records of a worker type, newest first.
type tail struct {
	records []store.Record
	whole   bool // The last is the oldest of all.
}

// state is what the records show to those who work by a line, at a reading of the boot clock.
func (t tail) state(n line, since time.Duration) ledger.State {
	return ledger.Read(t.records, t.whole, n.at(since))
}

// standing reads the newest records of each worker type: as many as it takes to know the terms that
// are in force at a time or later.
func standing(ctx context.Context, db rowser, since time.Time) (all []tail, err error) {
	var of string // the worker type whose records these are
	var oldest int64
	var records []store.Record
	done := func() {
		if n := len(records); n > 0 && store.CheckWorkerType(of) == nil && of != store.Sightings {
			all = append(all, tail{records, records[n-1].Seq == oldest})
		}
	}
	_, err = rows(ctx, db, func(row *sql.Rows) (_ struct{}, err error) {
		var first int64
		r, err := scan(row, &first)
		if r.WorkerType != of {
			done()
			of, oldest, records = r.WorkerType, first, nil
		}
		records = append(records, r)
		return struct{}{}, err
	}, selectSince, int64(store.MaxSeq), since.UnixMilli(), ledger.Deepest)
	done()
	return all, err
}
