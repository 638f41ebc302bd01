// Package mongo keeps ledgers in a MongoDB collection: [Open] makes a
// [store.Ledger] of a URI or of a client.
//
// # Documents
//
// A record is one document, inserted once and never updated. Its _id is the
// worker type, a colon, and the Seq in 20 digits ([store.Key]); the other fields
// are those of [store.Record] in camelCase, with times as BSON dates, and absent
// where a time is zero. All that must be unique or sorted rests on _id. So
// there is no index to create, a collection that [Ledger.Init] has never seen is
// as safe as any, and a document whose fields contradict its key is shown, with a
// Defect, where its key says.
//
// Documents are obeyed by their envelope. A fault in it gives a Defect; other
// fields that are missing, of a wrong type, given twice or too long are left out,
// and fields that this version doesn't know aren't read.
//
// # Guarantees
//
// Whatever the URI or the client says, writes are sent with write concern
// majority and journal, and reads with read concern majority to the primary.
//
//   - [Ledger.Append] returns nil only when a majority of the replica set has the
//     record in its journal: no election and no rollback can take it away.
//   - Of any number of appends to one key at most one returns nil.
//   - An append that was made but not confirmed by a majority (a write-concern
//     error), a time-out, a lost connection and an election are all unknown: the
//     record may be there, or may land later. Read the key back. The driver
//     repeats a write by itself when it can; [store.ErrConflict] may therefore
//     hide one's own success, and should be settled in the same way.
//   - Reads show only what a majority has. In the first moments after an election
//     a primary, or one that doesn't know yet that it was replaced, may still
//     answer with an older state. For a ledger that is harmless: who acts on it
//     appends to a key that is taken, and gets a conflict.
//
// An operation ends with its context, also while no primary can be reached (the
// driver waits for one), and its error then matches context.DeadlineExceeded or
// context.Canceled. Give each operation a deadline: without one it can wait as
// long as the driver does.
//
// Errors of an operation are of one line; those that list all that is wrong, be
// it with the options of [Open] or with a record to append, have a line for each.
// None shows a password, nor other secrets of the URI. The driver's error is in
// the chain, for errors.As, with its own text.
//
// # Collections that are refused
//
// At the first use, and then once an hour, the collection is looked at. It is
// refused with [store.ErrRefused] if it is sharded (_id is unique only within a
// shard), a view, a time series or capped, if it has a collation other than the
// simple one (different keys could pass for equal), or if it has a TTL index or
// expires its documents, since that would delete the head of a ledger some day.
// A sharded cluster may well be used, with a collection that isn't sharded; if it
// can't be found out whether it is, for want of rights, it is refused, too, unless
// Options.UnsafeUnverified is set. Between two looks somebody with the rights of
// an administrator can still do damage.
//
// # Rights
//
// The role readWrite on the database has them all. The least is a role of its
// own with these actions on the collection: find, insert and remove (for
// trimming) are needed always; listIndexes and, on the database,
// listCollections let the checks above see what they look at, and are done
// without where they are not granted; collStats is needed behind mongos;
// createCollection is needed by Init, if the collection isn't there.
//
// # Time
//
// [Ledger.Now] sends hello to the primary, which answers with its own clock, in
// milliseconds; no rights are needed. The stamp names the server by the address
// that the driver used and by the server's own name, so that a failover shows.
// With a client of the caller's that is the server's own name alone, which a
// standalone server doesn't give; it is called "mongodb" then. Behind mongos,
// whose clock is none of the store's, the shard that holds the collection is
// asked with $collStats, and the collection must exist.
//
// That the clocks of a deployment's servers are at most Options.ServerSkew apart,
// 100 ms by default, is an assumption: keep them synchronised.
//
// # Failover
//
// An election takes up to some 12 s, in which appends fail or wait. Nothing is
// written while a lease runs, so a lease that is held goes on undisturbed.
//
// # What was tested, and what wasn't
//
// The conformance suite runs against FerretDB, over TCP, or against the server
// named in MONGODB_URI. FerretDB is a single server: elections, rollbacks and
// what majority means are MongoDB's promises, not shown by our tests. Replica
// sets, mongos, throttling and refusals are tested with a fake server made
// after the documentation.
//
// Reads don't send their deadline along as maxTimeMS, since FerretDB 1.24 answers
// a find whose time is up with what it has so far, and no error. A timeout of the
// client's own (timeoutMS, or SetTimeout) makes the driver send it all the same:
// set none for such a server.
//
// Azure Cosmos DB's API for MongoDB speaks the same protocol: its throttling
// (error 16500) becomes a [store.ThrottledError] with the wait that it names, and
// the error 117 of some lost races a conflict. No real account was tested, and
// neither was Amazon DocumentDB. Accounts with writes in several regions can't
// keep a ledger, and this package can't tell them apart: use store/cosmos, which
// can.
package mongo
