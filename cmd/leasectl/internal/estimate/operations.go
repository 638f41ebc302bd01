package estimate

import (
	"time"

	"github.com/slotlease/slotlease/workerlease"
)

// operations are how many operations of a ledger are called, on average.
type operations struct {
	Now, Tail, Append, Get, Trim float64
	// Deleted is how many records the trims delete.
	Deleted float64
}

func (o operations) plus(p operations) operations {
	return operations{
		o.Now + p.Now, o.Tail + p.Tail, o.Append + p.Append,
		o.Get + p.Get, o.Trim + p.Trim, o.Deleted + p.Deleted,
	}
}

func (o operations) times(n float64) operations {
	return operations{o.Now * n, o.Tail * n, o.Append * n, o.Get * n, o.Trim * n, o.Deleted * n}
}

// winner and loser are the operations of one worker that claims a slot, in a steady
// state, after a wait. In slots that are hardly longer than a second there are fewer,
// because the last sample of the time is still fresh.
func winner(t workerlease.Timing, wait, lead time.Duration) operations {
	o := loser(t, wait, lead)
	o.Append = 1
	return o
}

func loser(t workerlease.Timing, wait, lead time.Duration) operations {
	o := operations{Now: 1, Tail: 1}
	// After a long wait the first sample comes earlier, by as much as the clocks may have
	// drifted apart, and another one follows when the turn comes.
	if drift := time.Duration(float64(wait) * workerlease.MaxClockDrift); drift > t.ClaimSampleAge(lead) {
		o.Now = 2
	}
	return o
}

// trimming are the operations of one trim, which looks for a record older than the
// retention, twice as far back each time, and deletes the records that have gathered
// since the last trim. between is the time from record to record.
func trimming(t workerlease.Timing, between time.Duration) operations {
	looks := 1.0
	for depth := time.Duration(t.TrimKeep); depth*between < t.Options.Retention; depth *= 2 {
		looks++
	}
	return operations{Get: looks, Trim: 1, Deleted: float64(t.TrimEvery)}
}
