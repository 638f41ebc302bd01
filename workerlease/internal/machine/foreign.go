package machine

import (
	"github.com/slotlease/slotlease/internal/terms"
	"github.com/slotlease/slotlease/store"
)

// defect reports why the first of some records, newest first, can't be obeyed: it is poison
// alone, or contradicts what was in force below it.
func (f facts) defect(records []store.Record) error {
	if len(records) == 0 {
		return nil
	}
	head, below := records[0], records[1:]
	if why := f.poison(head); why != nil {
		return why
	}
	if late, _ := f.tooLate(records); late {
		return terms.TooLate("it resets the ledger as of %s, and nothing below it lasts until then", store.Format(head.WindowStart))
	}
	return f.m.Rules.Contradicts(f.base(head, below), head)
}

// tooLate reports that the first of some records is a reset which stands later than anything
// below it lasts, by which nothing could be claimed for as long; known is false if no record
// below shows that.
func (f facts) tooLate(records []store.Record) (late, known bool) {
	r := records[0]
	if r.Kind != store.KindReset || !r.WindowStart.After(f.at.Newest.Latest.Add(f.m.Rules.Ahead)) {
		return false, true
	}
	for _, below := range records[1:] {
		if f.poison(below) != nil || !below.WindowStart.Before(below.WindowEnd) {
			continue // It lasts no longer than what is below it.
		}
		if known = true; !below.WindowEnd.Before(r.WindowStart) {
			return false, true
		}
	}
	return known, known
}

// base is the record below the head that the head has to agree with: the newest that is not
// poison. A reset ends all that was poison to its writer, too, and so does an override.
func (f facts) base(head store.Record, below []store.Record) store.Record {
	if supersedes(head) {
		return f.ended(head, below)
	}
	for _, r := range below {
		if f.poison(r) == nil {
			return r
		}
	}
	return store.Record{}
}

// ended is what was in force below a reset, which may be the newest record there.
func (f facts) ended(reset store.Record, below []store.Record) store.Record {
	if len(below) == 0 {
		return store.Record{}
	}
	if !f.asOf(reset, below[0]).impossible(below) {
		return below[0]
	}
	base, _ := f.inForce(reset, below[1:])
	return base
}

// inForce is the newest of the records below poison that was in force when a reset superseded
// that, and how long those down to it last that can be obeyed alone. Of two records that
// contradict one another, the lower one may be the foreign one, so neither is cut short.
//
// What is poison by the time is judged by the time of the reset's writer: windows too far ahead,
// and those that had not begun.
func (f facts) inForce(reset store.Record, below []store.Record) (base, held store.Record) {
	for i, r := range below {
		then := f.asOf(reset, r)
		impossible := then.impossible(below[i:])
		if late, known := then.tooLate(below[i:]); late || !known || then.poison(r) != nil || unbegun(r, then.at.Newest.Latest) || impossible && r.WindowStart.Equal(r.WindowEnd) {
			continue // It holds nothing.
		}
		held.WindowEnd, held.Token = later(held.WindowEnd, r.WindowEnd), max(held.Token, r.Token)
		if !impossible {
			return r, held
		}
	}
	return store.Record{}, held
}

// asOf are the facts as the writer of a reset knew them when it judged a record below it. They
// are those of now if the reset can't have been written then.
func (f facts) asOf(reset, r store.Record) facts {
	if f.m.Rules.Dated(reset, r) {
		f.at.Newest.Earliest, f.at.Newest.Latest = reset.ReadAt, reset.ReadAt
	}
	return f
}

// impossible reports that the first of some records is poison, as far as that and the
// record right below it show. What a reset may end is asked of the head alone: see base.
func (f facts) impossible(records []store.Record) bool {
	r := records[0]
	if late, _ := f.tooLate(records); late || f.poison(r) != nil {
		return true
	}
	return len(records) > 1 && r.Kind != store.KindReset && f.poison(records[1]) == nil &&
		f.m.Rules.Contradicts(records[1], r) != nil
}

// foreign reports that no worker can have appended a record that was found where one's own
// was to go.
func (f facts) foreign(r store.Record) bool {
	b := &f.s.Bid
	return b.Record.Kind != store.KindReset && f.m.Rules.Contradicts(b.Below, r) != nil
}

// needsMore reports that the newest records don't show whether the first of them can be
// obeyed or, if it can't, which term is in force below it.
func (f facts) needsMore(records []store.Record) bool {
	switch {
	case len(records) == 0 || records[len(records)-1].Seq == 1:
		return len(records) == 0
	case len(records) == 1:
		return true
	}
	head, below := records[0], records[1:]
	_, known := f.tooLate(records)
	resets := supersedes(head) && len(below) == 1 && (f.ended(head, below).Seq == 0 || f.defect(records) != nil)
	return resets || !known || (f.poison(head) != nil || f.poison(below[0]) != nil) && !f.hasValidBase(below)
}
