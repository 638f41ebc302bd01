package workerlease

import "runtime"

// reserveStack grows the stack of a goroutine that has just begun to the 16 KB that an operation and the
// step after it need. Goroutines begin with 2 KB or, by an average that Go takes at each collection,
// somewhat more. Else each of them would copy what it has four times on its way: a fifth of the processor
// time of many workers.
//
//go:noinline
func reserveStack() {
	var space [14 << 10]byte
	runtime.KeepAlive(&space)
}
