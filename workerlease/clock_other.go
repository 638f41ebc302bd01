//go:build !linux

package workerlease

import "github.com/benbjohnson/clock"

// NewSystemClock returns the clock that is used when none is injected: the real
// one. On this system it doesn't tell boot time: after a suspend, a lease may
// seem to last longer than it does, and only the fencing token protects.
func NewSystemClock() clock.Clock { return clock.New() }
