// Package memory is a ledger in the memory of one process: for tests, for
// examples, and for workers that are goroutines of one program. It keeps the
// whole contract of [store.Ledger] but durability.
//
// Store time is the injected clock's, so that with a mock clock, or inside a
// testing/synctest bubble, everything is deterministic.
package memory
