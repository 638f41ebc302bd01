// Package machine decides everything that a worker does. It is pure: Step takes
// a state, the moment of an event, and the event, and returns the next state and a
// list of actions. It has no clock, no context, no goroutine, no store and no source of
// randomness. The same input gives the same output, so a whole run can be written down,
// replayed and read (testdata).
//
// [State] has a part for each concern of a worker: the [Bid] for the slot it contends
// for, the [Hold] on what it has won, its [View] of the ledger, the [Clock], the
// [Retries] of ledger operations, the [Closing] of a slot whose work has ended, and the
// [Upkeep] of old records. A bid goes through these stages:
//
//	         turn reached                 free
//	Aiming ───────────────▶ Reading ───────────────▶ Sending
//	  ▲                        │ ▲  ▲                   │  conflict, or
//	  │   taken, or it is won  │ │  │ absent            ▼  outcome unknown
//	  └────────────────────────┘ │  └─────────────── Checking
//	  │                          └───────────────────── │ another worker's
//	  └───────────────── mine ──────────────────────────┘
//
// Where to read: machine.go takes in the events. head.go is the way of a head that was
// read, from top to bottom; facts.go has the questions that are asked there. append.go is
// the way of an append and its reply. claim.go, extend.go, done.go, poison.go and stop.go
// are the ways that branch off.
//
// Everything that safety and the order of claims rest on is in [Rules]: rules.go lists
// the rules; window.go (the time), order.go (whose turn it is), ownership.go (records
// and claims), done.go and poison.go hold the standard ones, with their reasons.
//
// One ledger operation is under way at a time; State.Pending says which. Everything
// that depends on the time alone is checked again after each event, so a late, early or
// spurious wake-up does no harm.
package machine
