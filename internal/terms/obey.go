package terms

import (
	"time"

	"github.com/slotlease/slotlease/store"
)

const (
	// Longest is the longest window that workers obey.
	Longest = 366 * 24 * time.Hour
	// Ahead is how far ahead of store time a window may start, or a token be, that workers
	// obey: twice the longest lead.
	Ahead = 10 * time.Minute
	// Deepest is how many records are read at most to find one that can be obeyed.
	Deepest = 1 << 12
	// Keep is the number of the newest records that are never trimmed.
	Keep = 100
	// farthest is more records than workers append in centuries.
	farthest = 1 << 40
)

// Poison reports why a record is unreadable, or impossible for a worker that keeps the rules,
// given the latest that store time may be, how far ahead of it a window may start, and how long
// it may be; nil if it is neither. The zero Record, an empty ledger, is fine.
func Poison(r store.Record, latest time.Time, ahead, longest time.Duration) error {
	if r.Seq == 0 {
		return nil
	}
	if err := r.CheckEnvelope(); err != nil {
		return broken(Unreadable, "%w", err)
	}
	limit := latest.Add(ahead)
	switch length := r.WindowEnd.Sub(r.WindowStart); {
	case r.Seq >= store.MaxSeq:
		return broken(Full, "the ledger is full: no seq is left")
	case r.Kind == store.KindOverride && length > 0:
		return broken(Override, "it is an override, and has a window")
	case r.WindowStart.After(limit) && (length > 0 || r.Kind == store.KindOverride || r.WindowStart.After(limit.Add(longest))):
		// A record that grants nothing stands at the end of the term in force, but for an override.
		return broken(WindowAhead, "window starts at %s, more than %v ahead of store time",
			store.Format(r.WindowStart), ahead)
	case length > longest:
		return broken(TooLong, "window is %v long, more than %v", length, longest)
	case r.Token > limit.UnixMilli():
		return broken(TokenAhead, "token %d is more than %v ahead of store time", r.Token, ahead)
	}
	return nil
}

// always is later than all times of records.
var always = time.Date(10_000, time.January, 1, 0, 0, 0, 0, time.UTC)

// Obeyable reports whether workers can obey a record at some time, by what it says alone.
func Obeyable(r store.Record) bool { return r.Seq != 0 && Poison(r, always, Ahead, Longest) == nil }

// Leads reports whether two keys are adjacent; poison above a gap is ignored. No worker
// that keeps the rules has appended it, because a worker appends right after the key that
// it has read. If poison above a gap were superseded, the ledger would go on above it for
// a worker that reads it, and below it for a worker that reads an older state or whose
// append is still under way: the free key takes that append, and both would work.
func Leads(lower, upper store.Record) bool { return upper.Seq == lower.Seq+1 }

// Unreachable is how many of the newest records stand above a gap: the ledger goes on below
// them, on the free keys, up to the keys where they stand. Unless the records are whole there
// are more below. keep is how many of the newest are never trimmed, and leads is asked with the
// zero Record where nothing is below.
func Unreachable(records []store.Record, whole bool, keep int64, obeyed func(store.Record) bool, leads func(lower, upper store.Record) bool) (n int) {
	for i, r := range records {
		valid := obeyed(r)
		var lower store.Record
		switch {
		case i+1 < len(records):
			lower = records[i+1]
		case !whole:
			return n // There is more below.
		case (r.Seq <= farthest || i > 0) && (valid || r.Seq > keep):
			return n // There was: at least so many records are kept.
		}
		switch {
		case !leads(lower, r):
			n = i + 1
		case valid && obeyed(lower):
			return n
		}
	}
	return n
}
