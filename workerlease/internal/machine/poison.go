package machine

import (
	"errors"
	"fmt"
	"time"

	"github.com/slotlease/slotlease/internal/ledger"
	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/workerlease/internal/timeline"
)

// resetAt lets poison end no term: the term below it, which may be longer than one's own
// slots, stays in force to its end.
func resetAt(below store.Record, now timeline.Interval) (time.Time, int64) {
	at := ceil(now.Latest)
	return later(at, below.WindowEnd), max(at.UnixMilli(), below.Token+1)
}

// reachable leaves out unreachable records, and reports them once. It reports false if
// more has to be read to know which they are: below poison, until there is a record that
// can be obeyed.
func (x *step) reachable(records []store.Record) (_ []store.Record, enough bool) {
	v := &x.s.View
	reader := x.ledger()
	n := reader.Unreachable(records, len(records) < v.Asked)
	deeper := len(records) >= v.Asked && v.Asked < ledger.Deepest && reader.NeedsMore(records[n:])
	if v.Depth = 0; n == 0 && reader.Defect(records) == nil && !deeper {
		if len(records) > 2 && reader.NeedsMore(records[:2]) {
			v.Depth = lookBack
		}
		v.Unreachable = 0
		return records, true
	}
	v.Depth = max(v.Asked, lookBack)
	if deeper {
		if v.Asked >= lookBack {
			v.Depth = 16 * v.Asked
		}
		return nil, false
	}
	if n == 0 {
		v.Unreachable = 0
		return records, true
	}
	if v.Unreachable != records[0].Seq {
		v.Unreachable = records[0].Seq
		err := errors.New("a key below it is free, so it is not followed")
		if why := reader.Poison(records[0]); why != nil {
			err = fmt.Errorf("%w; %w", why, err)
		}
		x.note(Note{What: Poison, Slot: x.s.Bid.Slot, Record: records[0], Err: err})
	}
	return records[n:], true
}
