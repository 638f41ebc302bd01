package inspect

import (
	"context"
	"fmt"
	"time"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/workerlease"
	"github.com/slotlease/slotlease/workerlease/history"
)

// snapshot is the state of a worker type's slots at a moment.
type snapshot struct {
	at         time.Time
	store      string
	workerType string
	types      Types // if workerType is empty
	rows       []history.Entry
	reasons    map[time.Time][]Missing // why slots that nobody had were missed, by their starts
	dated      bool                    // the table is read later: its times need their dates
	limit      int                     // the number of records that was read, at most
	charges    workerlease.Charges
	copied     copied // if it was taken of a copy
	warning    string // of the store, or empty
	note       string // the store's note, or empty
	try        string // what an operator may do if no slot can be claimed for long; else empty
}

// mostRecords bounds how much is read of a ledger in which leases are extended.
const mostRecords = 10_000

// tryOverride is the command that ends what leaves nothing to claim for long, or poison that no
// worker supersedes.
func tryOverride(workerType string, head history.Head, rows []history.Entry) string {
	blocked := len(rows) > 0 && !rows[len(rows)-1].BlocksUntil.IsZero()
	full := head.Record.Seq >= store.MaxSeq-1
	if !blocked && !head.Stuck || head.Record.Seq == 0 || full {
		return ""
	}
	return fmt.Sprintf("leasectl override --worker-type %s --seq %d", workerType, head.Record.Seq)
}

// take reads enough of a ledger for the last slots: a slot has a grant, and perhaps a
// release or a done record. If leases are extended it reads more, as often as needed.
// It does so, too, where nothing but poison is read. limit is the number of records to begin
// with.
func take(ctx context.Context, l store.Ledger, o Options, limit int) (snapshot, error) {
	found := snapshot{workerType: o.WorkerType}
	var stamp store.Stamp
	for found.limit = max(limit, 3*o.Last+10); o.WorkerType != ""; found.limit = min(4*found.limit, mostRecords) {
		records, newest, err := l.Tail(ctx, o.WorkerType, found.limit)
		if err == nil && newest.IsZero() {
			newest, err = l.Now(ctx)
		}
		if err != nil {
			return snapshot{}, err
		}
		stamp, found.rows = newest, history.Read(records, newest.Time, nil)
		head, known := history.FindHead(records, found.limit, newest.Time)
		found.try = tryOverride(o.WorkerType, head, found.rows)
		// One row more, because the first may have begun before.
		if known && len(found.rows) > o.Last || len(records) < found.limit || found.limit >= mostRecords {
			break
		}
	}
	if stamp.IsZero() {
		var err error
		if stamp, err = l.Now(ctx); err != nil {
			return snapshot{}, err
		}
	}
	found.at, found.rows = stamp.Time, found.rows[max(0, len(found.rows)-o.Last):]
	found.reasons = reasons(ctx, l, o.WorkerType, found.rows)
	if o.WorkerType != "" && len(found.rows) == 0 {
		return found, CheckType(ctx, l, o.WorkerType)
	}
	return found, nil
}
