package ledger

import (
	"time"

	"github.com/slotlease/slotlease/store"
)

// This file is the rule that all else rests on: which record workers obey.

// Defect reports why the first of some records can't be obeyed, nil if it can: it is poison
// alone, or contradicts what was in force below it. [Broken] names the rule.
func (v Reader) Defect(records []store.Record) error {
	if len(records) == 0 {
		return nil
	}
	head, below := records[0], records[1:]
	if why := v.Poison(head); why != nil {
		return why
	}
	if late, _ := v.tooLate(records); late {
		return broken(ResetLate, "it resets the ledger as of %s, and nothing below it lasts until then", store.Format(head.WindowStart))
	}
	return v.Rules.Contradicts(v.base(head, below), head)
}

// Impossible reports that the first of some records is poison, as far as that and the
// record right below it show. What a reset may end is asked of the head alone: see base.
func (v Reader) Impossible(records []store.Record) bool {
	r := records[0]
	if late, _ := v.tooLate(records); late || v.Poison(r) != nil {
		return true
	}
	return v.contradicted(records)
}

// contradicted reports that the first of some records contradicts the one right below it. No worker
// has appended it: above what it doesn't obey, it appends a reset first.
func (v Reader) contradicted(records []store.Record) bool {
	return len(records) > 1 && records[0].Kind != store.KindReset && v.Poison(records[1]) == nil &&
		v.Rules.Contradicts(records[1], records[0]) != nil
}

// PassedOver is why the writer of a reset, the first of some records, could not obey the record
// right below that: it may have been too far ahead then. It is nil if it could.
func (v Reader) PassedOver(records []store.Record) error {
	below := records[1:]
	if len(below) == 0 {
		return nil
	}
	return v.asOf(records[0], below[0]).Defect(below)
}

// Unfit is why the head can't be obeyed, given the record in force below it, which is the zero
// Record if none is known; nil if it can.
func (v Reader) Unfit(below, head store.Record) error {
	records := []store.Record{head}
	if head.Seq > below.Seq+1 {
		records = append(records, store.Record{Seq: head.Seq - 1, Defect: "it was passed over"})
	}
	if below.Seq > 0 {
		records = append(records, below)
	}
	return v.Defect(records)
}

// tooLate reports that the first of some records is a reset which stands later than anything
// below it lasts, by which nothing could be claimed for as long; known is false if no record
// below shows that.
func (v Reader) tooLate(records []store.Record) (late, known bool) {
	if !v.resetsAhead(records[0]) {
		return false, true
	}
	return outlives(records[0], v.lasts(records)[0])
}

// resetsAhead reports that a record is a reset which stands further ahead than workers claim.
func (v Reader) resetsAhead(r store.Record) bool {
	return r.Kind == store.KindReset && r.WindowStart.After(v.Latest.Add(v.Rules.Ahead))
}

// outlives reports that such a reset stands later than what is below it lasts; the zero time isn't known.
func outlives(reset store.Record, lasts time.Time) (late, known bool) {
	return !lasts.IsZero() && lasts.Before(reset.WindowStart), !lasts.IsZero()
}

// lasts is how long anything lasts below each of some records, by what isn't poison alone; the zero time isn't known.
func (v Reader) lasts(records []store.Record) []time.Time {
	all := make([]time.Time, len(records))
	for i := len(records) - 1; i > 0; i-- {
		all[i-1] = all[i]
		if r := &records[i]; r.WindowStart.Before(r.WindowEnd) && r.WindowEnd.After(all[i]) && v.Poison(*r) == nil {
			all[i-1] = r.WindowEnd
		}
	}
	return all
}

// base is the record below the head that the head has to agree with: the newest that is not
// poison. A reset ends all that was poison to its writer, too, and so does an override.
func (v Reader) base(head store.Record, below []store.Record) store.Record {
	if Supersedes(head) {
		return v.ended(head, below)
	}
	for _, r := range below {
		if v.Poison(r) == nil {
			return r
		}
	}
	return store.Record{}
}

// ended is what was in force below a reset, which may be the newest record there.
func (v Reader) ended(reset store.Record, below []store.Record) store.Record {
	if len(below) == 0 {
		return store.Record{}
	}
	if !v.asOf(reset, below[0]).Impossible(below) {
		return below[0]
	}
	base, _ := v.InForce(reset, below[1:])
	return base
}

// InForce is the newest of the records below poison that was in force when a reset superseded
// that, and how long those down to it last that can be obeyed alone. Of two records that
// contradict one another, the lower one may be the foreign one, so neither is cut short.
//
// What is poison by the time is judged by the time of the reset's writer: windows too far ahead,
// and those that had not begun.
func (v Reader) InForce(reset store.Record, below []store.Record) (base, held store.Record) {
	lasts := map[Reader][]time.Time{} // looked for once, since foreign resets may be many
	for i, r := range below {
		then := v.asOf(reset, r)
		late, known := false, true
		if then.resetsAhead(r) {
			if lasts[then] == nil {
				lasts[then] = then.lasts(below)
			}
			late, known = outlives(r, lasts[then][i])
		}
		impossible := late || then.Poison(r) != nil || then.contradicted(below[i:])
		if late || !known || then.Poison(r) != nil || unbegun(r, then.Latest) || impossible && r.WindowStart.Equal(r.WindowEnd) {
			continue // It holds nothing.
		}
		if r.WindowEnd.After(held.WindowEnd) {
			held.WindowEnd = r.WindowEnd
		}
		held.Token = max(held.Token, r.Token)
		if !impossible {
			return r, held
		}
	}
	return store.Record{}, held
}

// unbegun reports that a window below poison hasn't begun at a time. It was granted by a
// clock which has jumped: claims are made less ahead than poison is watched, and no poison is taken
// for older than what is below it. By that clock it is over. (What grants nothing stands at the end
// of a window, which may be far ahead.)
func unbegun(r store.Record, at time.Time) bool {
	return r.WindowEnd.After(r.WindowStart) && r.WindowStart.After(at)
}

// asOf judges as the writer of a reset did when it read a record below it. It is as of now if
// the reset can't have been written then.
func (v Reader) asOf(reset, r store.Record) Reader {
	if v.Rules.Dated(reset, r) {
		v.Latest = reset.ReadAt
	}
	return v
}

// dated takes no reset's word for being older than a record below it, as one is that was copied
// from elsewhere: by the time of long ago everything is too far ahead, and nothing in force. An
// override may end that anyhow.
func dated(reset, below store.Record) bool {
	known := !below.ReadAt.IsZero() && !below.ReadAt.After(reset.ReadAt)
	return !reset.ReadAt.IsZero() && (known || reset.Kind == store.KindOverride)
}
