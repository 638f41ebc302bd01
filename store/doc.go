// Package store is the contract between the lease engine and the database that
// keeps its ledgers. It imports no other package of this module: anyone
// can implement a store.
//
// # The ledger
//
// Each worker type has a ledger: write-once records with the key (WorkerType, Seq),
// Seq = 1, 2, 3 … The newest record is the head. A grant gives its holder a window
// of time. One claim and all windows that it is granted make a term.
//
// A store needs only one atomic operation: "insert unless the key exists"
// ([Ledger.Append]). There is no update and no compare-and-swap. So a stalled or
// buggy worker can't overwrite a lease, reading the key settles an append whose
// outcome is unknown, and the ledger is its own audit trail.
//
// # What an implementation promises
//
//   - An inserted key stays until [Ledger.Trim] removes it, and Trim never removes
//     the head. The store itself (a TTL index, a retention policy) must never
//     delete records.
//   - An append is durable before it returns nil: a majority, the journal, or fsync,
//     as the store calls it.
//   - Tail and Get are strongly consistent: they see every append that was
//     acknowledged before they were called.
//   - Only [ErrConflict], [ErrInvalid] and [ErrNotStored] mean that an append did nothing.
//     After any other error the outcome is unknown: the record may be stored, now or later.
//   - Every operation returns soon after its context ends.
//   - All methods are safe for concurrent use.
//
// The suite in testutil/storetest checks these promises against a real server or
// file, all but durability.
//
// # Hints
//
// A store may be a [Watcher], too: it hints at releases, and workers that wait for one look at
// once. Nothing depends on that, and a hint may be lost or wrong.
//
// # The roster
//
// A store may be a [Roster], too: it keeps who is there, apart from the records, for people who look and for the
// order in which workers claim. Nothing else depends on that. All stores here do so.
//
// # Times
//
// Times in records are whole milliseconds in UTC. Append cuts off anything finer,
// so a record reads back equal to the one that was stored.
package store
