package machine

import (
	"time"

	"github.com/slotlease/slotlease/workerlease/internal/timeline"
)

// State is everything that a worker knows. It is comparable. The zero State is
// a worker that was just started.
type State struct {
	Pending Op // the ledger operation under way

	Bid     Bid     // for the slot that the worker contends for
	Hold    Hold    // what it has won
	View    View    // what it knows of the ledger
	Clock   Clock   // what it has noticed of the time line
	Retries Retries // of ledger operations
	Trips   Trips   // how long ledger operations take
	Closing Closing // what is to be recorded of a slot whose work has ended
	Report  Report  // and what came of that
	Death   Death   // what is to be told of an attempt of another worker
	Missing Missing // what is to be told of a record that is gone
	Upkeep  Upkeep  // trimming
	Hint    Hint    // that the head may be another one

	Eligibility Eligibility // whether it may lead, by a check of its user's
	Trouble     Trouble     // of the user's code
	Triggers    Triggers    // of operators
	Rank        Rank        // among other workers

	Draining, Stopping, GivenUp bool
}

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
	Probing  // reading a record to see whether it justifies trimming
	Sighting // recording since when poison is seen
)

// String names the operation.
func (o Op) String() string {
	return [...]string{"nothing", "now", "tail", "get", "append", "trim", "get for trim", "sighting"}[o]
}

// Wait is what to wait for: a time on the time line, or a local reading.
type Wait struct {
	Time  time.Time
	Edge  timeline.Edge
	Local time.Duration // if Time is zero
}
