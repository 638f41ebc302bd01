// Package boottime tells which clocks read the boot-time clock of the machine as all code of the
// process does: a store and an engine that have one each then have the same.
package boottime

import "time"

// Clock is such a clock. The method Boottime alone doesn't make it one: a wrapper or a test may play
// another time with that.
type Clock interface {
	// Boottime is the time since a moment that is fixed for the process. It goes on while the
	// machine is suspended.
	Boottime() time.Duration
	// Reads does nothing. Its parameter keeps code outside of this module from promising what
	// only the real clock can, and tests that play a whole machine.
	Reads(Machine)
}

// Machine stands for the machine's own clock.
type Machine struct{}

// Of returns a clock as one that reads the machine's boot time, if it is one.
func Of(clock any) (c Clock, ok bool) {
	c, ok = clock.(Clock)
	return c, ok
}
