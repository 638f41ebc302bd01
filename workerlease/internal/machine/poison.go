package machine

import (
	"errors"
	"fmt"
	"time"

	"github.com/slotlease/slotlease/internal/terms"
	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/workerlease/internal/timeline"
)

// poison reports why a record is unreadable, or impossible for a worker that keeps the
// rules. The zero Record, an empty ledger, is fine.
func poison(head store.Record, now timeline.Interval, ahead, longest time.Duration) error {
	return terms.Poison(head, now.Latest, ahead, longest)
}

// resetAt lets poison end no term: the term below it, which may be longer than one's own
// slots, stays in force to its end.
func resetAt(below store.Record, now timeline.Interval) (time.Time, int64) {
	at := ceil(now.Latest)
	return later(at, below.WindowEnd), max(at.UnixMilli(), below.Token+1)
}

func (f facts) poison(head store.Record) error {
	return f.m.Rules.Poison(head, f.at.Newest, f.m.Rules.Ahead, f.m.Rules.Longest)
}

// longestSpan bounds what a window of poison counts for. Without it, poison could stand
// for years.
const longestSpan = 24 * time.Hour

// span counts the windows below the newest as well, because a reset ends all of them: an
// unreadable record may lie on top of a grant that only this worker can't obey.
func span(poison []store.Record) (longest time.Duration) {
	for _, r := range poison {
		if r.CheckEnvelope() == nil {
			longest = max(longest, r.WindowEnd.Sub(r.WindowStart))
		}
	}
	return min(longest, longestSpan)
}

// unreachable is how many of the newest records stand above a gap.
func (f facts) unreachable(records []store.Record) int {
	rules := f.m.Rules
	valid := func(r store.Record) bool { return f.poison(r) == nil }
	return terms.Unreachable(records, len(records) < f.s.View.Asked, rules.Keep, valid, rules.Leads)
}

// reachable leaves out unreachable records, and reports them once. It reports false if
// more has to be read to know which they are: below poison, until there is a record that
// can be obeyed.
func (x *step) reachable(records []store.Record) (_ []store.Record, enough bool) {
	v := &x.s.View
	n := x.unreachable(records)
	deeper := len(records) >= v.Asked && v.Asked < terms.Deepest && x.needsMore(records[n:])
	if v.Depth = 0; n == 0 && x.defect(records) == nil && !deeper {
		if len(records) > 2 && x.needsMore(records[:2]) {
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
		if why := x.poison(records[0]); why != nil {
			err = fmt.Errorf("%w; %w", why, err)
		}
		x.note(Note{What: Poison, Slot: x.s.Bid.Slot, Record: records[0], Err: err})
	}
	return records[n:], true
}

// hasValidBase reports that some of the newest records can be obeyed, or that there are
// none below them: so it is known which term is in force.
func (f facts) hasValidBase(records []store.Record) bool {
	for i, r := range records {
		if _, known := f.tooLate(records[i:]); r.Seq == 1 || known && !f.impossible(records[i:]) {
			return true
		}
	}
	return false
}
