// Package recordtest makes records of a ledger for tests. All are of the worker type
// "export", whose schedule is "every 5m", around [Noon].
package recordtest

import (
	"time"

	"github.com/slotlease/slotlease/store"
)

// Noon is a boundary of the schedule.
var Noon = time.Date(2026, time.March, 2, 12, 0, 0, 0, time.UTC)

// Minutes is a number of minutes after Noon.
func Minutes(m float64) time.Time { return Noon.Add(time.Duration(m * float64(time.Minute))) }

// Grant is a grant of the slot of 5 min that starts n slots after Noon.
func Grant(seq int64, n int, holder string) store.Record {
	start := Noon.Add(time.Duration(n) * 5 * time.Minute)
	return store.Record{
		WorkerType: "export", Seq: seq, Kind: store.KindGrant, InstanceID: holder,
		Claim: "claim-of-" + holder + start.Format("1504"), Token: start.UnixMilli(),
		SlotStart: start, SlotEnd: start.Add(5 * time.Minute),
		WindowStart: start, WindowEnd: start.Add(5 * time.Minute),
		Schedule: "every 5m", FixedAt: start.Add(-9234 * time.Millisecond), ReadAt: start.Add(-9 * time.Second),
		Worker: store.Worker{Host: "host", PID: 1, Version: "v0.1.0"},
	}
}

// Part is a grant with another Seq and another window, in minutes after Noon.
func Part(seq int64, g store.Record, from, to float64) store.Record {
	g.Seq, g.WindowStart, g.WindowEnd = seq, Minutes(from), Minutes(to)
	return g
}

// NextSlot is a grant by which the term of g goes on in the slot that starts n slots
// after Noon, with a window in minutes after Noon.
func NextSlot(seq int64, g store.Record, n int, from, to float64) store.Record {
	next := Grant(seq, n, g.InstanceID)
	next.Claim, next.Token = g.Claim, g.Token
	return Part(seq, next, from, to)
}

// Release releases the rest of a grant at a time.
func Release(g store.Record, seq int64, at time.Time) store.Record {
	g.Seq, g.Kind, g.WindowStart, g.WindowEnd = seq, store.KindRelease, at, at
	return g
}

// Done says at a time, under a grant, that the slot that ends at until is done.
func Done(g store.Record, seq int64, until, at time.Time) store.Record {
	g.Seq, g.Kind, g.WindowStart, g.DoneUntil, g.ReadAt = seq, store.KindDone, g.WindowEnd, until, at
	return g
}

// Outcome says, under a grant, what came of the work of its slot: it began a second after the slot
// and ended at a time.
func Outcome(g store.Record, ended time.Time, result store.Result) store.Outcome {
	return store.Outcome{
		Result: result, InstanceID: g.InstanceID, Attempt: g.Attempt, SlotStart: g.SlotStart, SlotEnd: g.SlotEnd,
		Begun: g.SlotStart.Add(time.Second), Ended: ended,
	}
}

// Told is a record of an outcome alone, appended to g.
func Told(g store.Record, seq int64, o store.Outcome) store.Record {
	g.Seq, g.Kind, g.WindowStart, g.Metadata = seq, store.KindOutcome, g.WindowEnd, o.Metadata()
	return g
}
