// Package redis keeps ledgers in Redis 6.2 or later, or Valkey: [Open] makes a [store.Ledger] from a URI, or from the
// application's own client.
//
// # Before you use it
//
// Redis is as durable as it is told to be, and a ledger that loses its newest records may grant a slot to two workers. So:
//
//   - Set appendonly yes and appendfsync always. A server without an append-only file is refused, unless the URI says
//     unsafeNoPersistence=true.
//   - Set maxmemory-policy noeviction. A server with another policy and a limit of memory is refused: it would delete ledgers.
//   - Add replicas=N to the URI, where N is the number of all replicas that may take over, also of those that are down.
//     Otherwise a failover loses the newest records.
//
// Write the settings into redis.conf: what CONFIG SET changes is forgotten at the next start, and the ledger with it, unless
// CONFIG REWRITE keeps it. A server whose append-only file was just turned on isn't used before the first rewrite is over.
// If you need more, use a store that acknowledges by a majority: etcd, MongoDB, or PostgreSQL with synchronous standbys.
//
// # Keys
//
// All keys begin with the prefix in braces, so that they are in one slot of a cluster:
//
//	{slotlease}:ledger:TYPE   a sorted set: the records of a worker type, as JSON, each with its Seq as its score
//	{slotlease}:types         a sorted set: the worker types that have had records
//	{slotlease}:roster:TYPE   a hash: the presences of a worker type, as JSON, by their ids
//	{slotlease}:rosters       a sorted set: the worker types that have had presences
//	{slotlease}:sync          a string that reads overwrite if they wait for replicas
//	{slotlease}:watch         a channel, on which appends publish hints
//
// The JSON of a record is that of [storekit.Encode]. For people, the newest two records of a type:
//
//	redis-cli ZREVRANGE {slotlease}:ledger:invoice-export 0 1 WITHSCORES
//
// Members whose scores are no Seq are passed over, and the newest is reported as an unreachable record. Two members with one
// score, and a document of more than 8 MiB, are a record with a Defect. A reply of more than 32 MiB is broken off, and asked
// for in smaller parts. A single member that is larger is an error that names its key.
//
// A roster that is larger is read field by field, without what is too large for a presence. If that fails too, or the key isn't a hash,
// the error names the key, and a list of all worker types leaves that type out: [Ledger.Warning] says so.
//
// # Appends and reads
//
// An append is one Lua script, during which no other command runs. It looks whether the Seq has a member, and adds the record
// if not. All that may fail comes before that. Its effects are replicated, not the script. [Ledger.AppendAfter] also compares
// the record below with the one that its worker knows, so that a holder learns from its next append that the server was
// flushed, restored, or replaced by a replica that lacked records.
//
// INFO goes before each operation in the same round trip: a server that isn't a primary at that moment gives an error, never an
// old answer, and leaves the outcome of an append unknown. No request is sent twice, unless the server said that it had not run
// it (NOSCRIPT, MOVED), or has closed the connection while it was idle.
//
// A primary that was cut off from its replicas, one of which has taken over, doesn't know that: it answers with what it has, and
// takes appends that are lost when it is back. min-replicas-to-write makes that rarer, and replicas=N prevents it.
//
// # What survives
//
// [Ledger.Durability] and [Ledger.Examine] report it by the server's configuration:
//
//	                       its process dies                       its machine loses power
//	appendfsync always     all survive                            all survive
//	appendfsync everysec   all, or up to 2 s lost while the       up to 2 s are lost
//	                       disk is slow
//	appendfsync no         all survive                            up to about 30 s are lost
//	snapshots alone        those since the last one are lost      those since the last one are lost
//	neither                all are lost                           all are lost
//
// With no-appendfsync-on-rewrite yes, nothing is synced while the file is rewritten, not even with always. Managed services may
// not allow CONFIG GET, which tells these settings. A server that is restored from a backup has lost its newest records: stop
// the workers first.
//
// # Failover and replicas
//
// Replicas copy what the primary has acknowledged already. If one is promoted before it has a record, another worker may append
// under the same Seq while the first one still works. With replicas=N, N replicas must have a record before its append returns
// nil, and all that a read returns before it returns. This is Redis' own WAIT, sent along on the same connection. If fewer
// acknowledge within replicaWait (2 s by default), the operation fails, and the outcome of an append is unknown.
//
// WAIT isn't consensus: nobody makes sure that one of those N is promoted. So let N be the number of all replicas. The price is
// that no slot is granted while any of them is down, until it is back or the URI says less. Nothing helps if a replica that has
// lost its memory is promoted. All handles of a ledger must have the same N.
//
// Where records may be lost, [store.Stamp.History] names the server's replication (master_replid), which a promoted replica and
// each start change: after that workers claim nothing until all that may have been granted is over. A first replica, or a backup
// by redis-cli --rdb, changes it, too, and then the name stays.
//
// # Sentinels and clusters
//
// redis+sentinel:// asks one sentinel after another for the primary, at each new connection, and before an operation if the last
// answer is more than a second old: a former primary may not know for 10 s that it was replaced. A server that says that it is no
// primary, or is loading, is left for the one that has the address then. That is a failover, which passes: only a server that was
// never seen as a primary is refused for being a replica. Each check asks all sentinels, or all addresses of the host's name: two
// servers that both say that they are primaries are both refused, after 3 s in which sentinels agree about a failover.
//
// A cluster is asked at the node in the URI, and followed to the node that has the keys (MOVED). While the slot is being moved,
// appends may fail (ASK, TRYAGAIN), and surely store nothing. If the node in the URI is down at the start, nothing works.
//
// # The application's own client
//
// Options.Client is a *redis.Client of a server or of sentinels, or a *redis.ClusterClient. The ledger connects by its Dialer and
// logs in as it does, with its credentials provider. It keeps connections of its own, because the client's pool can't promise that
// replies come from one connection in order (WAIT), that no append is sent twice, and that an operation ends with its context. So
// time-outs, MaxRetries, PoolSize, ReadOnly and hooks don't count. Close leaves the client open. The replicas that only sentinels
// know aren't counted. Refused by name are *redis.Ring, whose keys move to another server when one is down, and
// NewFailoverClusterClient, which routes by what it knew last.
//
// # What is refused
//
// With [store.ErrRefused], at the first use, again every 10 min, over each new connection, and soon after errors:
//
//   - a version before 6.2;
//   - whatever isn't the one primary: a replica that is named in its place, two primaries, KeyDB's active replicas. An
//     active-active database of Redis Enterprise can't be told from another: don't use it;
//   - maxmemory with another maxmemory-policy than noeviction;
//   - no append-only file, unless unsafeNoPersistence=true accepts that, as it must where a managed service has replicas in
//     place of it (replicas=N goes with it);
//   - a ledger whose key has a time to live, by every append: PERSIST it;
//   - a key of the ledger with a value of another type.
//
// Between two checks, an administrator can still do damage, such as by FLUSHALL, which shows at the next append and read of each
// worker that knew more.
//
// # Rights
//
// leasectl init --print, or [Ledger.InitScript], has the ACL of a worker, and no more. It takes +client|setname besides for the
// program's name in CLIENT LIST, and +config|get for all that [Ledger.Durability] can say. Such a user can still rewrite records by
// ZADD. Without +zremrangebyrank nothing is trimmed; without +publish and the channel nobody gets hints; without +hkeys, +hstrlen and
// +hmget a roster that is larger than a reply can't be read. People who look (Options.ReadOnly) need no command that writes.
//
// # Errors
//
// An append has surely stored nothing ([store.ErrNotStored]) if no connection could be made, or by what the server replied: OOM,
// LOADING, MASTERDOWN, READONLY, NOREPLICAS, BUSY, MISCONF, NOSCRIPT, CROSSSLOT, MOVED, ASK, TRYAGAIN, CLUSTERDOWN, WRONGTYPE,
// NOPERM, NOAUTH, WRONGPASS, too many clients, or an unknown command. After anything else, a lost connection, the end of the
// context, or too few replicas, the outcome is unknown: read the key. An operation ends with its context: give each one a deadline.
// A silent server is given up after two minutes.
//
// # Time
//
// Append, Tail and Now read the clock, in µs, by the INFO that goes before them. The uncertainty is half of the round trip and
// 1 µs, and the skew: of a single server none; with replicas, sentinels or a cluster 100 ms, which serverSkew sets, because the
// clock of a server that takes over may be another one. Each check asks the clocks of the replicas that can be reached: if two are
// surely further apart than is assumed, stamps have what was measured, and [Ledger.Warning] says so.
//
// # Costs
//
// An append is one request of about 1 KB, a tail one of 0.3 KB whose reply has 0.4 KB and 0.6 KB for each record. A record takes
// about 730 bytes of the server's memory. With five workers, a lease takes 15 commands of the server, those inside scripts
// included. A ledger has up to 16 connections, and one for a watch; of idle ones it keeps one after 10 s, and none after a minute.
//
// All tests run on Redis 7.0.15, with real replicas, sentinels, a cluster of two nodes, TLS and kills. An earlier version was run by
// hand on Redis 6.2.16 and Valkey 8.0.1. Managed services weren't tried.
package redis
