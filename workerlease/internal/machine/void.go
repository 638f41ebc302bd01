package machine

import (
	"fmt"
	"slices"

	"github.com/slotlease/slotlease/store"
)

// A reset is void for a worker that can obey the record below it. Only its writer couldn't:
// it runs another version, or has been told a wrong time. It must not stop those who can.

// withoutVoid leaves out resets of what can be obeyed, of records that are newest first.
func (f facts) withoutVoid(records []store.Record) []store.Record {
	resets := func(r store.Record) bool { return r.Kind == store.KindReset }
	if !slices.ContainsFunc(records, resets) {
		return records
	}
	kept := slices.Clone(records)
	for i := len(kept) - 2; i >= 0; i-- {
		if resets(kept[i]) && f.asOf(kept[i]).defect(kept[i+1:]) == nil {
			kept = slices.Delete(kept, i, i+1)
		}
	}
	return kept
}

// skipVoid leaves out void resets, remembers where they stand, and reports them once.
func (x *step) skipVoid(records []store.Record) []store.Record {
	kept, v := x.withoutVoid(records), Void{}
	if len(kept) < len(records) && kept[0].Seq < records[0].Seq {
		v = Void{Head: kept[0].Seq, Top: records[0].Seq}
	}
	if v.Top > 0 && v != x.s.View.Void {
		err := fmt.Errorf("it resets seq %d, which can be obeyed, so it is not followed", v.Head)
		x.note(Note{What: Poison, Slot: x.s.Bid.Slot, Record: records[0], Err: err})
	}
	x.s.View.Void = v
	return kept
}

// after is the key after a record's, as far as that was read: above resets of it that are void.
func (f facts) after(seq int64) int64 {
	if v := f.s.View.Void; v.Head == seq {
		return v.Top + 1
	}
	return seq + 1
}
