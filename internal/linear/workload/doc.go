// Package workload is what clients do to a ledger so that a history of theirs is
// worth checking: they look at the head and claim the next key, fight for keys,
// fill holes, read back, and trim, on records whose every field is random. Each
// client draws from a generator of its own. Nothing is checked here, and no error
// matters: package linear records the calls.
package workload
