package linear

import (
	"hash/maphash"
	"math/bits"
	"slices"

	"github.com/anishathalye/porcupine"
)

// ledger is the knowledge about the records of one worker type after some operations.
// It never changes, so ledgers can share their common parts.
//
// Uncertainty is kept key by key: a key may be free or not, and its record may be one of
// several. One ledger stands for all combinations.
type ledger struct {
	head *entry
	// bound is the largest of all trims of unknown outcome: everything below it except
	// the head may vanish at any time.
	bound int64
	// open are the bounds of the other trims that go on, the largest last: below them the same holds until they close.
	open []int64
}

// entry is a key that is, or may be, taken. The entries of a ledger are linked,
// newest first; the first one is never gone.
type entry struct {
	seq int64
	// records has the record at the key. There are more only after a conflict at a key
	// that may have been free: each append that got the conflict may have stored its
	// own.
	records []identity
	// gone: a trim may have deleted it.
	gone  bool
	older *entry

	// allGone: it and all older ones have gone set.
	allGone bool
	hash    uint64 // of it and all older ones
}

var seed = maphash.MakeSeed()

// push puts an entry on top of older ones.
func (e *entry) push(seq int64, records []identity, gone bool) *entry {
	top := &entry{seq: seq, records: records, gone: gone, older: e, allGone: gone}
	if e != nil {
		top.allGone = gone && e.allGone
		top.hash = e.hash
	}
	for _, r := range records {
		top.hash = maphash.Comparable(seed, [2]uint64{top.hash, r.Sum})
	}
	top.hash = maphash.Comparable(seed, struct {
		older uint64
		seq   int64
		gone  bool
	}{top.hash, seq, gone})
	return top
}

// find returns the entry of a key, or nil.
func (e *entry) find(seq int64) *entry {
	for e != nil && e.seq > seq {
		e = e.older
	}
	if e == nil || e.seq != seq {
		return nil
	}
	return e
}

// set puts a record, or one of several, at a key; without any, the key is free.
func (e *entry) set(seq int64, records ...identity) *entry {
	switch {
	case e != nil && e.seq > seq:
		return e.older.set(seq, records...).push(e.seq, e.records, e.gone)
	case e != nil && e.seq == seq:
		e = e.older
	}
	if len(records) == 0 {
		return e
	}
	return e.push(seq, records, false)
}

// trim notes that what lies below a Seq may be gone.
func (e *entry) trim(before int64) *entry {
	if e == nil || e.allGone {
		return e
	}
	return e.older.trim(before).push(e.seq, e.records, e.gone || e.seq < before)
}

func (e *entry) equal(o *entry) bool {
	for ; e != o; e, o = e.older, o.older {
		if e == nil || o == nil || e.hash != o.hash || e.seq != o.seq || e.gone != o.gone || !slices.Equal(e.records, o.records) {
			return false
		}
	}
	return true
}

// free reports whether the key of an entry, or of none, may be free.
func (l ledger) free(e *entry) bool {
	return e == nil || e.gone || e != l.head && (e.seq < l.bound || len(l.open) > 0 && e.seq < l.open[len(l.open)-1])
}

// opened is open with one more bound, closed with one less.
func opened(open []int64, bound int64) []int64 {
	i, _ := slices.BinarySearch(open, bound)
	return slices.Insert(slices.Clone(open), i, bound)
}

func closed(open []int64, bound int64) (left []int64, ok bool) {
	i := slices.Index(open, bound)
	if i < 0 {
		return nil, false // It opens at the same instant, and first.
	}
	return slices.Delete(slices.Clone(open), i, i+1), true
}

// step is the sequential specification: the ledger after o, or false if o can't
// have been answered as it was.
func (l ledger) step(o *operation) (after ledger, ok bool) {
	switch o.Act {
	case actAppend:
		e := l.head.find(o.Seq)
		switch {
		case o.Outcome == done, o.seen:
			if !l.free(e) {
				return l, false
			}
			l.head = l.head.set(o.Seq, o.Record)
		case e == nil: // A conflict here is one with oneself.
			l.head = l.head.set(o.Seq, o.Record)
		case l.free(e):
			records := e.records
			if !slices.Contains(records, o.Record) {
				records = append(slices.Clip(records), o.Record)
			}
			l.head = l.head.set(o.Seq, records...)
		}
	case actGet:
		e := l.head.find(o.Seq)
		if o.Outcome == notFound {
			if !l.free(e) {
				return l, false
			}
			if e != nil {
				l.head = l.head.set(o.Seq)
			}
			return l, true
		}
		return l.saw(e, o.Found[0])
	case actTail:
		return l.tail(o.Seq, o.Found, o.trimmed)
	case actTrim:
		switch {
		case o.ghost():
			l.bound = max(l.bound, o.Seq)
		case o.phase == opens:
			l.open = opened(l.open, o.Seq)
		case o.phase == closes:
			left, ok := closed(l.open, o.Seq)
			if !ok {
				return l, false
			}
			if l.open = left; l.head == nil {
				break
			}
			l.head = l.head.older.trim(o.Seq).push(l.head.seq, l.head.records, false)
		}
	}
	return l, true
}

// saw notes that a record was read at the key of e.
func (l ledger) saw(e *entry, r identity) (after ledger, ok bool) {
	if e == nil || !slices.Contains(e.records, r) {
		return l, false
	}
	if e.gone || len(e.records) > 1 {
		l.head = l.head.set(e.seq, r)
	}
	return l, true
}

// tail notes the result of a tail, which may skip only records that are deleted, or will be by a trim that goes on.
func (l ledger) tail(limit int64, found []identity, trimmed int64) (after ledger, ok bool) {
	after = l
	skip := func(e *entry) bool {
		switch {
		case e.seq < trimmed && e != l.head:
		case l.free(e):
			after.head = after.head.set(e.seq)
		default:
			return false
		}
		return true
	}
	e := l.head
	for _, r := range found {
		for ; e != nil && e.seq > r.Seq; e = e.older {
			if !skip(e) {
				return l, false
			}
		}
		if e == nil || e.seq != r.Seq {
			return l, false
		}
		if after, ok = after.saw(e, r); !ok {
			return l, false
		}
		e = e.older
	}
	switch n := max(limit, 0); {
	case int64(len(found)) > n:
		return l, false
	case int64(len(found)) < n: // There was no more.
		for ; e != nil; e = e.older {
			if !skip(e) {
				return l, false
			}
		}
	}
	return after, true
}

// model is the specification in the form that the checker wants.
var model = porcupine.Model{
	Init: func() any { return ledger{} },
	Step: func(state, input, _ any) (bool, any) {
		after, ok := state.(ledger).step(input.(*operation))
		return ok, after
	},
	Equal: func(a, b any) bool {
		l, m := a.(ledger), b.(ledger)
		return l.bound == m.bound && slices.Equal(l.open, m.open) && l.head.equal(m.head)
	},
	Hash: func(state any) uint64 {
		l := state.(ledger)
		h := bits.RotateLeft64(uint64(l.bound), 32)
		for _, bound := range l.open {
			h = bits.RotateLeft64(h, 7) ^ uint64(bound)
		}
		if l.head != nil {
			h ^= l.head.hash
		}
		return h
	},
}
