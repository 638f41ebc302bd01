// Package mysql keeps ledgers in a table of MySQL or MariaDB: [Open] makes a [store.Ledger] from a URI. It is tested
// with MariaDB 10.11, alone, with replicas and in a Galera cluster. What differs on MySQL 8 is tested as far as MariaDB
// can play it; MySQL itself, and its group replication, have not been run.
//
// # Tables
//
// Two tables of InnoDB hold everything: worker_leases the records, worker_leases_roster the presences.
//
//	CREATE TABLE worker_leases (
//	  worker_type VARBINARY(255) NOT NULL,
//	  seq BIGINT NOT NULL,
//	  document LONGTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
//	  PRIMARY KEY (worker_type, seq)
//	) ENGINE = InnoDB
//
// The names of worker types are bytes: a collation may take job, Job and "job " for one name. A document is the JSON
// text of [storekit.Encode], kept byte for byte; the type JSON would rewrite it. [Ledger.Init] creates the tables and
// changes nothing that exists. Further columns are left alone, if they may be null or have a default.
//
// # Appends
//
// An append is one INSERT, which commits by itself. It looks for the key first, so that a key which was taken before causes no error; so
// [Ledger.AppendAfter] looks for the record below, whose claim, kind and instance are compared byte by byte. Who has neither by then
// looks once more, in a read: a node of a cluster may not have yet what another one has acknowledged. Of any number of inserts of one key exactly one is stored, since
// a primary key of InnoDB is unique ([InnoDB locks]). Error 1062 about the key PRIMARY is a conflict, and then only if a
// row with that key is there: a trigger that writes to another table can cause the same error. Another unique index
// that keeps a record out is a refusal. The error [store.ErrNotStored] comes with errors after which the server has surely
// rolled the statement back, such as a deadlock (1213) or a lock that was waited for too long (1205). After an
// interruption (1317, 1969, 3024), a failed commit (1180), a full disk (1021) or a lost connection the outcome is unknown.
//
// What was stored is compared with what was sent, by a second statement, since a trigger may change a row without a word. The error is then [store.ErrRefused], and the key may be taken.
//
// No statement waits for more than 2 s for a lock, of a row (innodb_lock_wait_timeout) or of the table (lock_wait_timeout), as beside
// LOCK TABLES or ALTER TABLE. When a context ends, the driver closes the connection. The statement goes on at the server for that long.
// But an append that waits for a semi-synchronous replica is left to itself, because to kill it would show the record to others too soon: its connection is
// kept while the server is there. With two of them, further appends of the handle fail, and have stored nothing.
//
// # Reads
//
// Reads are single statements that lock nothing, at the level READ COMMITTED (REPEATABLE READ where the binary log has
// the format STATEMENT). They see each append that was acknowledged before. For that, each read makes sure that it runs on the server
// which took the connection's writes when it was opened, and that this server takes writes now: by its host name, port
// and server_id, read_only and innodb_read_only. If not, it fails, and the connection isn't used again. An append does
// the same, unless replicas get statements in place of rows. So these can't make a read stale:
//
//   - a replica, with or without read_only, or a primary that was made a replica;
//   - a proxy that sends reads to replicas (ProxySQL, MaxScale, MySQL Router): it is refused. Give the workers a user
//     all of whose statements go to the server that takes writes, such as MaxScale's readconnroute with master, or a
//     ProxySQL user without query rules;
//   - a proxy that shares sessions among clients, and loses their variables.
//
// A proxy that sends all statements to one server does no harm.
//
// Each session sets what the server's settings and its init_connect may have changed: character set, sql_mode (strict, and without
// ANSI_QUOTES, NO_BACKSLASH_ESCAPES, IGNORE_SPACE or ORACLE), time_zone, autocommit, the level of isolation, sql_select_limit and others.
// Tables are named with their database. Built-in functions can't be replaced: a stored function of the same name is called with its
// database alone.
//
// # Time
//
// The clock is SYSDATE(6), in µs, corrected by the session's offset from UTC, whatever time_zone is. With the server's option
// sysdate-is-now it shows the statement's start, which serves as well. A clock that stands still (SET timestamp in
// init_connect, together with that option) is refused. A stamp comes with each Tail, with each append, and by Now. Its
// Clock names the server and the second in which its process was started; behind a proxy there is no such name. Its
// Skew is zero for one server. With several hosts, replicas, a cluster or a proxy it is 100 ms, an assumption: set serverSkew to how far
// the clocks of your servers may be apart. The clocks of all hosts of the URI are measured by each check, and widen the skew if they are further
// apart, with a warning. So name all servers that may take writes one day. A worker's uncertainty is half of a
// round trip: ±0.1 ms on the loopback interface.
//
// # Durability
//
// What survives depends on the server's settings, which [Ledger.Durability], [Ledger.Warning] and leasectl doctor show.
//
//   - A crash of the server loses nothing, unless innodb_flush_log_at_trx_commit is 0.
//   - A loss of power loses nothing if innodb_flush_log_at_trx_commit is 1 and, with a binary log, sync_binlog is 1. By
//     default MariaDB has 0 for the latter: without its entry in the log, a transaction is rolled back.
//   - Without a binary log InnoDB shows a commit to readers a moment before its log is on the disk, and before its writer is
//     told. A crash of the server in that moment takes back a record that somebody may have read, and whose append has an
//     unknown outcome: a worker that reads its own append back after a time-out, and works, may then lose the slot to
//     another. Checks of linearizability with kills show it; with log_bin on and sync_binlog=1 they find nothing, because the
//     binary log is synced first. Nothing that was acknowledged is lost in either case.
//   - A failover to a replica may lose the newest records: replication is asynchronous. With semi-synchronous
//     replication and the wait point AFTER_SYNC, nobody sees a record before a replica has it. But after
//     rpl_semi_sync_master_timeout (10 s by default) without a replica, the server goes on alone: set it to an hour or more. MariaDB
//     waits for one replica, MySQL for rpl_semi_sync_source_wait_for_replica_count: with more replicas than that, fail over
//     only to the one that has the most records. Some that it has acknowledged may still be in its relay log only, which RESET
//     SLAVE discards: let it apply the whole relay log before you promote it. With that, no slot goes to two workers when two
//     servers fail over, which make failovers STORE=mysql repeats.
//   - In a Galera cluster the nodes have each record before its append returns. A node may be written and read like any
//     other: reads wait for what others have committed (wsrep_sync_wait), and a node that is cut off is read by nobody.
//     Error 1213 of an append that loses to another node's means that nothing was stored. But that holds while all is well: an
//     [analysis of MariaDB 12.1] lost committed transactions when nodes crashed one soon after the other, unless
//     innodb_flush_log_at_trx_commit is 1, and with that, too, by crashes together with partitions; and reads of a
//     healthy cluster were stale, though perhaps without wsrep_sync_wait. leasectl doctor warns of that. Let what the work writes to check
//     the token, or use one server with semi-synchronous replicas.
//   - In a group of MySQL's with a single primary, a majority has each record. A new primary is read when it has applied
//     all (group_replication_consistency = BEFORE_ON_PRIMARY_FAILOVER). Not tested.
//
// Where records are lost, two workers may hold one slot. A holder learns of that from its next append. Stamps name the server as
// their History, unless what it has acknowledged survives each failover: in a cluster or a group, and with semi-synchronous replication if the
// URI names no more hosts than those that must have each record. A server that may forget at a restart is named with its start.
//
// # What is refused
//
// With [store.ErrRefused], at the first use, every 10 minutes, and soon after operations failed:
//
//   - two hosts of the URI that take writes, unless they are nodes of one cluster: a replica was promoted, and the old primary goes
//     on. That is asked, too, when a connection leads to another server than the one before;
//   - a server that takes no writes, or is a replica of another one; a node of a cluster that is cut off, doesn't
//     replicate (wsrep_on), or goes on when the cluster falls apart (pc.ignore_sb, pc.ignore_quorum); a group whose
//     members all take writes;
//   - versions before MySQL 8.0 and MariaDB 10.5, and other servers with the same protocol, such as TiDB and Vitess;
//   - a max_allowed_packet below 1 MiB, and MySQL without its redo log;
//   - a table of another engine, a partitioned or a versioned one, or a view;
//   - other types of our columns, a key of prefixes, another unique index, triggers, checks, foreign keys, computed
//     columns, and columns that must be given.
//
// Masters that replicate to each other are refused where the server says that it is a replica: MariaDB says so to
// everybody (Slaves_running), MySQL doesn't. Don't use them.
//
// # Rights
//
// An administrator calls Init (leasectl init), or runs what leasectl init --print prints, or [Ledger.InitScript] returns, which
// has the GRANTs that workers need. DELETE is for trimming.
//
// People who look need SELECT on both. They need no right to administer, and better have none: SUPER or READ_ONLY ADMIN write to a
// server in spite of read_only.
//
// # The application's pool
//
// Options.DB lends a connection for each operation. Its session is set up as that of a connection of our own is, for the time of the
// operation, and then made what it was, by the values that the server showed before; if that fails, the connection is closed. It takes two round
// trips before an operation, seven the first time, and one after it, in which a connection may be in use beside the MaxConns that work. Refused
// are autocommit, unique_checks and sql_log_bin that are off, and an sql_select_limit that hides the session's settings. Whether there is a proxy isn't known,
// so it is as with one: stamps name no process, and Skew is 100 ms unless ServerSkew says otherwise. Which servers DB may lead to isn't
// known, either: they aren't asked for their clocks, nor whether two of them take writes. An append that waits for a semi-synchronous
// replica ends with its caller, though not in the server.
//
// # Costs
//
// An append takes two round trips and one commit; if another one was a moment first, there is one more read. A Tail takes one round trip. A
// new connection takes six after its login, and the check of the server 16, once in 10 minutes. Of a burst's connections one is left after
// 5 s, and none a minute later. With five workers of each of 100 worker types, a lease takes 8.5 statements, of which five are the workers' tails, and
// 1.7 ms of the server's processor. In a ledger of 10⁶ records a trim takes 4 ms. An abandoned statement
// costs its connection. There are no hints ([store.Watcher]): workers that wait for a lease look when the time has come.
//
// [analysis of MariaDB 12.1]: https://jepsen.io/blog/2026-03-16-mariadb-galera-cluster-12.1.2
// [InnoDB locks]: https://dev.mysql.com/doc/refman/8.4/en/innodb-locks-set.html
package mysql
