package inspect

import (
	"context"
	"fmt"
	"time"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/workerlease/history"
)

// snapshot is the state of a worker type's slots at a moment.
type snapshot struct {
	glimpse

	workerType string
	types      Types // if workerType is empty
	rows       []history.Entry
	reasons    map[time.Time][]Missing // why slots that nobody had were missed, by their starts
	lost       []string                // if there are none: who says that the store has lost them
	limit      int                     // the number of records that was read, at most
	note       string                  // the store's note, or empty
	try        string                  // what an operator may do if no slot can be claimed for long; else empty
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
func (s *snapshot) take(ctx context.Context, l store.Ledger, o Options, limit int) error {
	s.workerType = o.WorkerType
	var stamp store.Stamp
	for s.limit = max(limit, 3*o.Last+10); o.WorkerType != ""; s.limit = min(4*s.limit, mostRecords) {
		records, newest, err := l.Tail(ctx, o.WorkerType, s.limit)
		if err == nil && newest.IsZero() {
			newest, err = l.Now(ctx)
		}
		if err != nil {
			return err
		}
		stamp, s.rows = newest, history.Read(records, newest.Time, nil)
		head, known := history.FindHead(records, s.limit, newest.Time)
		s.try = tryOverride(o.WorkerType, head, s.rows)
		// One row more, because the first may have begun before.
		if known && len(s.rows) > o.Last || len(records) < s.limit || s.limit >= mostRecords {
			break
		}
	}
	if stamp.IsZero() {
		var err error
		if stamp, err = l.Now(ctx); err != nil {
			return err
		}
	}
	s.at = stamp.Time
	mayBegin(s.rows, func() []store.Presence {
		crew, _ := rosterOf(ctx, l, o.WorkerType)
		return crew
	}, s.at)
	s.rows = s.rows[max(0, len(s.rows)-o.Last):]
	s.reasons = reasons(ctx, l, o.WorkerType, s.rows)
	if o.WorkerType != "" && len(s.rows) == 0 {
		crew, _ := rosterOf(ctx, l, o.WorkerType)
		s.lost = SayLost(crew, s.at)
		return CheckType(ctx, l, o.WorkerType)
	}
	return nil
}
