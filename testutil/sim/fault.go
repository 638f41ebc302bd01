package sim

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync/atomic"
	"time"
)

// Fault is a kind of fault. Result.Struck counts how often each one struck.
type Fault string

// The faults within the assumptions of the protocol. In spite of them, no two holders work
// at once.
const (
	Delayed      Fault = "call delayed"              // By up to a minute, on either way.
	Failed       Fault = "call failed"               // Had no effect.
	LostReply    Fault = "reply lost"                // It had its effect, and its caller got an error.
	BlackHole    Fault = "call unanswered"           // With or without an effect.
	LandedLate   Fault = "append landed late"        // After its caller had given up: up to LateBy later, within the run.
	OwnConflict  Fault = "conflict against own"      // A driver's retry met the first try.
	StaleRead    Fault = "stale read"                // The newest records were missing.
	Throttled    Fault = "throttled"                 // With a time to wait.
	Partition    Fault = "partition"                 // A call got lost, both ways.
	OneWay       Fault = "one-way partition"         // A call had its effect, and its reply was lost.
	Outage       Fault = "outage"                    // The store refused all calls.
	Failover     Fault = "failover"                  // Another member, with another clock, took over.
	ClockStep    Fault = "server clock step"         // Of the member in charge, within Skew.
	CachedStamp  Fault = "old stamp"                 // Up to StampAge old when it was sent.
	Crash        Fault = "crash"                     // The process ended; an append that it had sent may land.
	Stop         Fault = "orderly stop"              // The process was stopped, and released its lease.
	Pause        Fault = "pause"                     // The process did not run; clocks did.
	Suspend      Fault = "suspend"                   // Timers stood still, too; boot time did not.
	WallStep     Fault = "wall clock step"           // Of a worker's host, up to an hour.
	Drift        Fault = "drifting clock"            // A process ran on a host with one.
	TimerOff     Fault = "timer late or early"       // By up to half a second.
	Trim         Fault = "trim"                      // Records were deleted.
	LandedOnTrim Fault = "landed on a trimmed key"   // A late append found its key open again.
	Poison       Fault = "poison"                    // A record that workers can't obey was planted.
	Hole         Fault = "poison above a free key"   // The same, where an append of unknown outcome can land below it.
	NewerVersion Fault = "record of a newer version" // A record of an unknown kind was planted.
	Foreign      Fault = "valid record of no worker" // A record was planted that contradicts the one below it.
	HugeSeq      Fault = "huge seq"                  // A record was planted whose Seq has no successor.
	Blocked      Fault = "callback past its end"     // LeaseAllocated outlasted the lease.
	Panicked     Fault = "callback panicked"         // LeaseAllocated panicked.
	SlowObserver Fault = "observer blocked"          // It kept the worker's goroutine.
	LongWindow   Fault = "lease of another interval" // Intervals of the workers differ.
	SharedName   Fault = "instance id used twice"    // Two processes had one name.
	InGroup      Fault = "lease of a group"          // Several members work at once, by intent.
)

// These are within the assumptions, too. [Random] leaves them out.
const (
	WrongStamp Fault = "wrong stamp"        // One answer to a client that knew the time.
	InTurn     Fault = "another one's turn" // To answer: another member's than the last stamp's.
	Election   Fault = "election"           // No primary; or one that a minority has.
	HungAppend Fault = "append hung"        // In an election, with or without an effect at its end.
	Vanished   Fault = "conflict vanished"  // With a record that a minority had.
	Undone     Fault = "append undone"      // That a minority had, and had not acknowledged.
	Unfit      Fault = "not eligible"       // For a second to ten minutes.
	Ordered    Fault = "order given"        // By an operator: none of the faults.
	BadCheck   Fault = "check failed"       // Options.Eligible hung, or panicked.
	Stuck      Fault = "no progress"        // The code of a lease went on no more.
	HintLost   Fault = "hint lost"          // Of a store that gives hints.
	HintLate   Fault = "hint late"          // By up to five minutes.
	HintTwice  Fault = "hint twice"         // It came again, or twice.
	HintLied   Fault = "lying hint"         // Nothing was appended.
	WatchBroke Fault = "watch broke"        // It ended with an error.
	RosterLost Fault = "presence lost"      // Although it was acknowledged.
	RosterOld  Fault = "roster stale"       // By up to an hour.
	RosterLied Fault = "lying roster"       // Some of what was read was wrong.
	CrashLoop  Fault = "crash in the lease" // Of a process that had just got it.
)

// The faults beyond the assumptions of the protocol. Holders may then overlap. Workers
// report that, and a resource that checks tokens refuses stale writes.
const (
	Jump     Fault = "server clock jump"   // More than Skew.
	Rollback Fault = "rolled back record"  // A record that was read vanished.
	Freeze   Fault = "frozen host"         // All clocks of it stood still.
	Racing   Fault = "clock out of bounds" // A process ran on a host whose clock drifts too fast.

	// These are left out by [RandomBeyond].
	FirstStamp Fault = "wrong first stamp" // A client's, which knew no time yet.
	Apart      Fault = "clocks apart"      // Members that answer in turn are further apart than they claim.

	Loss Fault = "records lost" // The newest, or all, although they were acknowledged.

	// Expiry is not a fault that happens: it is a store that breaks the contract.
	Expiry Fault = "record expired by the store"
)

// within lists the faults within the assumptions, and beyond the others, both in
// the order above.
var (
	within = []Fault{
		Delayed, Failed, LostReply, BlackHole, LandedLate, OwnConflict, StaleRead, Throttled, Partition, OneWay,
		Outage, Failover, ClockStep, CachedStamp, Crash, Stop, Pause, Suspend, WallStep, Drift, TimerOff, Trim,
		LandedOnTrim, Poison, Hole, NewerVersion, Foreign, HugeSeq, Blocked, Panicked, SlowObserver, LongWindow, SharedName, InGroup,
	}
	beyond = []Fault{Jump, Rollback, Freeze, Racing}
	asked  = []Fault{WrongStamp, InTurn, Election, HungAppend, Vanished, Undone, Unfit, BadCheck, Stuck, HintLost, HintLate, HintTwice, HintLied, WatchBroke, RosterLost, RosterOld, RosterLied, CrashLoop, Ordered, FirstStamp, Apart, Loss, Expiry}
)

// Within lists the faults that the protocol tolerates.
func Within() []Fault { return slices.Clone(within) }

// Beyond lists the faults that no lease can bear without a fencing token.
func Beyond() []Fault { return slices.Clone(beyond) }

// tally counts faults; it is safe for concurrent use.
type tally struct{ counts map[Fault]*atomic.Int64 }

func newTally() tally {
	t := tally{map[Fault]*atomic.Int64{}}
	for _, f := range slices.Concat(within, beyond, asked) {
		t.counts[f] = new(atomic.Int64)
	}
	return t
}

func (t tally) strike(f Fault) { t.counts[f].Add(1) }

// passed counts the outages that were lived through in a stretch of time.
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

// String returns a table with one line for each kind that struck.
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

// Faults say which faults strike, and how often. The zero value is a perfect world. A float64
// is the probability that a call, a lease or a timer is struck. A time.Duration that is named
// after an event is the average time between two of them; 0 means never.
type Faults struct {
	// Latency bounds each way of a call, which is drawn evenly below it.
	Latency time.Duration
	// Distance bounds the round trip that each host's calls take in any case, on top of Latency:
	// it is drawn for each host.
	Distance time.Duration
	// Delayed calls take up to a minute longer. A call meets at most one of the other faults, so
	// their probabilities may add up to at most 1. A call fails without an effect (Failed) or
	// with it (LostReply), gets no answer (BlackHole), or is throttled (Throttled).
	Delayed, Failed, LostReply, BlackHole, Throttled float64
	// Stale: a read lacks the newest records.
	Stale float64
	// OwnConflict: an append is answered with a conflict with itself. Late: it fails, and lands
	// between a millisecond and LateBy later, evenly on a logarithmic scale; some hang until
	// their key was trimmed. LateBy defaults to 24 h. An append that would land after the end of
	// the run never does, so landing a day late takes a run of more than a day.
	OwnConflict, Late float64
	LateBy            time.Duration

	// Of a worker's connection: a partition lasts from a second to half of this. In some, calls
	// still arrive and only replies are lost.
	Partitions time.Duration
	// Of the store: an outage refuses all calls for a second to five minutes. A failover does so
	// for up to 12 s, and then another member is in charge.
	Outages, Failovers time.Duration
	// Skew bounds how far the clock of each member is from true time. Stamps report it. Every
	// ClockSteps a member's clock is stepped within it.
	Skew       time.Duration
	ClockSteps time.Duration
	// Off, if there is any, is how far the clock of each member is from true time, instead: there
	// are as many members, and the first is best right. Then a stamp reports what its process
	// measured of the members, as ledgers in replica sets do, and Skew is what is assumed of a member
	// that can't be asked. Unasked is that member, counted from 1; 0: all can be asked. It answers
	// while it is in charge.
	Off     []time.Duration
	Unasked int
	// WrongStamps: each client's next stamp is wrong, by up to WrongBy (default: 30 years), and by
	// at least a second and a 250th of a slot. A client's first stamp is right.
	WrongStamps, WrongBy time.Duration
	// InTurn: the members answer in turn.
	InTurn bool
	// StampAge: stamps are up to this old when they are sent, and report it.
	StampAge time.Duration
	// NoFreeStamp: Tail returns no stamp.
	NoFreeStamp bool

	// Of hints, if Options.Hints is set: HintLost, HintLate and HintTwice are parts of them; 1: all.
	// HintLies come although nothing was appended, up to three at a time. WatchBreaks end a watch.
	HintLost, HintLate, HintTwice float64
	HintLies, WatchBreaks         time.Duration

	// Of the roster, if Options.Roster is set: RosterLost is the part of the writes that are lost, RosterOld
	// that of reads that show it as it was up to an hour before, and RosterLies that of presences that are read
	// wrong. Partitions and outages hit its calls as all others.
	RosterLost, RosterOld, RosterLies float64

	// Elections last from 2 s to 12 s. In some, appends are refused; in some they hang, and land
	// at the end or not. In some, a member goes on that a minority follows: an append there has
	// no answer and is undone at the end, or the member wins and it stays. Another append to the
	// same key conflicts with it meanwhile. Reads are answered in half of them, and show only
	// what stays.
	Elections time.Duration

	// Of processes. Restarts: the average life of a process, after which it is stopped or
	// crashes. Stalls last from a millisecond to ten minutes: pauses and, on a host that reports
	// boot time, suspends.
	Restarts, Stalls time.Duration
	// NoBoottime: the hosts' clocks don't report boot time.
	NoBoottime bool
	// WallSteps: the hosts' times of day are wrong by up to an hour, and are stepped.
	WallSteps time.Duration
	// Drift bounds how much faster or slower the hosts' clocks run than true time. More than
	// 0.001 (1000 ppm) is beyond the assumptions.
	Drift float64
	// Of timers.
	TimerOff float64

	// Of the ledger: planted records.
	Poisons, NewerVersions, HugeSeqs time.Duration
	// Foreign: records that are valid alone, and contradict the one below them or stand above
	// a free key.
	Foreign time.Duration
	// Holes is the part of the poison that is planted above a free key.
	Holes float64

	// Of the user's code, if it is DefaultCallbacks or DefaultTask: leases whose callback blocks
	// or panics.
	Blocked, Panicked float64
	// CrashLoops is the part of the workers, those with the lowest numbers, whose process crashes a second after
	// each of its leases has begun.
	CrashLoops float64
	// Of the observer's calls.
	SlowObserver float64

	// Illnesses last from a second to ten minutes, in which Options.Eligible finds a worker unfit. In
	// BadChecks of its calls it hangs, or panics. Without both, it is not set. Stuck is the part of
	// the leases, if the code is DefaultCallbacks, that show no progress from some moment on.
	Illnesses        time.Duration
	BadChecks, Stuck float64

	// Beyond the assumptions. Jumps step the store's clock by up to JumpBy (default: 10 min).
	// Freezes stop a host and its clocks for up to 10 min. A Rollback takes back an append that
	// others may have read.
	Jumps, Freezes time.Duration
	JumpBy         time.Duration
	Rollback       float64
	// Losses are moments at which the store loses the newest records of the first worker's type: up to three, those of some
	// time, or all. NamesHistory: stamps then have another store.Stamp.History. Unfollowed: the store is no store.Follower.
	Losses                   time.Duration
	NamesHistory, Unfollowed bool
	// WrongClocks: the store's clock is wrong, by a second up to WrongClockBy (default: 24 h), for
	// a minute to an hour, or in a third of them until the next.
	WrongClocks, WrongClockBy time.Duration
	// FirstStamps is the part of the clients whose first stamp is wrong, as WrongStamps are.
	FirstStamps float64
	// Apart is how far the clocks of members that answer in turn are apart, in addition to Skew.
	Apart time.Duration
	// TTL: the store deletes each record this long after its window has ended, also the newest.
	// No store may do that; this shows why.
	TTL time.Duration
}
