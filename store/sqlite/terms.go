package sqlite

import (
	"context"
	"database/sql"
	"slices"
	"time"

	"github.com/slotlease/slotlease/internal/terms"
	"github.com/slotlease/slotlease/store"
)

// standing reads what the newest records of each worker type show: as many as it takes to know the
// terms that are in force at some times, of which any may be store time, or later.
func standing(ctx context.Context, f *file, db rowser, times []time.Time) (all []terms.State, err error) {
	since, latest := slices.MinFunc(times, time.Time.Compare), slices.MaxFunc(times, time.Time.Compare)
	text, err := f.text(ctx, selectSince)
	if err != nil {
		return nil, err
	}
	var of string // the worker type whose records these are
	var oldest int64
	var records []store.Record
	done := func() {
		if n := len(records); n > 0 && store.CheckWorkerType(of) == nil && of != store.Sightings {
			all = append(all, terms.Read(records, records[n-1].Seq == oldest, latest))
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
	}, text, int64(store.MaxSeq), since.UnixMilli(), terms.Deepest)
	done()
	return all, err
}
