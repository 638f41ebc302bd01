// Package machine decides everything that a worker does. It is pure: Step takes
// a state, the moment at which something happened, and what happened, and
// returns the next state and what to do. It has no clock, no context, no
// goroutine, no store and no randomness of its own; the same input gives the
// same output, so a whole run can be written down, replayed and read (testdata).
//
// A worker has two concerns at once, kept apart in [State]: what it holds (Held,
// and Next that it has won but that has not begun), and what it contends for
// (Stage, Slot, Claim).
//
//	          turn reached                 free
//	Aiming ───────────────▶ Reading ───────────────▶ Sending
//	  ▲                        │ ▲  ▲                   │  conflict, or
//	  │   taken, or it is won  │ │  │ absent            ▼  unknown
//	  └────────────────────────┘ │  └─────────────── Checking
//	  │                          └───────────────────── │ somebody else's
//	  └───────────────── mine ──────────────────────────┘
//
// What safety and the order of claims rest on is in [Rules] alone: rules.go lists
// the rules, window.go (the time), order.go (whose turn it is), ownership.go (records
// and claims) and poison.go say why they are as they are. The rest asks them.
//
// One ledger operation is under way at a time; State.Pending says which.
// Everything that depends on the time alone is looked at after each event, so a
// late, early or spurious wake-up does no harm.
package machine
