package machine

import (
	"errors"
	"fmt"
	"time"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/workerlease/internal/timeline"
)

// poison reports why a record is unreadable, or impossible for a worker that keeps the
// rules. The zero Record, an empty ledger, is fine.
func poison(head store.Record, now timeline.Interval, ahead, longest time.Duration) error {
	if head.Seq == 0 {
		return nil
	}
	if err := head.CheckEnvelope(); err != nil {
		return err
	}
	limit := now.Latest.Add(ahead)
	switch length := head.WindowEnd.Sub(head.WindowStart); {
	case head.Seq >= store.MaxSeq:
		return errors.New("the ledger is full: no seq is left")
	case head.Kind == store.KindOverride && length > 0:
		return errors.New("it is an override, and has a window")
	case head.WindowStart.After(limit) && (length > 0 || head.Kind == store.KindOverride || head.WindowStart.After(limit.Add(longest))):
		// A record that grants nothing stands at the end of the term in force, but for an override.
		return fmt.Errorf("window starts at %s, more than %v ahead of store time",
			store.Format(head.WindowStart), ahead)
	case length > longest:
		return fmt.Errorf("window is %v long, more than %v", length, longest)
	case head.Token > limit.UnixMilli():
		return fmt.Errorf("token %d is more than %v ahead of store time", head.Token, ahead)
	}
	return nil
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

// leads reports whether two keys are adjacent; poison above a gap is ignored. No worker
// that keeps the rules has appended it, because a worker appends right after the key that
// it has read. If poison above a gap were superseded, the ledger would go on above it for
// a worker that reads it, and below it for a worker that reads an older state or whose
// append is still under way: the free key takes that append, and both would work.
func leads(lower, upper store.Record) bool { return upper.Seq == lower.Seq+1 }

// farthest is more records than workers append in centuries.
const farthest = 1 << 40

// unreachable is how many of the newest records stand above a gap: the ledger goes on
// below them, on the free keys, up to the keys where they stand.
func (f facts) unreachable(records []store.Record) (n int) {
	for i, r := range records {
		valid := f.poison(r) == nil
		var lower store.Record
		switch {
		case i+1 < len(records):
			lower = records[i+1]
		case len(records) >= f.s.View.Asked:
			return n // There is more below.
		case (r.Seq <= farthest || i > 0) && (valid || r.Seq > f.m.Rules.Keep):
			return n // There was: at least Keep records are kept.
		}
		switch {
		case !f.m.Rules.Leads(lower, r):
			n = i + 1
		case valid && f.poison(lower) == nil:
			return n
		}
	}
	return n
}

// deepest is how many records are read at most to find one that can be obeyed.
const deepest = 1 << 12

// reachable leaves out unreachable records, and reports them once. It reports false if
// more has to be read to know which they are: below poison, until there is a record that
// can be obeyed.
func (x *step) reachable(records []store.Record) (_ []store.Record, enough bool) {
	v := &x.s.View
	n := x.unreachable(records)
	deeper := len(records) >= v.Asked && v.Asked < deepest && x.needsMore(records[n:])
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
