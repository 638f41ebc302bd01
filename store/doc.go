// Package store is the contract between the lease engine and the document
// store that keeps its ledgers. It is a leaf: it imports no other package of
// this module, so that anyone can implement a store.
//
// # The ledger
//
// Each worker type has a ledger: write-once records keyed by (WorkerType, Seq),
// Seq = 1, 2, 3 … The newest record is the head. A grant gives its holder a
// window of time; what one claim began, with all its windows, is a tenure. The one atomic operation that
// a store must offer is "insert unless the key exists" ([Ledger.Append]). There
// is no update and no compare-and-swap: a stalled or buggy worker can't
// overwrite a lease, an ambiguous reply can always be settled by looking at the
// key, and the ledger is its own audit trail.
//
// # What an implementation promises
//
//   - A key, once inserted, stays inserted until [Ledger.Trim] removes it, and
//     Trim never removes the head. No expiry of the store's own (a TTL index,
//     a retention policy) may touch records.
//   - Append is durable before it returns nil: majority, journal, fsync or
//     whatever the store calls it.
//   - Tail and Get are strongly consistent: they see every append that was
//     acknowledged before they were called.
//   - Only [ErrConflict] and [ErrInvalid] say that an append did nothing. Every
//     other error means "unknown": the record may be there, or may land later.
//   - Every operation returns soon after its context ends.
//   - All methods are safe for concurrent use.
//
// The suite in testutil/storetest checks all of this against a real peer.
//
// # Times
//
// Times in records are whole milliseconds, UTC. Append truncates what is finer,
// so that a record read back compares equal to the one that was stored.
package store
