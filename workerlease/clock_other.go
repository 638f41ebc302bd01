//go:build !linux

package workerlease

import "github.com/benbjohnson/clock"

// NewSystemClock returns the clock that a Client uses by default: the real one or, in a
// testing/synctest bubble, the bubble's. On this system it reads no boot time: after a
// suspend of the machine, a lease may seem to last longer than it does, and only the
// fencing token protects.
func NewSystemClock() clock.Clock { return clock.New() }
