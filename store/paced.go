package store

import "time"

// Paced is a Ledger whose clock is known so poorly that parts of a slot can be too short to work in, such as one that
// is read from the Date of HTTP replies, in whole seconds.
type Paced interface {
	// FailoverFloor is the least useful workerlease.Options.FailoverWithin: with less, workers would lose parts of
	// their slots to the uncertainty of store time. So they refuse to start. It is constant, asks nobody, and is safe
	// for concurrent use. 0 means no floor.
	FailoverFloor() time.Duration
}
