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
//   - A denial, and a refusal because of what the collection is, says that nothing was stored
//     ([store.ErrNotStored]), if the append was sent at most once. With a client of the caller's own that isn't known, and the outcome is
//     unknown, too. An error of a look at the collection before the append was sent says so in any case.
//   - Reads show only what a majority has. Shortly after an election, the new
//     primary, or an old one that doesn't know yet that it was replaced, may answer
//     with an older state. For a ledger that is harmless: an append after a stale
//     read finds its key taken and gets a conflict.
//
// A session in the caller's context, as that of a transaction, is left aside: a record
// stays stored when the transaction is aborted.
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
//   - is sharded by another key than _id or workerType alone, or is being resharded by
//     one, because _id is unique only within a shard;
//   - is a view, a time series, capped or clustered;
//   - has a validator that doesn't only warn, because that may keep records out;
//   - has a collation other than the simple one, because different keys could be
//     equal under it;
//   - has a unique index but that on _id, because that would keep out records whose key is
//     free. One that is added later is refused by the next append, if the server names the
//     index, else within the hour;
//   - has a TTL index or expires its documents, because that would delete the head
//     of a ledger.
//
// If rights, or commands, are missing to find out with mongos whether the collection is sharded, it
// is refused, too, unless Options.UnsafeUnverified is set. Any other answer may pass, as while the
// config servers have no primary: then the first operation fails, and later ones go on with what is
// known. Between two checks, an
// administrator can still do damage.
//
// # Sharded collections
//
// A collection may be sharded by _id or by workerType, ranged or hashed. With workerType,
// the records of a worker type are on one shard, and every operation on it asks that shard
// alone: that is the key for many worker types. With a hash of _id, [Ledger.Tail] asks all
// shards. Uniqueness holds while chunks move: the records of a type are in one chunk, and
// MongoDB takes no writes to it on two shards at a time.
//
// The shard key is looked at every 4 minutes. An operation for which that is due does it
// first, and others wait for it. A look that fails, as without config servers, counts for 5 s, so
// that operations don't try in turn. MongoDB spends at least 5 minutes on resharding, unless
// reshardingMinimumOperationDurationMillis is lower or it is told to run in demoMode, and
// shows the new key from the beginning: a key that is unfit is seen before it counts.
// refineCollectionShardKey has no such time, so don't extend the key.
//
// With the shard key workerType, reads don't see a document that has a key of one worker
// type and the workerType of another; only a foreign program writes such. If it keeps an
// append out twice, the second append is refused, and names it.
//
// Where rights are missing to list the collection and its indexes, the first append shows
// a validator that refuses it, a view, a unique index that has its value already, and a
// time series unless its time field is one of a record's. Nothing shows what is capped or
// clustered there, a collation, or a TTL index: check these yourself, or grant the rights.
//
// # Rights
//
// Credentials authenticate in the database that authSource names, else in that of the
// URI's path, else in admin, as the connection string's specification has it. A user that
// was made in admin needs authSource=admin if the path names a database.
//
// The role readWrite on the database suffices, but for a collection that is sharded: it lacks find on
// config.collections, which Options.UnsafeUnverified doesn't replace. The minimum is a custom role
// with these actions on the collection:
//
//   - find, insert, and remove (for trimming): always;
//   - listIndexes and, on the database, listCollections: for the checks above, which
//     are skipped where these rights are missing;
//   - collStats: with mongos;
//   - if the collection is sharded, also find on config.collections, and collStats on the
//     collection slotlease.clock of the database, which needn't exist;
//   - createCollection: for Init, if the collection doesn't exist;
//   - changeStream: for hints.
//
// [Ledger.CheckRights] finds out, without storing anything, whether insert is granted. It
// sends connectionStatus and, if that doesn't list the right, an insert of a document that
// no server takes. Servers that don't tell count as granting it.
//
// # The roster
//
// The collection <collection>_roster, WorkerLeases_roster by default, keeps who is there: one document
// for each worker, which each Attend replaces. Its _id is the worker type, a colon, and the ID. The other
// fields are those of [store.Presence] by their names in JSON, with times as BSON dates and labels as a list
// of name and value; what is empty is left out. No lease depends on it, so writes have write concern 1 and
// reads have read concern local on the primary: a majority would cost a round trip between members each time,
// and what a failover loses is soon written again. Ten presences are one command.
//
// Its rights are find to list it, insert and update to attend, and remove to leave, all on that collection,
// and createCollection for Init, if the collection doesn't exist. Without them the operation gets
// [store.ErrDenied] with the name of the collection, and nothing else changes: neither Init nor
// CheckRights demands them. A collection that is missing is empty. MongoDB creates it with the first Attend.
//
// # Hints
//
// [Ledger.Watch] reads a change stream of the collection, through which only inserts of releases
// and overrides, and of kinds that this version doesn't know, pass, with their keys alone. They
// come when a majority has them. One watch keeps one connection of the client. So there are no
// hints with maxPoolSize=1 in the URI, and a client of the caller's own must have one to spare:
// once an operation beside a watch gets none in its time, the handle watches no more. Idle, it
// costs two getMore a minute, or more if a time-out of the client is shorter than half a minute;
// and the server reads its log of all changes for each watch. An election ends it, and workers
// begin it anew some seconds later. Without the right, and where a server has no change streams,
// workers do without hints. With mongos, hints of a shard may wait for the others' no-ops:
// https://www.mongodb.com/docs/manual/administration/change-streams-production-recommendations/#sharded-clusters
//
// # Time
//
// [Ledger.Now] sends hello to the primary, which answers with its own clock in
// milliseconds; that needs no rights. The stamp names the server by the address that
// the driver used and by the server's own name, so a failover shows. With the
// caller's own client, the stamp has only the server's own name; a standalone server
// gives none and is called "mongodb". The clock of a mongos isn't the store's clock,
// so with mongos the shard that holds the collection is asked with $collStats, and
// the collection must exist. If that is sharded, all workers ask the primary shard of the
// database, for the collection slotlease.clock: what doesn't exist belongs there. Don't
// shard it. With each look at the shard key, the clocks of the shards are compared, since
// any of them may become the primary one: if they surely differ by more than ServerSkew,
// the skew of stamps is what was measured, and [Ledger.Warning] names the servers. A secondary
// stands for a shard without a primary. If no member of a shard answers, mongos answers for none:
// the last comparison counts or, before the first, ServerSkew, and Ledger.Warning says so.
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
//     before, it fails. A stamp over 30 s after a member failed waits 250 ms for it at most, since it
//     may be back.
//   - It waits up to 250 ms, and as a rule 4 round trips, for a newer answer of any other, where
//     that makes the time more certain: not for a member that is far away.
//   - A primary whose clock contradicts what was measured of it was set, or the machine was
//     suspended: all members are measured again before the stamp is given. One that can't be asked
//     stays where it was, or moves as the others did: whichever they show. If it is the only other
//     one, both are allowed for until it answers.
//   - A member that can't be asked is assumed to be within Options.ServerSkew (100 ms) of the
//     others, or of where it was seen less than 30 s before it stopped answering. That adds to what
//     was measured. So does a member whose name can't be resolved here, or leads to another server.
//   - With the caller's own client, members can't be asked one by one. ServerSkew is assumed. So it
//     is with mongos, between shards.
//   - A server that says nothing of its process (topologyVersion, since MongoDB 4.4), as services
//     with many machines behind one address don't, counts as at least ServerSkew off.
//
// A member that is far away costs as much as its round trip: 250 ms away, its clock is known to
// 250 ms, and ServerSkew doesn't lower that, because what was measured counts. Give a member
// elsewhere the priority 0, if it isn't to be elected: then it isn't asked. A step by less than the
// round trip contradicts no answer, and is covered 30 s later.
//
// A member that is off by more than ServerSkew is named by [Ledger.Warning], which workers report;
// the skew of stamps covers it all the same. What isn't covered: a member whose clock is off by
// more than ServerSkew from where it was seen last, which gives other workers their time, and which
// this one can't reach. And if the primary's clock is set under way, what workers knew before was
// right by the clock of then: see the protocol's jumps. Stamp.Clock names the primary's process, so
// that a pause of the worker's virtual machine, or a step, counts at once although the members are
// further apart than that.
//
// # Failover
//
// A server that was in no replica set for a while, or in another one, and the primary of a set that was
// initiated anew over its data, are found again within about 30 s: the client is made anew, for the set and
// the members that it knew. Nothing is stored in a server that is in no set meanwhile. With the
// caller's own client they are not: the driver asks them no more, or ignores them, as long as the
// client lives.
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
// The suite runs on a collection sharded by worker type, too, through a fake router before
// FerretDB. One winner for each key while chunks move was seen on a cluster of MongoDB 5.0.7,
// outside of our tests.
//
// With a mongod and a mongos, make mongodb runs the conformance suite, workers through
// elections and rollbacks, and the least rights on real servers: see testutil/mongopeer.
//
// Reads don't send their deadline along as maxTimeMS: at the end of that time,
// FerretDB 1.24 answers a find with a partial result and no error. The driver is only
// told when to stop waiting. It reads a reply that is up to 400 ms late to its end, so a
// read that times out costs no connection.
//
// # Services that speak the protocol
//
// docs/mongodb.md lists them, with what works and what was tested. Azure Cosmos DB for
// MongoDB (RU) and DocumentDB, which Azure DocumentDB is, are asked for the shard key in
// their own ways. DocumentDB and FerretDB 2 answer with the clock of the gateway or proxy
// that was asked, so they are refused without Options.ServerSkew, or serverSkew in the URI. Where the driver's
// repetition of writes is refused, as by Amazon DocumentDB before 8.0.2, appends are sent
// as writes that aren't repeated.
//
// Cosmos DB's throttling (error 16500) becomes a [store.ThrottledError] with the wait that
// it names, and the outcome of an append that gets the error 117 (another operation is in
// progress) is unknown. An account with writes in several regions can't keep a ledger, and
// this package can't detect one: use store/cosmos, which can.
package mongo
