// Package faultstore makes a good ledger misbehave on purpose, so that what is
// built on it can be tested: the engine of this module, and the handlers of
// those who use it.
//
//	ledger := faultstore.New(memory.New(memory.Options{}), faultstore.Options{
//		Plan: func(c faultstore.Call) faultstore.Fault {
//			if c.Op == faultstore.OpAppend && c.N == 1 {
//				return faultstore.LostReply() // stored, but the caller is told otherwise
//			}
//			return faultstore.Fault{}
//		},
//	})
//
// # Faults
//
// A [Fault] says when an operation takes effect (at once, later, never), what
// the caller is told, and how long both take: latency, errors before and after
// the effect, black holes, appends that land a day after they timed out, stale
// reads, throttling, a conflict with one's own append, stamps of a server whose
// clock is elsewhere. The functions [Failure], [LostReply], [OwnConflict],
// [LandsLate], [BlackHole], [Throttled], [StaleRead] and [OtherServer] make the
// usual ones.
//
// They come from one of three places:
//
//   - a script, Options.Plan, which is asked before each operation;
//   - [Random], a script that draws from a seed;
//   - [Ledger.Break], an outage that lasts until [Ledger.Mend], and
//     [Ledger.Shift], a jump of the store's clock that lasts.
//
// [Ledger.Struck] tells which faults really happened. A test that wants to show
// that something survives a fault should check that the fault struck.
//
// # Determinism
//
// Time comes from Options.Clock alone. Inside a testing/synctest bubble the
// default clock is the bubble's. Random is a pure function of the seed and the
// call, with no shared generator behind it: which goroutine comes first doesn't
// matter, as long as each caller (each worker of a simulation) has a Ledger and
// a Caller name of its own and asks for one worker type from one goroutine.
//
// A Ledger must be closed, or a late landing may outlive the test.
//
// # Counting
//
// A [Counter] does no harm: it counts and logs operations, to show how many of
// them something needs.
package faultstore
