// Package memory is a ledger in the memory of one process: for tests, for
// examples, and for workers that are goroutines of one program. It keeps the
// contract of [store.Ledger] except for durability.
//
// Store time comes from the injected clock, so tests with a mock clock, or inside a
// testing/synctest bubble, are deterministic.
package memory
