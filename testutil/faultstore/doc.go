// Package faultstore makes a good ledger misbehave on purpose, to test what is built
// on it: the engine of this module, and the handlers of its users.
//
//	ledger := faultstore.New(memory.New(memory.Options{}), faultstore.Options{
//		Plan: func(c faultstore.Call) faultstore.Fault {
//			if c.Op == faultstore.OpAppend && c.N == 1 {
//				return faultstore.LostReply() // stored, but the caller gets an error
//			}
//			return faultstore.Fault{}
//		},
//	})
//
// # Faults
//
// A [Fault] says when an operation takes effect (at once, later, never), what the
// caller gets, and how long both take. It can be latency, an error before or after
// the effect, a black hole, an append that lands a day after it timed out, a stale
// read, throttling, a conflict with one's own append, or the stamp of a server whose
// clock is wrong. The functions [Failure], [LostReply], [OwnConflict], [LandsLate],
// [BlackHole], [Throttled], [StaleRead] and [OtherServer] make the usual ones.
//
// Faults come from one of three places:
//
//   - a script, Options.Plan, which is asked before each operation;
//   - [Random], a script that draws from a seed;
//   - [Ledger.Break], an outage that lasts until [Ledger.Mend], and
//     [Ledger.Shift], a jump of the store's clock that lasts.
//
// The operations of a [store.Roster] meet faults, too, if the ledger inside keeps one. Else they fail with
// errors.ErrUnsupported. Nothing of them lands late: that is for appends.
//
// [Ledger.Struck] reports which faults really happened. A test that something
// survives a fault should check that the fault struck.
//
// # Determinism
//
// Time comes from Options.Clock alone. Inside a testing/synctest bubble the
// default clock is the bubble's. Random is a pure function of the seed and the call,
// without a shared generator. So the order of goroutines doesn't matter if each
// caller (each worker of a simulation) has its own Ledger and Caller name, and uses
// one worker type from one goroutine.
//
// Close the Ledger, or a late append may outlive the test.
//
// # Counting
//
// A [Counter] injects no faults: it counts and logs operations, to show how many of
// them something needs.
package faultstore
