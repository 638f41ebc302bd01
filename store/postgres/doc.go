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
//   - Of any number of appends to one key, at most one returns nil.
//   - [store.ErrConflict] means that the key's record is there and committed, on the primary at least.
//   - The server's error reply to the statement (severity ERROR, of a class that it rolls back) means that nothing
//     was stored: [store.ErrNotStored]. So does a connection that can't be made.
//   - After a lost connection, a FATAL or PANIC, an error of the classes 08, 58 and XX or of code 40003, the outcome
//     is unknown: read the key back.
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
// So without a synchronous standby neither appends nor reads come to an end. With Options.ReadOnly, which is for
// people, reads don't wait. Who empties synchronous_standby_names meanwhile, as Patroni does unless it is told to be
// strict, ends all waits: what is acknowledged from then on is on the primary alone.
//
// # Failover
//
// All operations go to the primary. Of several hosts in the URI, the first that takes writes is used
// (target_session_attrs=read-write is forced), and those that were tried in vain come last. A read that reaches a
// standby all the same, by a pooler or a name that leads elsewhere, is an error of the statement. While no server
// takes writes, operations fail and nothing is stored; a worker that holds a lease goes on undisturbed to the end of
// its window.
//
// A standby that isn't synchronous may lack the newest records when it takes over. Then a second worker may get a
// slot that somebody works in, with a token that isn't higher. [Ledger.Warning] reports standbys that are connected
// while synchronous_standby_names is empty.
//
// If a former primary goes on taking writes beside the new one, there are two ledgers: let the cluster's manager
// fence it. Don't use servers that replicate to each other (logical replication both ways, BDR, Pgpool-II's native
// replication). A table that a subscription writes is refused.
//
// # Time
//
// Tail and Append give the primary's clock_timestamp() along with what they are for, and [Ledger.Now] asks for it
// alone. It has microseconds. Stamps name the server by its own address and by when it was started, which is
// Stamp.Clock, too: no other process has that name.
//
// Skew is 0 as long as there is one server. Another server that takes over has another clock, which can't be asked
// before: standbys are assumed to be within Options.ServerSkew of the primary, 100 ms by default, once standbys were
// seen or the URI has several hosts. A standby that isn't seen, as that of a service with a second machine for
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
// A worker needs, and a role with these alone passes the conformance suite:
//
//	GRANT USAGE ON SCHEMA public TO worker;
//	GRANT SELECT, INSERT, DELETE ON worker_leases TO worker;
//	GRANT SELECT, INSERT, UPDATE, DELETE ON worker_leases_roster TO worker;
//
// DELETE is for trimming. UPDATE on worker_leases isn't needed, and without it a worker can't overwrite a lease. Init
// needs CREATE on the schema, if the tables aren't there, and CREATE on the database, if the schema isn't. EXECUTE on
// pg_notify and pg_logical_emit_message is everybody's by default.
//
// sslmode is verify-full, unless all hosts are on this machine. allow and prefer are refused for others. Passwords come
// from the URI, Options.Password, PGPASSWORD or a password file, and are in no error.
//
// # Poolers
//
// Statements go as one message each, without prepared statements, and depend on no session. So PgBouncer works in
// transaction mode and in session mode. Behind it, as behind any pooler, there are no hints, and the server isn't told
// to cancel what was given up, because [PgBouncer 1.18 crashes] by that. So while no synchronous standby answers,
// processes of the server pile up that wait for one: name two that may be synchronous. A handle has up to 4
// connections (Options.MaxConns), of which 2 stay open while idle, for 10 minutes; more than some hundred workers
// need a pooler, or a larger max_connections.
//
// # Hints
//
// The statement that inserts a release, an override, or a kind that this version doesn't know, also notifies
// (pg_notify); grants don't, because commits that notify wait for each other. [Ledger.Watch] listens on a connection
// of its own. If the notification fails, as when its queue is full, the append is made without, and so are those of
// the next 10 minutes.
//
// # Costs
//
// A slot costs one append and, for each worker, about one Tail: a statement each, and one more to try a connection
// that was idle for over a second. A row has about 700 bytes. Old rows are trimmed by workers; autovacuum does the
// rest. Heartbeats of the roster are one upsert each.
//
// Measured on the loopback interface of a busy machine with 2 cores, with PostgreSQL 15 and fsync, in ms
// (go test -run '^$' -bench Operations -benchtime 500x ./store/postgres):
//
//	                            append p50 p99    tail p50 p99    now p50 p99
//	alone                            4.0  26        0.4  2.9        0.15 0.2
//	through PgBouncer                2.7  14        0.4  4.8        0.2  0.3
//	with a synchronous standby       1.5  76        2.9  64         0.2  8.7
//
// The time is uncertain by half a round trip, less than 0.1 ms there, and the skew. In a ledger of 100,000 records, leasectl
// status, why, inspect slots and doctor take up to 0.1 s, and verify 10.5 s (make long).
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
