// Package mongo keeps ledgers in a MongoDB collection: [Open] makes a
// [store.Ledger] from a URI or a client.
//
// # Documents
//
// A record is one document, inserted once and never updated. Its _id is the worker
// type, a colon, and the Seq in 20 digits ([store.Key]). The other fields are those
// of [store.Record] in camelCase, with times as BSON dates; a zero time is left out.
// Uniqueness and order rest on _id alone. So there is no index to create, and a
// collection is as safe without [Ledger.Init] as with it. A document whose fields
// contradict its key appears at its key, with a Defect.
//
// Readers obey a document by its envelope. A fault in the envelope gives a Defect.
// Other fields that are missing, of a wrong type, given twice or too long come back
// empty, and fields that this version doesn't know aren't read.
//
// # Guarantees
//
// Whatever the URI or the client says, writes have write concern majority with
// journal, and reads have read concern majority and go to the primary.
//
//   - [Ledger.Append] returns nil only when a majority of the replica set has the
//     record in its journal. No election or rollback can remove it.
//   - Of any number of appends to one key, at most one returns nil.
//   - After a write-concern error (an append that was made but not confirmed by a
//     majority), a time-out, a lost connection or an election, the outcome is
//     unknown: the record may be stored, now or later. Read the key back. The driver
//     repeats writes by itself, so [store.ErrConflict] may hide one's own success;
//     settle it in the same way.
//   - [store.ErrConflict] says that this append stored nothing, not that the record at
//     the key stays: a primary that was cut off answers so (with error 11000 and a
//     write-concern error in one reply) for a record that only it has, and which is
//     rolled back later. Until then reads don't show it, and the key looks free.
//   - A denial says that nothing was stored ([store.ErrNotStored]), if the append was sent at
//     most once. With a client of the caller's own that isn't known, and the outcome is
//     unknown, too.
//   - Reads show only what a majority has. Shortly after an election, the new
//     primary, or an old one that doesn't know yet that it was replaced, may answer
//     with an older state. For a ledger that is harmless: an append after a stale
//     read finds its key taken and gets a conflict.
//
// An operation ends with its context, even while no primary can be reached and the
// driver waits for one. Its error then matches context.DeadlineExceeded or
// context.Canceled. Give each operation a deadline: without one it can wait as long
// as the driver does.
//
// The error of an operation is one line, which says what went wrong: which members of
// the replica set answer as what if there is no primary, which action isn't granted,
// to whom, and in which database that user authenticated. store.Detail returns the
// driver's own words. An error that lists all faults of options or of a record has one
// line per fault. No error shows a password or another secret of the URI, nor a user
// that may be a key. The driver's error is in the chain, for errors.As, with its own text.
//
// # Collections that are refused
//
// The collection is checked at the first use and then once an hour. It is refused
// with [store.ErrRefused] if it
//
//   - is sharded, because _id is unique only within a shard;
//   - is a view, a time series or capped;
//   - has a collation other than the simple one, because different keys could be
//     equal under it;
//   - has a unique index but that on _id, because that would keep out records whose key is
//     free. One that is added later is refused by the next append, if the server names the
//     index, else within the hour;
//   - has a TTL index or expires its documents, because that would delete the head
//     of a ledger.
//
// A sharded cluster is fine if this collection isn't sharded. If rights are missing
// to find that out, the collection is refused, too, unless Options.UnsafeUnverified
// is set. Between two checks, an administrator can still do damage.
//
// # Rights
//
// Credentials authenticate in the database that authSource names, else in that of the
// URI's path, else in admin, as the connection string's specification has it. A user that
// was made in admin needs authSource=admin if the path names a database.
//
// The role readWrite on the database suffices. The minimum is a custom role with
// these actions on the collection:
//
//   - find, insert, and remove (for trimming): always;
//   - listIndexes and, on the database, listCollections: for the checks above, which
//     are skipped where these rights are missing;
//   - collStats: with mongos;
//   - createCollection: for Init, if the collection doesn't exist.
//
// [Ledger.CheckRights] finds out, without storing anything, whether insert is granted. It
// sends connectionStatus and, if that doesn't list the right, an insert of a document that
// no server takes. Servers that don't tell count as granting it.
//
// # Time
//
// [Ledger.Now] sends hello to the primary, which answers with its own clock in
// milliseconds; that needs no rights. The stamp names the server by the address that
// the driver used and by the server's own name, so a failover shows. With the
// caller's own client, the stamp has only the server's own name; a standalone server
// gives none and is called "mongodb". The clock of a mongos isn't the store's clock,
// so with mongos the shard that holds the collection is asked with $collStats, and
// the collection must exist.
//
// The clocks of a deployment's servers are assumed to differ by at most
// Options.ServerSkew, 100 ms by default: keep them synchronised.
//
// # Failover
//
// An election takes up to about 12 s with the default settings of a replica set
// (https://www.mongodb.com/docs/manual/core/replica-set-elections/), in which appends
// fail or wait. A worker that holds a lease continues undisturbed to the end of its
// window. With FailoverWithin, windows are short, and extended a quarter of it before they
// end: below about 65 s, an election may cost the lease. With Continuous, a lease goes on
// into the next slot if the election is shorter than Lead. Either way no two work at once.
//
// [Ledger.OpenCopy] reads a secondary, also without a primary, for people who look at a
// ledger. What it shows has been confirmed by a majority, but the newest records may be
// missing.
//
// # What was tested, and what wasn't
//
// The conformance suite runs against FerretDB over TCP, or against the server named
// in MONGODB_URI. FerretDB is a single server.
//
// A fake replica set plays elections, step-downs, kills and partitions of a primary that
// clients still reach, with rollbacks of what only it has. Its replies are compared with
// those recorded from a MongoDB 5.0.7, in testdata/replies, which also check what each
// error means to a ledger. On it, the conformance suite passes, and workers of package
// workerlease never overlap, while they do with weaker read or write concerns. That
// real servers keep what majority means is MongoDB's promise. mongos, throttling and
// refusals are tested with a fake server written to match the documentation.
//
// With a mongod and a mongos, make mongodb runs the conformance suite, workers through
// elections and rollbacks, and the least rights on real servers: see testutil/mongopeer.
//
// Reads don't send their deadline along as maxTimeMS: at the end of that time,
// FerretDB 1.24 answers a find with a partial result and no error. If the client has
// its own timeout (timeoutMS, or SetTimeout), the driver sends it all the same, so
// set none for such a server.
//
// Azure Cosmos DB's API for MongoDB speaks the same protocol. Its throttling (error
// 16500) becomes a [store.ThrottledError] with the wait that it names, and the error
// 117 of some lost races a conflict. No real account was tested, and neither was
// Amazon DocumentDB. An account with writes in several regions can't keep a ledger,
// and this package can't detect one: use store/cosmos, which can.
package mongo
