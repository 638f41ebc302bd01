package workerlease

import (
	"fmt"
	"time"

	"github.com/slotlease/slotlease/workerlease/internal/machine"
)

// Job is a task that is done once for each slot. When the task returns nil, a record closes
// the slot, and no worker runs the task for it again. When the task fails, or its worker
// dies, another worker tries again. All workers of a type should have the same Job and the
// same schedule. When that changes, each slot is run that starts later than the newest one whose
// work is done, whatever schedule that had.
//
// The default of Options.FailoverWithin is a quarter of a slot for a job, at most 1 min, at
// least 8 × Margin, and at least what the store's clock is good enough for: see store.Description.
type Job struct {
	// StartWithin is how late after the start of its slot, in store time, the first attempt may
	// begin. Until then any worker that is there begins it, also one that has just started. After
	// it the slot is missed, and a worker reports that. Attempts that follow a failure or a crash go
	// on as long as the slot and MaxAttempts allow. 10 ms to the shortest slot. Default: a quarter of
	// the slot, at most 1 h; for TryClaim the whole slot.
	StartWithin time.Duration

	// Overrun is what happens to a task that runs when its slot ends. Default: Finish.
	Overrun OverrunPolicy

	// Timeout is the longest that a run may take, by the local clock, however many slots that is. Then
	// its context ends with ErrTimedOut, and the attempt has failed, whatever the task returns. 10 ms or more, and with Stop
	// less than the longest slot. Default: 0, no bound.
	Timeout time.Duration

	// CatchUp is which missed slots are run late, as soon as a worker is there, also right after it
	// has started: one at a time, the oldest first, each with the attempts of any slot. Lease.Missed is
	// true then. A worker type that was never done catches nothing up. Not with TryClaim. Default: CatchUpNone.
	//
	// A slot that began while the task ran on for an earlier one is skipped. If that run fails, or its worker dies, it isn't
	// done, and is caught up like any other, as are slots that begin while the task runs late for a missed one. Missed
	// events name those that are given up, as soon as a later one is claimed or nothing can be run late any more.
	CatchUp CatchUp

	// CatchUpWithin is how long ago, in store time, a slot may have started that is caught up: more than
	// StartWithin, up to 366 days. Default: 24 h, or the length of the slot if that is longer.
	CatchUpWithin time.Duration

	// MaxAttempts is how often a slot is tried at most, by all workers together: 0 to
	// 1,000,000. The ledger counts an attempt when a slot is claimed. It doesn't count if its worker
	// begins nothing and gives the slot back, is stopped, or is told by an operator to end: neither a
	// deployment nor an order uses up the attempts, an error, a run that is cut and a crash do. Lease.Attempt numbers
	// all of them. Default: 0, no limit; with CatchUpAll CatchUpAttempts, since a slot that always fails
	// would keep back all others. Without a limit, a slot is tried until it ends.
	MaxAttempts int

	// MinRetry is the least time from an attempt that has failed to the next one, whichever worker makes that. It doubles
	// with each that counts, up to an eighth of the slot if that is more. After a crash, or when a worker was stopped, there is no wait. 10 ms
	// to 1 h. Default: a 240th of the slot, at least 1 s and at most 10 min: three attempts at a slot of a day span 18 min.
	MinRetry time.Duration
}

// RetriesOver is how long after the first attempt at a slot of a length the last of MaxAttempts begins at the earliest, or where the slot
// ends: an outage that is shorter doesn't cost it. It begins later if attempts take time or don't count, and if one worker makes them all:
// that waits, too, until its lease would have ended, as others go first. 0 without MaxAttempts: then the slot is tried until it ends.
func (j Job) RetriesOver(slot time.Duration) (span time.Duration) {
	least := (&machine.Config{LeastRetry: j.MinRetry}).MinRetry(slot)
	for n := 1; n < j.MaxAttempts && span < slot; n++ {
		span += machine.Standard.Retry(least, n, slot)
	}
	return min(span, slot)
}

// CatchUpAttempts is the default of Job.MaxAttempts with CatchUpAll.
const CatchUpAttempts = 10

// OverrunPolicy is what happens to a job's task that runs when its slot ends.
type OverrunPolicy int

const (
	// Finish lets it run on. Its lease is extended from slot to slot, with the same token, as a
	// continuous lease is. The slots that begin meanwhile are skipped. If the task
	// ends within StartWithin of the current slot, that slot is run.
	Finish OverrunPolicy = iota
	// Stop ends its context at the last safe moment of the slot. The attempt has failed.
	Stop
)

// String names it, as flags do.
func (o OverrunPolicy) String() string {
	switch o {
	case Finish:
		return "finish"
	case Stop:
		return "stop"
	}
	return fmt.Sprintf("OverrunPolicy(%d)", int(o))
}

// CatchUp is which missed slots of a job are run late.
type CatchUp int

const (
	// CatchUpNone: none.
	CatchUpNone CatchUp = iota
	// CatchUpNewest: the newest of them. Those before it are given up.
	CatchUpNewest
	// CatchUpAll: each of them, the oldest first.
	CatchUpAll
)

// String names it, as flags do.
func (c CatchUp) String() string {
	switch c {
	case CatchUpNone:
		return "none"
	case CatchUpNewest:
		return "newest"
	case CatchUpAll:
		return "all"
	}
	return fmt.Sprintf("CatchUp(%d)", int(c))
}
