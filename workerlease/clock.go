package workerlease

import "time"

// recheckHeld is how often a held lease is looked at again when the clock knows
// boot time: Go's timers stand still while the machine is suspended, boot time
// doesn't. recheckIdle is the same for a worker that holds nothing.
const (
	recheckHeld = time.Second
	recheckIdle = 30 * time.Second
)
