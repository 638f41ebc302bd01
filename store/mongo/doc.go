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
// The error of an operation is one line. An error that lists all faults of options
// or of a record has one line per fault. No error shows a password or another secret
// of the URI. The driver's error is in the chain, for errors.As, with its own text.
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
// The role readWrite on the database suffices. The minimum is a custom role with
// these actions on the collection:
//
//   - find, insert, and remove (for trimming): always;
//   - listIndexes and, on the database, listCollections: for the checks above, which
//     are skipped where these rights are missing;
//   - collStats: with mongos;
//   - createCollection: for Init, if the collection doesn't exist.
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
// # Clocks that differ
//
// Another worker may have its time from a member that was the primary before, or will be. So each
// ledger measures how far the clock of every member that can be elected (hello's hosts) is from
// the primary's, and Stamp.Skew is the most of these. It says hello to each of them over a
// connection of its own, with the URI's TLS and without authentication, at the same time as to the
// primary, unless the member answered within the last 2 s. The round trip bounds the error, 1000 ppm
// of its age the drift. Clocks that agree within 2 ms, on a network of 1 ms, give a skew of
// about 6 ms.
//
//   - A stamp waits up to 1.5 s for a member of which nothing is known, or nothing of the last
//     30 s: at first use, after it has joined the set, after an idle time. If the operation ends
//     before, it fails. No stamp waits again for a member that didn't answer.
//   - It waits up to 250 ms, and as a rule 4 round trips, for a newer answer of any other, where
//     that makes the time more certain: not for a member that is far away.
//   - A primary whose clock contradicts what was measured of it was set, or the machine was
//     suspended: all members are measured again before the stamp is given.
//   - A member that can't be asked is assumed to be within Options.ServerSkew (100 ms) of the
//     others, or of where it was seen less than 30 s before it stopped answering. That adds to what
//     was measured. So does a member whose name can't be resolved here, or leads to another server.
//   - With the caller's own client, members can't be asked one by one. ServerSkew is assumed. So it
//     is with mongos, between shards.
//   - A server that says nothing of its process (topologyVersion, since MongoDB 4.4), as services
//     with many machines behind one address don't, counts as at least ServerSkew off.
//
// A member that is off by more than ServerSkew is named by [Ledger.Warning], which workers report;
// the skew of stamps covers it all the same. What isn't covered: a member whose clock is off by
// more than ServerSkew from where it was seen last, which gives other workers their time, and which
// this one can't reach. And if the primary's clock is set under way, what
// workers knew before was right by the clock of then: see the protocol's jumps.
//
// # Failover
//
// An election takes up to about 12 s, in which appends fail or wait. A worker that
// holds a lease needs no write to keep it, and continues undisturbed.
//
// # What was tested, and what wasn't
//
// The conformance suite runs against FerretDB over TCP, or against the server named
// in MONGODB_URI. FerretDB is a single server, so elections, rollbacks and the
// meaning of majority are MongoDB's promises, not shown by our tests. Replica sets,
// mongos, throttling and refusals are tested with a fake server written to match the
// documentation.
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
