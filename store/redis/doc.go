// Package redis keeps ledgers in Redis 6.2 or later, or Valkey: [Open] makes a [store.Ledger] from a URI.
//
// # Before you use it
//
// Redis keeps data in memory, and is as durable as it is told to be. A ledger that loses its newest records may
// grant a slot to two workers. So:
//
//   - Set appendonly yes and appendfsync always. Without an append-only file a server is refused, unless the
//     URI says unsafeNoPersistence=true.
//   - Set maxmemory-policy noeviction. With another policy and a limit of memory a server is refused, because it
//     would delete ledgers.
//   - If there are replicas that may take over, add replicas=N to the URI, where N is the number of all of them.
//     Otherwise a failover loses the newest records.
//
// If you need more than this, use a store that acknowledges by a majority, such as etcd, MongoDB, or PostgreSQL with
// synchronous standbys.
//
// # Keys
//
// All keys of a ledger begin with its prefix in braces, {slotlease}: by default, so that they are in one slot of a
// cluster. Ledgers with different prefixes don't know of each other.
//
//	{slotlease}:ledger:TYPE   a sorted set: the records of a worker type, as JSON, each with its Seq as its score
//	{slotlease}:types         a sorted set: the worker types that have had records
//	{slotlease}:roster:TYPE   a hash: the presences of a worker type, as JSON, by their ids
//	{slotlease}:rosters       a sorted set: the worker types that have had presences
//	{slotlease}:sync          a string that reads overwrite if they wait for replicas
//	{slotlease}:watch         a channel, on which appends publish hints
//
// A score is a double, which holds every Seq exactly. The newest two records of a type, for people:
//
//	redis-cli ZREVRANGE {slotlease}:ledger:invoice-export 0 1 WITHSCORES
//
// The JSON of a record is that of [storekit.Encode]. Members whose scores are no Seq are passed over, and the newest
// is reported as an unreachable record. Two members with one score are a record with a Defect. A document of more
// than 8 MiB isn't read, and has a Defect.
//
// # Appends
//
// An append is one Lua script, which is [atomic]: no other command runs meanwhile. It looks whether the Seq has a
// member (ZCOUNT), and adds the record (ZADD NX) if not. All that may fail comes before that: Redis refuses a command
// that writes for want of memory, a disk, replicas or rights only before the first such command of a script has run. Its
// effects are replicated, not the script, so that replicas don't run it. It is sent by its hash (EVALSHA), and in full
// to a server that doesn't know it, as after a restart. It uses no functions, and needs no deployment.
// INFO replication goes before it in the same round trip: on a server that isn't a primary, such as a former one whose
// replica-read-only is no, the outcome is unknown.
//
// No request is ever sent twice, unless the server said that it had not run it (NOSCRIPT, MOVED), or has closed the
// connection while it was idle.
//
// # Reads
//
// A read is one script, too, with INFO replication before it in the same round trip: a server that isn't a primary at
// that moment gives an error, never an old answer. A primary that was cut off from its replicas, one of which has
// become the primary without its knowledge, doesn't know that. It answers with what it has, and even takes appends,
// which are lost when it is back. min-replicas-to-write makes that rarer, and replicas=N prevents it, see below.
//
// # What survives
//
// By the configuration of the server, which [Ledger.Durability] and [Ledger.Examine] report:
//
//	                       its process dies                       its machine loses power
//	appendfsync always     all survive                            all survive
//	appendfsync everysec   all, or up to 2 s lost while the       up to 2 s are lost
//	                       disk is slow
//	appendfsync no         all survive                            up to about 30 s are lost
//	snapshots alone        those since the last one are lost      those since the last one are lost
//	neither                all are lost                           all are lost
//
// With everysec the server holds back what it writes to the file for up to 2 s while an earlier sync is under way.
// With no-appendfsync-on-rewrite yes, nothing is synced while the file is rewritten, not even with always.
// [Ledger.Warning] says so. CONFIG GET tells these settings; managed services may not allow it, and then they are
// unknown. A server that is restored from a backup has lost its newest records: stop the workers first.
//
// # Failover and replicas
//
// Replicas copy what the primary has acknowledged already. If the primary dies before it has sent a record, and a replica
// is promoted, the record is gone, and another worker may append under the same Seq while the first one still works.
// TestAFailoverLosesAcknowledgedRecordsIfReplicasAreNotWaitedFor shows it. [Ledger.Warning] reports replicas that
// aren't waited for.
//
// With replicas=N in the URI, N replicas must have
//
//   - a record before its append returns nil, and
//   - all that a read returns before it returns: it makes a write after the script, and waits for that. So no worker
//     takes a record for its own that a failover may lose.
//
// This is Redis' own WAIT, sent along with the script on the same connection. If fewer replicas acknowledge within
// replicaWait (2 s by default), the operation fails, and the outcome of an append is unknown: the record is on the
// primary, and may be read as soon as the replicas have it. While too few are there, no slot is granted.
//
// WAIT isn't consensus. A replica acknowledges what it has in memory, and nobody makes sure that one of those N is
// promoted. So let N be the number of all replicas: then each that may be promoted has all, and a primary that
// was cut off from one of them can neither append nor read. The price is that no slot is granted while any replica is
// down, as after a failover, until the former primary is back as a replica or the URI says less. Nothing helps if
// a replica that has lost its memory is promoted. All handles of a ledger must have the same N: one with less
// takes records for its own that the others wouldn't.
//
// # Sentinels and clusters
//
// redis+sentinel:// asks one sentinel after another for the primary of a service, at each new connection, and before an
// operation if the last answer is more than a second old. So a primary that a sentinel has replaced isn't used any more,
// although it may not know of that for 10 s. A server
// that says that it is no primary, or that it is loading, is left for the one that has the address then. Sentinels may
// want a password: Options.SentinelPassword, or REDIS_SENTINEL_PASSWORD with [store.Open].
//
// A cluster is asked at the node in the URI, and followed to the node that has the keys (MOVED). While the slot is
// being moved to another node, appends may fail (ASK, TRYAGAIN), and surely store nothing. If the node in the URI is
// down at the start, nothing works: use an address that leads to those that are up.
//
// # What is refused
//
// With [store.ErrRefused], at the first use, again every 10 min, over each new connection, and soon after errors:
//
//   - a version before 6.2;
//   - a replica, and whatever else isn't the one primary, such as KeyDB's active replicas. An active-active database
//     of Redis Enterprise (CRDT) accepts one key in several places, and can't be told from another: don't use it;
//   - maxmemory with another maxmemory-policy than noeviction;
//   - no append-only file, unless unsafeNoPersistence=true accepts that, as it must where a managed service has
//     replicas in place of it (replicas=N goes with it);
//   - a ledger whose key has a time to live (EXPIRE), by every operation on it: PERSIST it;
//   - a key of the ledger with a value of another type.
//
// Between two checks, an administrator can still do damage: by FLUSHALL, or by another policy.
//
// # Rights
//
// A worker needs this and no more. Where there are several prefixes, each has its own user.
//
//	ACL SETUSER worker on >PASSWORD ~{slotlease}:* resetchannels &{slotlease}:watch \
//	  +ping +info +eval +evalsha +time +pttl +zadd +zcount +zcard +zrange +zrangebyscore +zrevrangebyscore \
//	  +zremrangebyrank +hset +hdel +hgetall +type +exists +publish +subscribe
//
// and +set +wait with replicas=N, +select with another database than 0, +client|setname for its name in CLIENT LIST, and
// +config|get for all that [Ledger.Durability] can say. Such a user can still rewrite records by ZADD,
// and write to the ledgers of other worker types. Without +zremrangebyrank nothing is trimmed; without +publish and the
// channel nobody gets hints; nothing else changes. People who look need no command that writes: Options.ReadOnly.
//
// A password stands in the URI, in Options, or for [store.Open] in REDISCLI_AUTH. It shows nowhere.
//
// # Errors
//
// An append has surely stored nothing ([store.ErrNotStored]) if the server replied OOM, LOADING, MASTERDOWN, READONLY,
// NOREPLICAS, BUSY, MISCONF, NOSCRIPT, CROSSSLOT, MOVED, ASK, TRYAGAIN, CLUSTERDOWN, WRONGTYPE, NOPERM, NOAUTH,
// WRONGPASS, that there are too many clients, or that it doesn't know a command, and if no connection could be made. After
// anything else, a lost connection, the end of the context, or too few replicas, the outcome is unknown: read the
// key. An operation ends with its context, whatever the server does: give each one a deadline. Without one, a server that is
// silent is given up after two minutes.
//
// # Time
//
// Append, Tail and Now read TIME, in µs, inside their scripts or beside them, without another round trip. In a script, time
// stands still at its start, which lies between the call and the return. The uncertainty after one stamp is half of the
// round trip and 1 µs, and the skew: of a single server none; where replicas were seen, or with sentinels or in a
// cluster, 100 ms, because the clock of a server that takes over may be another one. That figure is an assumption; the
// parameter serverSkew sets it. Set it, too, if a replica may take over that isn't connected at the moment.
//
// # Hints
//
// A release, and what else may free a lease, is published on the channel by the script that stores it. [Ledger.Watch]
// subscribes on a connection of its own. A hint that is lost costs nothing but the time until a worker looks anyway.
//
// # Costs
//
// An append is one request of about 1 KB, a tail one of 0.3 KB whose reply has 0.4 KB and 0.6 KB for each record. A
// record takes about 730 bytes of the server's memory, and 1 KB of its append-only file until that is rewritten. With
// replicas=N a read writes, too. A ledger has up to 16 connections at a time, and one for a watch.
//
// Measured by go test -bench . with Debian's redis-server 7.0.15 over the loopback interface, on a machine with two
// busy cores and a disk that syncs in 0.2 ms:
//
//	                                  p50       p99
//	append, appendfsync always     0.39 ms     14 ms
//	append, appendfsync everysec   0.10 ms    0.3 ms
//	tail of 2 in 100,000 records   0.18 ms      3 ms
//	now                            0.07 ms    1.4 ms    the time is known to ±0.04 ms
//
// In a ledger of 100,000 records, leasectl status, why, inspect slots and doctor take up to 15 ms, and verify 5.6 s (make long).
//
// # What was tested, and what wasn't
//
// All tests run on Redis 7.0.15, with real replicas, sentinels, a cluster of two nodes, TLS and kills. They were run by
// hand on Redis 6.2.16 and Valkey 8.0.1, built from source, but for TLS, and on 6.2 for replies while data is loaded.
// Managed services weren't tried.
//
// [atomic]: https://redis.io/docs/latest/develop/interact/programmability/eval-intro/
package redis
