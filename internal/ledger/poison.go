package ledger

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

// Obeyable reports whether workers can obey a record at some time, by what it says alone.
func Obeyable(r store.Record) bool { return r.Seq != 0 && always.Poison(r) == nil }
