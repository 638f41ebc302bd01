package sim

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync/atomic"
	"time"
)

// Fault is a kind of thing that went wrong. Result.Struck counts how often each
// really did.
type Fault string

// The faults within what the protocol assumes: whatever they do, no two holders
// work at once.
const (
	Delayed      Fault = "call delayed"              // Up to a minute, on either way.
	Failed       Fault = "call failed"               // Had no effect.
	LostReply    Fault = "reply lost"                // It failed, and had an effect.
	BlackHole    Fault = "call unanswered"           // With or without an effect.
	LandedLate   Fault = "append landed late"        // After its caller had given up: up to LateBy later, within the run.
	OwnConflict  Fault = "conflict against own"      // A driver's retry met the first try.
	StaleRead    Fault = "stale read"                // The newest records were missing.
	Throttled    Fault = "throttled"                 // With a time to wait.
	Partition    Fault = "partition"                 // A call got lost, both ways.
	OneWay       Fault = "one-way partition"         // A call had its effect, its reply got lost.
	Outage       Fault = "outage"                    // A call was refused: so was everybody's.
	Failover     Fault = "failover"                  // Another member, with another clock, took over.
	ClockStep    Fault = "server clock step"         // Of the member in charge, within Skew.
	CachedStamp  Fault = "old stamp"                 // Up to StampAge old when it was sent.
	Crash        Fault = "crash"                     // The process ended, what it had sent may land.
	Stop         Fault = "orderly stop"              // The process was stopped, and released.
	Pause        Fault = "pause"                     // The process did not run; clocks did.
	Suspend      Fault = "suspend"                   // Timers stood still, too; boot time did not.
	WallStep     Fault = "wall clock step"           // Of a worker's host, up to an hour.
	Drift        Fault = "drifting clock"            // A process ran by it.
	TimerOff     Fault = "timer late or early"       // By up to half a second.
	Trim         Fault = "trim"                      // Records were deleted.
	LandedOnTrim Fault = "landed on a trimmed key"   // A late append found its key open again.
	Poison       Fault = "poison"                    // A record that can't be obeyed was planted.
	Hole         Fault = "poison above a free key"   // The same, where an append in doubt can land below it.
	NewerVersion Fault = "record of a newer version" // A record of an unknown kind was planted.
	HugeSeq      Fault = "huge seq"                  // A record was planted that can't be followed.
	Blocked      Fault = "callback past its end"     // LeaseAllocated outlasted the lease.
	Panicked     Fault = "callback panicked"         // LeaseAllocated panicked.
	SlowObserver Fault = "observer blocked"          // The worker's goroutine was kept.
	LongWindow   Fault = "lease of another interval" // Intervals of the workers differ.
	SharedName   Fault = "instance id used twice"    // A process had the name of another.
	InGroup      Fault = "lease of a group"          // Several work at once, by intent.
)

// The faults beyond what the protocol assumes. Holders may overlap then: that is
// noticed, and a resource that checks tokens refuses what is stale.
const (
	Jump     Fault = "server clock jump"   // More than Skew.
	Rollback Fault = "rolled back record"  // A record that was read vanished.
	Freeze   Fault = "frozen host"         // Both clocks stood still.
	Racing   Fault = "clock out of bounds" // A process ran by a clock that drifts too fast.

	// Expiry is no fault that happens, but a store that breaks the contract.
	Expiry Fault = "record expired by the store"
)

// within lists the faults within the assumptions, and beyond the others, both in
// the order above.
var (
	within = []Fault{
		Delayed, Failed, LostReply, BlackHole, LandedLate, OwnConflict, StaleRead, Throttled, Partition, OneWay,
		Outage, Failover, ClockStep, CachedStamp, Crash, Stop, Pause, Suspend, WallStep, Drift, TimerOff, Trim,
		LandedOnTrim, Poison, Hole, NewerVersion, HugeSeq, Blocked, Panicked, SlowObserver, LongWindow, SharedName, InGroup,
	}
	beyond = []Fault{Jump, Rollback, Freeze, Racing}
)

// Within lists the faults that the protocol bears.
func Within() []Fault { return slices.Clone(within) }

// Beyond lists the faults that no lease can bear without a fencing token.
func Beyond() []Fault { return slices.Clone(beyond) }

// tally counts faults; it is safe for concurrent use.
type tally struct{ counts map[Fault]*atomic.Int64 }

func newTally() tally {
	t := tally{map[Fault]*atomic.Int64{}}
	for _, f := range append(slices.Concat(within, beyond), Expiry) {
		t.counts[f] = new(atomic.Int64)
	}
	return t
}

func (t tally) strike(f Fault) { t.counts[f].Add(1) }

// passed counts the spells that were lived through in a stretch of time.
func (t tally) passed(s outages, from, to time.Duration) {
	for _, x := range s[s.after(from):] {
		if x.from >= to {
			return
		}
		t.strike(x.kind)
	}
}

func (t tally) struck() Struck {
	out := Struck{}
	for f, n := range t.counts {
		if n := n.Load(); n > 0 {
			out[f] = int(n)
		}
	}
	return out
}

// Struck counts faults by kind.
type Struck map[Fault]int

// Add adds the counts of another run.
func (s Struck) Add(o Struck) {
	for f, n := range o {
		s[f] += n
	}
}

// String is a table, a line for each kind that struck.
func (s Struck) String() string {
	var b strings.Builder
	for _, f := range slices.Concat(within, beyond) {
		if n, ok := s[f]; ok {
			fmt.Fprintf(&b, "%-28s %10d\n", f, n)
		}
	}
	for _, f := range slices.Sorted(maps.Keys(s)) {
		if !slices.Contains(within, f) && !slices.Contains(beyond, f) {
			fmt.Fprintf(&b, "%-28s %10d\n", f, s[f])
		}
	}
	return b.String()
}

// Faults say what goes wrong, and how often. The zero value is a perfect world.
// A float64 is the probability that a call, a lease or a timer is struck; a
// time.Duration named after an event is about how long passes between two of
// them, 0 for never.
type Faults struct {
	// Latency bounds each way of a call: drawn evenly below it.
	Latency time.Duration
	// Delayed calls take up to a minute longer. The others are probabilities of what
	// one call can meet one of, so they may add up to 1 at most: it fails without an
	// effect (Failed) or with it (LostReply), gets no answer (BlackHole), or is asked
	// to come again later (Throttled);
	Delayed, Failed, LostReply, BlackHole, Throttled float64
	// a read lacks the newest records (Stale);
	Stale float64
	// an append is told of a conflict with itself (OwnConflict), or fails, and lands a
	// millisecond to LateBy later (Late), evenly by the logarithm. LateBy defaults to
	// 24 h; what would land after the end of the run never does, so that one a day late
	// takes a run of more than a day. Some hang until their key was trimmed.
	OwnConflict, Late float64
	LateBy            time.Duration

	// Of a worker's connection: a partition lasts a second to half of this; in some,
	// calls still arrive and only replies don't.
	Partitions time.Duration
	// Of the store: an outage refuses all calls for a second to five minutes; in a
	// failover it does so for up to 12 s, and another member is in charge then.
	Outages, Failovers time.Duration
	// Skew bounds how far the clock of each member is from true time; stamps say
	// so. A member's clock is stepped within it every ClockSteps.
	Skew       time.Duration
	ClockSteps time.Duration
	// StampAge: stamps are up to so old when they are sent, and say so.
	StampAge time.Duration
	// NoFreeStamp: Tail comes without a stamp.
	NoFreeStamp bool

	// Of processes. Restarts: each lives about so long, and is then stopped or
	// crashes. Stalls last from a millisecond to ten minutes: pauses and, on a host
	// that tells boot time, suspends.
	Restarts, Stalls time.Duration
	// NoBoottime: the hosts' clocks don't tell boot time.
	NoBoottime bool
	// WallSteps: hosts' times of day are wrong by up to an hour, and stepped.
	WallSteps time.Duration
	// Drift bounds how much faster or slower the hosts' clocks run than true time.
	// More than 0.001, which is 1000 ppm, is beyond the assumptions.
	Drift float64
	// Of timers.
	TimerOff float64

	// Of the ledger: planted records.
	Poisons, NewerVersions, HugeSeqs time.Duration
	// Holes is the part of the poison that is planted above a free key.
	Holes float64

	// Of the user's code, if it is this package's own: leases whose callback
	// blocks, or panics.
	Blocked, Panicked float64
	// Of the observer's calls.
	SlowObserver float64

	// Beyond the assumptions. Jumps step the store's clock by up to JumpBy (default
	// 10 min), Freezes keep a host and its clocks for up to 10 min, and a Rollback
	// takes back an append that others may have read.
	Jumps, Freezes time.Duration
	JumpBy         time.Duration
	Rollback       float64
	// TTL: the store deletes records so long after their window has ended, the
	// newest as well. No store may; this shows why.
	TTL time.Duration
}
