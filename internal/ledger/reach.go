package ledger

import "github.com/slotlease/slotlease/store"

// This file is which records workers follow, and how many have to be read to know that.

const (
	// Deepest is how many records are read at most to find one that can be obeyed.
	Deepest = 1 << 12
	// Keep is the number of the newest records that are never trimmed.
	Keep = 100
	// farthest is more records than workers append in centuries.
	farthest = 1 << 40
)

// leads reports that two keys are adjacent; poison above a gap is ignored. No worker
// that keeps the rules has appended it, because a worker appends right after the key that
// it has read. If poison above a gap were superseded, the ledger would go on above it for
// a worker that reads it, and below it for a worker that reads an older state or whose
// append is still under way: the free key takes that append, and both would work.
func leads(lower, upper store.Record) bool { return upper.Seq == lower.Seq+1 }

// Unreachable is how many of the newest records stand above a gap: the ledger goes on below
// them, on the free keys, up to the keys where they stand. Unless the records are whole there
// are more below.
func (v Reader) Unreachable(records []store.Record, whole bool) (n int) {
	for i, r := range records {
		valid := v.Poison(r) == nil
		var lower store.Record
		switch {
		case i+1 < len(records):
			lower = records[i+1]
		case !whole:
			return n // There is more below.
		case (r.Seq <= farthest || i > 0) && (valid || r.Seq > v.Rules.Keep):
			return n // There was: at least so many records are kept.
		}
		switch {
		case !v.Rules.Leads(lower, r):
			n = i + 1
		case valid && v.Poison(lower) == nil:
			return n
		}
	}
	return n
}

// HasBase reports that some of the newest records can be obeyed, or that there are
// none below them: so it is known which term is in force.
func (v Reader) HasBase(records []store.Record) bool {
	for i, r := range records {
		if _, known := v.tooLate(records[i:]); r.Seq == 1 || known && !v.Impossible(records[i:]) {
			return true
		}
	}
	return false
}

// Stuck reports that nothing below poison, the first of some records, shows what is in force, so
// that no worker supersedes it.
func (v Reader) Stuck(records []store.Record) bool {
	return records[0].Seq > 1 && !v.HasBase(records[1:])
}

// NeedsMore reports that the newest records don't show whether the first of them can be
// obeyed or, if it can't, which term is in force below it.
func (v Reader) NeedsMore(records []store.Record) bool {
	switch {
	case len(records) == 0 || records[len(records)-1].Seq == 1:
		return len(records) == 0
	case len(records) == 1:
		return true
	}
	head, below := records[0], records[1:]
	_, known := v.tooLate(records)
	resets := Supersedes(head) && len(below) == 1 && (v.ended(head, below).Seq == 0 || v.Defect(records) != nil)
	return resets || !known || (v.Poison(head) != nil || v.Poison(below[0]) != nil) && !v.HasBase(below)
}
