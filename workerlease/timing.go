package workerlease

import (
	"math"
	"time"

	"github.com/slotlease/slotlease/priority"
	"github.com/slotlease/slotlease/slots"
	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/workerlease/internal/machine"
)

// MaxClockDrift is the rate by which a worker's local clock and the store's clock are
// taken to differ at most: 1 ms per second. Where the store goes by the worker's own clock, and its stamps
// say so, they don't differ (see [store.Stamp]).
const MaxClockDrift = machine.MaxDrift

// Timing is what follows from a worker's options: when claims open, when leases are
// extended, and how often a worker asks its store. It is for planning and for display.
// It holds no clock, and is safe for concurrent use. Get it by Options.Timing.
type Timing struct {
	// Options are the resolved options.
	Options Options
	// ShortestSlot is the shortest slot of the schedule, as far as the bounds of Margin
	// and FailoverWithin go: of the first 200 slots after 2024-01-01, which is enough for
	// a week of any schedule that fires hourly.
	ShortestSlot time.Duration
	// ExtendEarly is how long before the end of a part of a slot its holder extends the
	// lease: a quarter of FailoverWithin, at most 5 min. 0 without FailoverWithin.
	ExtendEarly time.Duration
	// LongestPart bounds the length of every part of a slot but the last, which is as
	// long as the lead of the next slot. 0 without FailoverWithin.
	LongestPart time.Duration
	// ExtendSampleAge is how old a worker's newest sample of store time may be when it
	// extends a part of a slot. It takes another sample if it is older.
	ExtendSampleAge time.Duration
	// TrimEvery and TrimKeep say when old records are deleted: by a worker that wins a
	// record number that TrimEvery divides. It looks for a record older than
	// Options.Retention, TrimKeep below its own, then 2 × as far, and so on. The newest
	// TrimKeep records are never deleted.
	TrimEvery, TrimKeep int64

	config machine.Config
}

// Timing resolves the options, and returns what follows from them. Errors are those of
// Resolved.
func (o Options) Timing() (Timing, error) {
	resolved, err := o.Resolved()
	if err != nil {
		return Timing{}, err
	}
	c := resolved.machine(&machine.Standard).Config
	_, extending := c.SampleAges(0)
	t := Timing{
		Options: resolved, ShortestSlot: slots.Shortest(resolved.Schedule),
		ExtendEarly: c.Early(), LongestPart: c.LongestPart(), ExtendSampleAge: extending,
		TrimEvery: c.Rules.TrimEvery, TrimKeep: c.Rules.Keep, config: c,
	}
	return t, nil
}

// Lead is how long before the start of a slot its claims open.
func (t Timing) Lead(slot slots.Slot) time.Duration {
	if t.config.Schedule == nil {
		return 0 // Options.Timing has not made it.
	}
	return t.config.LeadOf(slot)
}

// LeadAfter is the lead of a slot that follows one of a length.
func (t Timing) LeadAfter(length time.Duration) time.Duration { return t.config.LeadAfter(length) }

// StartWithin is how late the first attempt at a slot may begin, with a Job: Job.StartWithin or, if that
// isn't set, a quarter of the slot, at most 1 h.
func (t Timing) StartWithin(slot slots.Slot) time.Duration { return t.config.StartsWithin(slot) }

// CatchUpWithin is how long before a time in a slot another one may have started that is run late then: Job.CatchUpWithin
// or, if that isn't set, 24 h or the length of the slot, if that is longer. 0 if nothing is caught up.
func (t Timing) CatchUpWithin(slot slots.Slot) time.Duration {
	if t.config.CatchUp == machine.CatchUpNone {
		return 0
	}
	return t.config.CatchesUpWithin(slot)
}

// JobTimes are the times of the Job as its workers say them in the roster, those of the shortest slot; nil without a Job.
func (t Timing) JobTimes() *store.JobTimes {
	j := t.Options.Job
	if j == nil {
		return nil
	}
	shortest := slots.Slot{Start: typicalYear, End: typicalYear.Add(t.ShortestSlot)}
	return &store.JobTimes{
		StartWithin: sayable(t.StartWithin(shortest)), StartDefault: j.StartWithin == 0, Overrun: j.Overrun.String(), Timeout: sayable(j.Timeout),
		CatchUp: j.CatchUp.String(), CatchUpWithin: sayable(t.CatchUpWithin(shortest)), MaxAttempts: j.MaxAttempts, RetriesOver: sayable(j.RetriesOver(t.ShortestSlot)),
	}
}

// sayable is a time that a roster takes.
func sayable(d time.Duration) time.Duration { return min(d, store.MaxJobTime) }

// ClaimSampleAge is how old a worker's newest sample of store time may be when it claims
// a slot with a lead. It takes another sample if it is older.
func (t Timing) ClaimSampleAge(lead time.Duration) time.Duration {
	if t.config.Rules == nil {
		return 0
	}
	claiming, _ := t.config.SampleAges(lead)
	return claiming
}

// Turns are the turns of a slot whose claims open lead before it. spread is how far apart
// two workers may be in acting at one instant: the uncertainty of store time and the
// duration of an append. It widens the steps.
func (t Timing) Turns(lead, spread time.Duration) priority.Turns {
	return priority.NewTurns(lead, t.Options.Step, spread)
}

// Parts are the windows in which a worker takes a slot that it has from its start on:
// one without FailoverWithin.
func (t Timing) Parts(slot slots.Slot) []slots.Slot {
	var parts []slots.Slot
	for from := slot.Start; from.Before(slot.End); {
		end := t.config.WindowEnd(slot, from)
		parts = append(parts, slots.Slot{Start: from, End: end})
		from = end
	}
	return parts
}

// PartsBefore is how many equal parts a slot is cut into between its start and the time
// at which claims for the next slot open, which is open later. One more part follows with
// FailoverWithin. Without it, PartsBefore is 1.
func (t Timing) PartsBefore(open time.Duration) int64 { return t.config.PartsBefore(open) }

// ExtendsBefore is how long before its end a worker extends a lease, at the latest,
// unless another takes over: 0 if it doesn't. slot is the lease's newest slot, or that of its job, and end
// the end of its window, as in [Lease].
func (t Timing) ExtendsBefore(slot slots.Slot, end time.Time) time.Duration {
	finishes := t.config.Once && t.config.Finishes
	if finishes && end.After(slot.End) {
		slot = t.config.Schedule.At(end.Add(-1)) // The run goes on after its own.
	}
	if end.Before(slot.End) {
		return t.ExtendEarly
	}
	if !t.Options.Continuous && !finishes {
		return 0
	}
	lead := t.LeadAfter(slot.Length())
	if t.Options.NoFailback || finishes {
		return lead
	}
	// However slow the store is, the worker's turn comes no later than this.
	turns := t.Turns(lead, math.MaxInt64)
	p, first := t.Options.Priority, t.Options.TieBreak != priority.Spread // who holds the lease may not be who is to have it
	if t.Options.Policy != nil {
		p = priority.Lowest
	}
	return lead - turns.Offset(p, t.Options.TieBreak, first, math.MaxUint64)
}

// PresenceEvery is how often a worker renews its presence in the roster (see ClientOptions.Roster) if nothing
// changes: once for each slot, but no sooner than after 10 s and no later than after 5 min.
func (t Timing) PresenceEvery() time.Duration { return presenceInterval(t.ShortestSlot) }

// presenceInterval is PresenceEvery, by the shortest slot.
func presenceInterval(shortest time.Duration) time.Duration {
	return min(max(shortest, presenceEvery), mostPresence)
}

// typicalYear is where slots are looked at to check options: the same for every worker.
var typicalYear = time.Date(2024, 1, 1, 0, 0, 0, 0, time.UTC)
