// Package nats keeps ledgers in a key-value bucket of NATS JetStream, on servers of version 2.10 or later: [Open] makes a
// [store.Ledger] from a URI such as
//
//	nats://worker@10.0.0.1,10.0.0.2,10.0.0.3/leases?tls=true
//
// It is a module of its own, so that only programs that import it link NATS' client.
//
// # Keys
//
// A record is one key, and a presence another. Dots in names are equals signs in keys:
//
//	ledger.TYPE.N    N: 2^53-1 less the Seq, in 16 digits
//	roster.TYPE.ID
//	barrier          is put before each list, where several servers keep the bucket
//
// The values are JSON. Records are written once, and trimming removes them without a marker.
//
// # Guarantees
//
// An append is one message with the header Nats-Expected-Last-Subject-Sequence: 0. Of several, the leader takes one. It is sent once:
// what doesn't reach a server is not kept for later. After a time-out, a lost connection and a full disk the outcome is unknown:
// it may be stored later, and nothing else of it is left at the server.
// Nothing was stored if there was no connection, no server answers for the bucket, or the leader refuses the message.
//
// A leader that was cut off doesn't notice for up to 10 s, and would answer with old lists. So with several replicas a list first
// puts the key barrier, which a majority must take, and believes only a server that has it. Reads by key may be answered by any copy if
// the bucket has allow_direct, which Init doesn't set. Records don't change, so only that there is none may be wrong: then a list
// is asked. A user who may not write does without the barrier: what people see may be up to 10 s old.
//
// The ledger is no [store.Follower]: a message has one condition, and one on the record below wouldn't keep another append from the same
// key. So workers read before they extend.
//
// # Durability
//
// A server acknowledges a record before it is synced to disk: by default it syncs once in 2 minutes. A killed process
// loses nothing, since the system has the record. A loss of power loses what wasn't synced. With three replicas one machine at a time may lose
// power, if it has caught up before the next does. Jepsen's analysis of NATS 2.12.1 (December 2025,
// https://jepsen.io/analyses/nats-2.12.1) lost acknowledged messages that way: after several machines lost power, and after one did while
// another was cut off; and after a single file was damaged.
//
// Set sync_interval: always in the jetstream block of all servers. No client can see that: syncAlways=true in the URI says it,
// and else [Ledger.Describe] and leasectl doctor warn.
//
// # Buckets that are refused
//
// A bucket is looked at before the first use, every ten minutes, and after failures. It is refused with [store.ErrRefused] if it
// has a TTL, a limit at which it discards old keys, a retention other than limits, a mirror, sources or a transform, is sealed, or
// doesn't have its own subjects. A bucket in memory, fewer than three replicas, and a copy that is behind are warned of.
//
// # Rights
//
// leasectl init --print, or [Ledger.InitScript], has the permissions of a worker. NATS refuses a message apart from its reply, so
// a missing right shows as [store.ErrDenied] with the subject. Whoever may publish below the bucket's subjects may overwrite records.
//
// # Time
//
// The time is that of the bucket's leader, in microseconds, from the reply to STREAM.INFO; tails have it, too. With one
// replica there is one clock. With several, another server may lead next, so stamps have a skew of 100 ms (serverSkew), which is
// assumed and not measured: no client can ask a server that doesn't lead. The stamp's history is when the bucket was made.
//
// # Hints
//
// The ledger is a [store.Watcher], by a watch of the bucket.
//
// # Limits
//
// A tail lists the names of the worker type's records, since NATS has no order of keys: some 50 bytes each. So don't keep
// millions. A server doesn't take values of more than max_payload, 1 MiB by default; a record has less than 100 KiB.
//
// # What was tested
//
// The suites of testutil/storetest run on one server, on one with users, and on a cluster of three. TLS, passwords and a
// file of credentials are each used with a server. Servers are killed, paused and
// restarted; histories are checked for linearizability while one server, or one of three after another, is killed. Not tested:
// losses of power, and other versions than 2.15.3.
package nats
