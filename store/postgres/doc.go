// Package postgres keeps ledgers in a table of PostgreSQL: [Open] makes a [store.Ledger] from a URI.
//
// # Tables
//
// A record is one row of public.worker_leases, inserted once and never updated:
//
//	worker_type text COLLATE "C", seq bigint, document json, PRIMARY KEY (worker_type, seq)
//
// The document is that of [storekit.Encode], with the fields of [store.Record] in camelCase, so that SQL reads it:
// document->>'instanceId'. Uniqueness and order rest on the key alone. A row whose document contradicts its key
// appears at its key, with a Defect.
//
// The roster is public.worker_leases_roster, with the columns worker_type, id and document and the key (worker_type,
// id): one row for each worker, which each Attend replaces. No lease depends on it, so its commits don't wait for
// the disk.
//
// [Ledger.Init] creates what is missing, the schema among it. The names are those of Options or the URI, and the
// schema is never searched for: users with different search paths would have different ledgers.
//
// # Guarantees
//
// An append is one statement, in a transaction of its own:
//
//	INSERT INTO worker_leases … ON CONFLICT (worker_type, seq) DO NOTHING
//
// PostgreSQL's documentation promises that [ON CONFLICT] inserts, or finds the key taken, in one step. The
// statement also sets synchronous_commit for itself to on, or leaves it at remote_apply, whatever the session has.
//
//   - [Ledger.Append] returns nil only when the commit is on the primary's disk, and on those of as many standbys as
//     synchronous_standby_names demands.
//   - AppendAfter inserts WHERE EXISTS the record below, with its claim, kind and instance, in the same statement. If it isn't there
//     any more, as after a failover that lost it, the error is [store.ErrWentBack].
//   - Of any number of appends to one key, at most one returns nil.
//   - [store.ErrConflict] means that the key's record is there and committed, on the primary at least.
//   - The server's error reply to the statement (severity ERROR, of a class that it rolls back) means that nothing
//     was stored: [store.ErrNotStored]. So does a connection that can't be made.
//   - After a lost connection, a FATAL or PANIC, an error of the classes 08, 58 and XX or of code 40003, the outcome
//     is unknown: read the key back.
//
// A statement names the server's own functions, operators and types by their schema, pg_catalog: a role's search_path may lead to
// others of the same name. What a session has set doesn't matter, because each statement sets what it relies on for its own
// transaction, also behind a pooler.
//
// The commit comes after the server's word that the statement is done, so an append ends only when the server is
// ready for the next one.
//
// # Synchronous standbys
//
// A commit that waits for a standby can be told to wait no longer: by pg_cancel_backend, by a client that gives up,
// or by a shutdown. Then [PostgreSQL reports success], with a warning, and shows the record to everybody, although
// a failover may lose it. The same goes for a primary that crashes in between and starts again. So
//
//   - an append during which that warning came has an unknown outcome. It sets client_min_messages for itself,
//     because a session may suppress warnings;
//   - reads ([Ledger.Get], Tail, Page and WorkerTypes) wait, too, while synchronous_standby_names isn't empty: each
//     writes a message into the write-ahead log ([pg_logical_emit_message]) in its own transaction, whose commit
//     waits until as many standbys have that, and with it all that was read. It costs a write to the log. Without
//     that, a worker could find its own record after an unknown outcome, work under it, and lose it in a failover.
//
// If the setting waits for a part of the standbys that it lists, such as ANY 1 (b, c), the others may lack what was acknowledged, and
// nothing is lost only if the most advanced of all takes over, as some cluster managers see to. [Ledger.Warning], Durability and
// Examine say so.
//
// So without a synchronous standby neither appends nor reads come to an end. With Options.ReadOnly, which is for
// people, reads don't wait. Who empties synchronous_standby_names meanwhile, as Patroni does unless it is told to be
// strict, ends all waits: what is acknowledged from then on is on the primary alone.
//
// # Failover
//
// All operations go to the primary. Of several hosts in the URI, the first that takes writes is used
// (target_session_attrs=read-write is forced); the next connection begins with it. A read that reaches a
// standby all the same, by a pooler or a name that leads elsewhere, is an error of the statement. While no server
// takes writes, operations fail and nothing is stored; a worker that holds a lease goes on undisturbed to the end of
// its window.
//
// A standby that isn't synchronous may lack the newest records when it takes over. Then a second worker may get a
// slot that somebody works in, with a token that isn't higher. [Ledger.Warning] reports that synchronous_standby_names is empty
// although the URI has several hosts or standbys were seen, connected at the moment or not. Stamp.History is the server's timeline
// then, which is another after a failover. It is empty where each standby is waited for.
//
// If a former primary goes on taking writes beside the new one, there are two ledgers: let the cluster's manager
// fence it. With several hosts in the URI each check asks all of them, for up to a second, and so does a handle whose connection leads
// to another server than before: two that take writes are [store.ErrRefused]. A server that isn't named, or can't be reached, can't be
// found so. Don't use servers that replicate to each other (logical replication both ways, BDR, Pgpool-II's native
// replication). A table that a subscription writes is refused.
//
// # Time
//
// Tail and Append give the primary's clock_timestamp() along with what they are for, and [Ledger.Now] asks for it
// alone. It has microseconds. Stamps name the server by its own address and by when it was started, which is
// Stamp.Clock, too: no other process has that name.
//
// Skew is 0 as long as there is one server. Another server that takes over has another clock. Standbys are assumed to be within
// Options.ServerSkew of the primary, 100 ms by default, once standbys were seen or the URI has several hosts. Of the hosts in the URI
// each check also measures the clock, by its round trip: one that is surely further off widens Skew, and is warned of. Examine says of
// others that they weren't measured. A standby that isn't seen, as that of a service with a second machine for
// the same disk, needs serverSkew in the URI. If its clock is off by more, the time jumps in a failover: workers
// notice, stop, and measure anew, and tokens fence what can't be prevented.
//
// # What is refused
//
// Server and table are checked at the first use, every ten minutes, and half a minute after an odd failure. They are
// refused with [store.ErrRefused]
//
//   - if the server isn't PostgreSQL 10 or later, but one that speaks its protocol (CockroachDB, YugabyteDB, Greenplum,
//     Redshift): their nodes have clocks of their own, or keys that aren't unique;
//   - if it is a standby, or its sessions may only read (default_transaction_read_only). Once a primary was seen
//     that is a failover, and an ordinary error;
//   - if the database's encoding isn't UTF8;
//   - if a pooler allows no transactions (PgBouncer's pool_mode = statement): the check looks at one server at one
//     moment;
//   - if the table is unlogged, temporary, partitioned or a partition, a view or a foreign table, or if it inherits or
//     is inherited from: its rows go with something else, or have keys of their own;
//   - if it has triggers, rules, row-level security, check, foreign-key or exclusion constraints, a unique index
//     besides its key, or a column that must be filled: they keep records out, or change them;
//   - if its key is missing or deferrable, or a column has another type, or worker_type another collation than "C" or
//     one like it. Other collations may take two names for one, and a new version of the operating system may change
//     their order, in which an index no longer finds its rows.
//
// An append by a handle that is in use finds out at once that the table has a trigger, and names it.
// Between two checks an administrator can still do damage.
//
// fsync=off and full_page_writes=off aren't refused: [Ledger.Warning] and [Ledger.Examine] report them.
//
// # Rights
//
// leasectl init --print, or [Ledger.InitScript], has the GRANTs that a worker needs. A role with these alone passes the
// conformance suite: USAGE on the schema, SELECT, INSERT and DELETE on worker_leases, and UPDATE, too, on the roster.
//
// DELETE is for trimming. UPDATE on worker_leases isn't needed, and without it a worker can't overwrite a lease. Init
// needs CREATE on the schema, if the tables aren't there, and CREATE on the database, if the schema isn't. EXECUTE on
// pg_notify and pg_logical_emit_message is everybody's by default.
//
// sslmode is verify-full, unless all hosts are on this machine. allow and prefer are refused for others. Passwords come
// from the URI, Options.Password, Options.PasswordFunc, PGPASSWORD or a password file, and are in no error.
//
// # Poolers
//
// Statements depend on no session. Without a pooler those of each slot are prepared at their second use; through one they go as one
// message each. So PgBouncer works in transaction mode and in session mode. There are no hints then.
//
// # What is left waiting
//
// A statement that nobody waits for any more may go on in the server: it waits for a lock, or for a synchronous standby. So
//
//   - a lock is waited for 1 s (lock_timeout, set by each statement for itself), and the error, SQLSTATE 55P03, means that nothing was stored;
//   - without a pooler, the driver lets the server cancel what was given up. Through one it doesn't, because [PgBouncer 1.18 crashes]
//     by that. There the handle keeps the connection, and ends the statement by pg_cancel_backend over another one: it begins with a
//     comment by which pg_stat_activity shows it;
//   - with two that have not ended even so, operations of the handle wait, and say what for.
//
// # Connections
//
// A handle uses one connection, and listens on it for hints while it is idle. For each statement that takes longer than 100 ms there may be
// one more for 10 s, up to 4 (Options.MaxConns). Without a watch the last one is closed after an idle minute. More than some hundred
// workers need a pooler, or a larger max_connections.
//
// # The application's pool
//
// Options.Pool or DB lends a connection for each statement, up to MaxConns at a time. Hints come over a connection of the handle's own, as long as
// there is a watch: it is made as the pool makes its own, and isn't one of them. Nothing is prepared, and nothing is set beyond a
// statement. The server is asked what it is once for each connection. Refused are standbys, sessions that only read, another
// default_transaction_isolation than read committed, and another client_encoding than UTF8. Of a Pool each check asks the hosts that its settings name,
// over connections of its own; those of a DB aren't known.
//
// The driver gives notices to the application alone, so that any notice during a statement that waits for synchronous standbys counts as
// the warning that it waited in vain, and the outcome is unknown: don't lower client_min_messages in the pool.
//
// # Hints
//
// The statement that inserts a release, an override, or a kind that this version doesn't know, also notifies
// (pg_notify); grants don't, because commits that notify wait for each other. [Ledger.Watch] listens on the connection of the
// statements while that is idle; with the application's pool, on a connection of its own. If the notification fails, as
// when its queue is full, the append is made without.
//
// # Costs
//
// A slot costs one append and, for each worker, about one Tail: a statement each. With 5 processes of 50 worker types and slots of 5 s the
// server's processes use 0.7 ms of processor time for a lease. A row has about 700 bytes. Old rows are trimmed by workers; autovacuum does the
// rest. Heartbeats of the roster are one upsert each.
//
// # What was tested, and what wasn't
//
// The tests run on PostgreSQL 15, with real standbys (waits that are cut off, a failover), PgBouncer 1.18 in each mode,
// kills and pauses of the server, and processes that race. No managed service was tested, nor another version. That
// a commit is on disk and on the standbys when the server says so is PostgreSQL's promise.
//
// [PgBouncer 1.18 crashes]: https://github.com/pgbouncer/pgbouncer/issues/822
// [ON CONFLICT]: https://www.postgresql.org/docs/current/sql-insert.html#SQL-ON-CONFLICT
// [PostgreSQL reports success]: https://www.postgresql.org/docs/current/warm-standby.html#SYNCHRONOUS-REPLICATION-HA
// [pg_logical_emit_message]: https://www.postgresql.org/docs/current/functions-admin.html#FUNCTIONS-REPLICATION
package postgres
