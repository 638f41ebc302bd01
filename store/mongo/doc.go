// Package mongo keeps ledgers in a MongoDB collection: [Open] makes a
// [store.Ledger] from a URI or a client.
//
// # Documents
//
// A record is one document, inserted once and never updated. Its _id is the worker
// type, a colon, and the Seq in 20 digits ([store.Key]). The other fields are those
// of [store.Record] in camelCase, with times as BSON dates; a zero time is left out.
// Uniqueness and order rest on _id alone, so there is no index to create. A document whose
// fields contradict its key appears at its key, with a Defect.
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
//   - An append is sent once: the driver doesn't repeat it. After a write-concern error (it was
//     made but not confirmed by a majority), a time-out, a lost connection or an election, the
//     outcome is unknown: the record may be stored, now or later. Read the key back.
//   - [store.ErrConflict] says that this append stored nothing, not that the record at
//     the key stays. A primary that was cut off answers so, with error 11000 and a
//     write-concern error in one reply, for a record that only it has, and which is
//     rolled back later. Until then reads don't show it, and the key looks free.
//   - A denial, and a refusal because of what the collection is, says that nothing was
//     stored ([store.ErrNotStored]), unless there is a write-concern error beside it.
//   - Reads show only what a majority has. Shortly after an election they may show an
//     older state. That is harmless: an append after a stale read finds its key taken.
//
// A session in the caller's context, as that of a transaction, is left aside: a record
// stays stored when the transaction is aborted.
//
// An operation ends with its context, even while the driver waits for a primary. Give each a
// deadline: without one it can wait as long as the driver does. What the server has begun by then
// holds no lock that others wait for, and ends with the deadline, which the driver sends along
// (maxTimeMS), or with the connection, which a cancelled operation loses. An append may be made
// later, so its outcome is unknown.
//
// An error is one line: what each server answers if there is no primary; which action isn't
// granted, to whom, and in which database that user authenticated. store.Detail returns the
// driver's own words. No error shows a password or another secret of the URI, nor a user
// that may be a key. The driver's error is in the chain, for errors.As, with its own text.
//
// # Collections that are refused
//
// The collection is checked at the first use and then once an hour, with mongos every
// 4 minutes. It is refused with [store.ErrRefused] if it
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
// Where rights are missing to list the collection and its indexes, docs/stores/mongodb.md says what
// the first append shows all the same. If rights, or commands, are missing to find out with mongos
// whether the collection is sharded, it is refused, unless Options.UnsafeUnverified is set. Any other
// answer may pass, as while the config servers have no primary: then the first operation fails,
// and later ones go on with what is known. Between two checks, an administrator can still do damage.
//
// # Sharded collections
//
// A collection may be sharded by _id or by workerType, ranged or hashed. With workerType,
// the records of a worker type are on one shard, and every operation on it asks that shard
// alone: that is the key for many worker types. With a hash of _id, [Ledger.Tail] asks all
// shards. Uniqueness holds while chunks move: the records of a type are in one chunk, and
// MongoDB takes no writes to it on two shards at a time.
//
// An operation for which a check is due does it first, and others wait for it. One that
// fails counts for 5 s. MongoDB spends at least 5 minutes on resharding, unless
// reshardingMinimumOperationDurationMillis is lower or it is told to run in demoMode, and
// shows the new key from the beginning: a key that is unfit is seen before it counts.
// refineCollectionShardKey has no such time, so don't extend the key.
//
// With the shard key workerType, reads don't see a document that has a key of one worker
// type and the workerType of another; only a foreign program writes such. An append that it
// keeps out is refused, and names it.
//
// # Rights
//
// Credentials authenticate in the database that authSource names, else in that of the
// URI's path, else in admin, as the connection string's specification has it.
//
// The role readWrite on the database suffices, but for a collection that is sharded. The
// minimum is a custom role with these actions on the collection:
//
//   - find, insert, and remove (for trimming): always;
//   - listIndexes and, on the database, listCollections: for the checks above;
//   - collStats: with mongos;
//   - if the collection is sharded, also find on config.collections, and collStats on the
//     collection slotlease.clock of the database, which needn't exist;
//   - createCollection: for Init, if the collection doesn't exist;
//   - changeStream: for hints.
//
// # The roster
//
// The collection <collection>_roster, WorkerLeases_roster by default, keeps who is there: one document
// for each worker, which each Attend replaces. Its _id is the worker type, a colon, and the ID. The other
// fields are those of [store.Presence] by their names in JSON, with times as BSON dates and labels as a list
// of name and value; what is empty is left out. No lease depends on it, so writes have write concern 1 and
// reads have read concern local on the primary: what a failover loses is soon written again.
//
// Its rights are find to list it, insert and update to attend, and remove to leave, all on that collection,
// and createCollection for Init. Without them the operation gets [store.ErrDenied], and nothing else changes.
// A collection that is missing is empty. MongoDB creates it with the first Attend.
//
// # Hints
//
// [Ledger.Watch] reads a change stream of the collection, through which only inserts of releases
// and overrides, and of kinds that this version doesn't know, pass, with their keys alone. They
// come when a majority has them. One watch keeps one connection of the client. So there are no
// hints with maxPoolSize=1 in the URI, and a client of the caller's own must have one to spare, for
// which operations would wait otherwise.
// Idle, it costs two getMore a minute, or more if a time-out of the client is shorter than half a
// minute. An election ends it, and workers begin it anew some seconds later. Without the right, and
// where a server has no change streams, workers do without hints. With mongos, hints of a shard may
// wait for the others' no-ops:
// https://www.mongodb.com/docs/manual/administration/change-streams-production-recommendations/#sharded-clusters
//
// # Time
//
// [Ledger.Now] sends hello to the primary, which answers with its own clock in milliseconds. The
// stamp names the server by the address that the driver used and by the server's own name, so a
// failover shows. With the caller's own client, the stamp has only the server's own name. The clock
// of a mongos isn't the store's clock, so there the shard that holds the collection is asked, with
// $collStats. If the collection is sharded, all workers ask the primary shard of the database, for
// the collection slotlease.clock: what doesn't exist belongs there. Don't shard it. With each check, the
// clocks of the shards are compared, since any of them may become the primary one: if they surely
// differ by more than ServerSkew, the skew of stamps is what was measured, and [Ledger.Warning] names
// the servers. A secondary stands for a shard without a primary. If no member of a shard answers, the
// last comparison counts, else ServerSkew, and Ledger.Warning says so.
//
// Another worker may have its time from a member that was the primary before, or will be. So each
// ledger measures how far the clock of every member that can be elected (hello's hosts) is from
// the primary's, and Stamp.Skew is the most of these. It says hello to each of them over a
// connection of its own, with the URI's TLS and without authentication, unless the member answered
// within the last 2 s. The round trip bounds the error, 1000 ppm of its age the drift. Clocks that agree
// within 2 ms, on a network of 1 ms, give a skew of about 6 ms.
//
//   - A stamp waits up to 1.5 s for a member of which nothing is known, or nothing of the last
//     30 s, and up to 250 ms for a newer answer of any other where that makes the time more certain.
//   - A primary whose clock contradicts what was measured of it was set, or the machine was
//     suspended: all members are measured again before the stamp is given.
//   - A member that can't be asked is assumed to be within Options.ServerSkew (100 ms) of the
//     others, or of where it was seen less than 30 s before it stopped answering. That adds to what
//     was measured. So does a member whose name can't be resolved here, or leads to another server.
//   - With the caller's own client, members can't be asked one by one. ServerSkew is assumed. So it
//     is for a server that says nothing of its process (topologyVersion, since MongoDB 4.4), as
//     services with many machines behind one address don't.
//
// A member that is far away costs as much as its round trip. Give it the priority 0 if it isn't to be
// elected: then it isn't asked. What isn't covered: a member whose clock is off by more than ServerSkew
// from where it was seen last, which gives other workers their time, and which this one can't reach.
//
// # Failover
//
// After 30 s without a primary, the client is made anew, for the set and the members that it knew: the
// driver by itself never asks a server again that was in no replica set for a while, nor the primary of
// a set that was initiated anew. A client of the caller's own isn't made anew.
//
// An election takes up to about 12 s with the default settings of a replica set
// (https://www.mongodb.com/docs/manual/core/replica-set-elections/), in which appends
// fail or wait. A worker that holds a lease continues undisturbed to the end of its
// window. With FailoverWithin, windows are short, and extended a quarter of it before they
// end: below about 65 s, an election may cost the lease. With Continuous, a lease goes on
// into the next slot if the election is shorter than Lead. Either way no two work at once.
//
// # What was tested, and what wasn't
//
// The conformance suite runs against FerretDB over TCP, or against the server named
// in MONGODB_URI. FerretDB is a single server. A fake replica set plays elections, kills and
// partitions, with rollbacks. Its replies are compared with those recorded from MongoDB 5.0.7, in
// testdata/replies. mongos, throttling and refusals are tested with a fake server written to match
// the documentation. With a mongod and a mongos, make mongodb shows the same on real servers.
//
// docs/stores/mongodb.md lists the services that speak the protocol, with what works and what was tested.
// Cosmos DB's throttling (error 16500) becomes a [store.ThrottledError] with the wait that it names.
package mongo
