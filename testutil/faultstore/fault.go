package faultstore

import (
	"errors"
	"time"

	"github.com/slotlease/slotlease/store"
)

// Op names an operation of store.Ledger or of store.Roster.
type Op string

// The operations. Close isn't one of them: it never fails here.
const (
	OpInit        Op = "init"
	OpAppend      Op = "append"
	OpGet         Op = "get"
	OpTail        Op = "tail"
	OpPage        Op = "page"
	OpTrim        Op = "trim"
	OpWorkerTypes Op = "worker types"
	OpNow         Op = "now"

	OpAttend    Op = "attend"
	OpLeave     Op = "leave"
	OpPresences Op = "presences"
)

// Call is an operation that is about to happen.
type Call struct {
	// Caller is Options.Caller.
	Caller string
	Op     Op
	// WorkerType is empty for operations that have none, or several.
	WorkerType string
	// Seq is that of an append or a get, `before` of a trim, and `after` of a page.
	Seq int64
	// N counts the calls of this Op for this WorkerType through this Ledger,
	// from 1.
	N int64
	// At is the time of Options.Clock.
	At time.Time
	// Record is what an append wants to store, and Prev, of an AppendAfter, the record below.
	Record, Prev store.Record
}

// Effect is what happens to an operation in the store.
type Effect int

// The effects.
const (
	// Applied: it takes effect, between Before and After.
	Applied Effect = iota
	// Dropped: it never reaches the store.
	Dropped
	// Late: an append reaches the store LateBy later, whatever the caller got and
	// even if its context has ended. Other operations are dropped.
	Late
)

// Fault says how an operation goes wrong. The zero Fault is none.
type Fault struct {
	// Before and After are the latencies before and after the effect. Both end
	// with the caller's context, whose error is then returned: if it ends in After,
	// the operation has taken effect.
	Before, After time.Duration

	Effect Effect
	// LateBy is how long after Before a late append lands.
	LateBy time.Duration
	// Block withholds the reply: the caller waits until its context ends or the
	// ledger is closed.
	Block bool
	// Err is returned in place of the result. With Dropped or Late, nil stands for
	// ErrInjected. It can be any error, ErrConflict too.
	Err error

	// HideNewest makes a get or a tail stale: it is the number of newest records of
	// the worker type that are missing.
	HideNewest int

	// Shift is added to the stamp of a now or a tail.
	Shift time.Duration
	// Server replaces the stamp's server if it isn't empty.
	Server string
}

var (
	// ErrInjected is in every error that a Fault without an Err causes.
	ErrInjected = errors.New("injected fault")
	// ErrDown is the answer of a store that is Down.
	ErrDown = errors.New("connection refused (injected fault)")
)

// Down is the fault of a store that is out of reach; see Ledger.Break.
func Down() Fault { return Fault{Effect: Dropped, Err: ErrDown} }

// Failure is an error without an effect. For a caller it looks like LostReply.
func Failure() Fault { return Fault{Effect: Dropped} }

// LostReply is an error after the effect. For a caller it looks like Failure.
func LostReply() Fault { return Fault{Err: ErrInjected} }

// OwnConflict lets an append take effect and then returns a conflict, as drivers do
// when they lose the first reply and retry.
func OwnConflict() Fault { return Fault{Err: store.ErrConflict} }

// LandsLate returns an error at once, and stores the append after d.
func LandsLate(d time.Duration) Fault { return Fault{Effect: Late, LateBy: d} }

// BlackHole keeps the caller waiting until its context ends. The effect is e; with
// Late, set LateBy of the result.
func BlackHole(e Effect) Fault { return Fault{Effect: e, Block: true} }

// Throttled refuses an operation without an effect, and asks the caller to retry
// after d.
func Throttled(d time.Duration) Fault {
	return Fault{Effect: Dropped, Err: &store.ThrottledError{RetryAfter: d, Err: ErrInjected}}
}

// StaleRead hides the newest n records from a get or a tail.
func StaleRead(n int) Fault { return Fault{HideNewest: n} }

// OtherServer makes the stamp come from another server, whose clock is ahead by d;
// late if d is negative.
func OtherServer(name string, d time.Duration) Fault { return Fault{Shift: d, Server: name} }

// FaultKind names what Struck counts.
type FaultKind string

// The kinds of faults.
const (
	// KindLatency: a caller waited for Before or After, perhaps not to the end.
	KindLatency FaultKind = "latency"
	// KindFailure: an error was returned and nothing was done.
	KindFailure FaultKind = "failure"
	// KindLostReply: an error was returned in place of a success.
	KindLostReply FaultKind = "lost reply"
	// KindOwnConflict: an append was stored, and ErrConflict returned.
	KindOwnConflict FaultKind = "own conflict"
	// KindBlackHole: a caller waited for the end of its context.
	KindBlackHole FaultKind = "black hole"
	// KindLate: an append was delayed.
	KindLate FaultKind = "late"
	// KindLanded: a delayed append was stored.
	KindLanded FaultKind = "landed"
	// KindMissed: a delayed append was not stored, because its key was taken by then
	// or the store failed.
	KindMissed FaultKind = "missed"
	// KindStale: a record was hidden from a get or a tail.
	KindStale FaultKind = "stale"
	// KindThrottled: a ThrottledError was returned.
	KindThrottled FaultKind = "throttled"
	// KindOutage: a call met the fault of Break.
	KindOutage FaultKind = "outage"
	// KindStamp: a stamp was changed.
	KindStamp FaultKind = "stamp"
)
