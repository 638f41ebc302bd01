package machine

import (
	"time"

	"github.com/slotlease/slotlease/slots"
	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/workerlease/internal/timeline"
)

// Op is a ledger operation.
type Op int

// The operations.
const (
	Nothing Op = iota
	Sampling
	ReadingHead
	ReadingRecord
	Appending
	Trimming
	Probing // reading a record to see whether it justifies trimming
)

// String names the operation.
func (o Op) String() string {
	return [...]string{"nothing", "now", "tail", "get", "append", "trim", "get for trim"}[o]
}

// Stage is how far the contention for State.Slot has come.
type Stage int

// The stages.
const (
	// Aiming: waiting for the turn.
	Aiming Stage = iota
	// Reading: the claim is fixed, the head is to be read.
	Reading
	// Sending: the record in State.Sent is to be appended.
	Sending
	// Checking: what became of the append of State.Sent is to be read back.
	Checking
	// Halted: the worker is done.
	Halted
)

// String names the stage.
func (s Stage) String() string {
	return [...]string{"aiming", "reading", "sending", "checking", "halted"}[s]
}

// Claim is one attempt to take a slot. It is fixed before the head is read and
// never changes on a retry.
type Claim struct {
	ID    string
	Start time.Time // raised to the end of the head when the record is made
	End   time.Time
	Fixed time.Time // Earliest(now) at fixing
	Local time.Duration
}

// Term is a window that is known to be one's own, or one's group's.
type Term struct {
	Seq        int64
	Slot       slots.Slot
	Start, End time.Time
	Token      int64
	Attempt    int
	Claim      string
	Own        bool       // claimed by this worker, not by another of its group
	Missed     slots.Slot // the slot before, if its work is to be done late
}

// IsZero reports whether there is no term.
func (t Term) IsZero() bool { return t.Seq == 0 }

// Watch is poison that is being watched.
type Watch struct {
	Seq   int64
	Since time.Time // Latest(now) when it was first seen
}

// State is everything that a worker knows. It is comparable. The zero State is
// a worker that was just started.
type State struct {
	Stage   Stage
	Pending Op

	Slot     slots.Slot    // contended for
	First    slots.Slot    // the first of them
	Turn     time.Time     // when the head may be read
	TurnEdge timeline.Edge // which edge of now must have reached Turn
	JoinOnly bool          // in Slot: join one's group, but don't claim
	// Extending: Turn is when the term in force is to be extended, in Slot or into it.
	// Standby: Slot is another's, and Turn is when what is left of it may be claimed.
	Extending, Standby  bool
	SkipSlot, YieldSlot time.Time // start of the slot that this worker is through with; of that in which it lets others go first
	Claim               Claim
	Sent                store.Record  // the record being appended
	Late                slots.Slot    // the slot before, if Sent says that its work is to be done late
	OutcomeUnknown      bool          // the append may have been applied, or may yet land
	ReadAt              time.Time     // Latest(now) right after the head was read
	Latency             time.Duration // how long appends take, on average, the newest counting for a quarter
	Failures            int           // operations that failed in a row
	Tries               int           // operations in a row that came to nothing, failed or not
	Retry               time.Duration
	Probe               bool   // after a failure: ask for the time before all else
	VoidClaim           string // id of a claim that came to nothing and may have landed, or yet land
	Why                 Reason // why Slot is being missed, if it is

	Next    Term // won, not begun
	Held    Term // the user's code was told
	Left    Term // ended before its window did
	WonEnd  time.Time
	WonSlot time.Time     // end of the newest slot of which a part was won
	Running bool          // the user's code has not returned
	Overdue time.Duration // local reading at which user code that has not returned overruns
	Overran bool
	Rest    time.Time // start of the slot in which the user's code is called again; zero: it doesn't rest

	Epoch, Settled, Jumps int
	Settle                time.Time // when Epoch is settled; zero: a head must be read first
	ReadEpoch             int       // Epoch when the head was asked for
	Resample              bool
	Reaim                 time.Duration // local reading, just after Epoch was settled, to look whether Slot lies far ahead

	Watch       Watch
	Asked       int   // how many of the newest records were asked for
	Depth       int   // how many are to be, at least
	Unreachable int64 // seq of the newest record that is not followed, 0 if all are
	HeadReadAt  ReadTime
	Holders     Holders
	Carried     Carried
	Closing     Closing
	LastGrant   Grant // the newest grant that was won or joined, until it was seen to stand
	Mismatch    string
	Trim        int64 // probe for trimming, 0 none
	TrimStep    int64 // how far the next probe lies below

	Stopping, GivenUp bool
}

// Wait is what to wait for: a time on the time line, or a local reading.
type Wait struct {
	Time  time.Time
	Edge  timeline.Edge
	Local time.Duration // if Time is zero
}
