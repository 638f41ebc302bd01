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
// An append is one INSERT, which commits by itself. Of any number of inserts of one key exactly one is stored, since
// a primary key of InnoDB is unique ([InnoDB locks]). Error 1062 about the key PRIMARY is a conflict, and then only if a
// row with that key is there: a trigger that writes to another table can cause the same error. Another unique index
// that keeps a record out is a refusal. The error [store.ErrNotStored] comes with errors after which the server has surely
// rolled the statement back, such as a deadlock (1213) or a lock that was waited for too long (1205). After an
// interruption (1317, 1969, 3024), a failed commit (1180), a full disk (1021) or a lost connection the outcome is unknown.
//
// What was stored is compared with what was sent, since a trigger may change a row without a word. MariaDB returns it
// with the insert (RETURNING); on MySQL a second statement reads it. The error is then [store.ErrRefused], and the key may be taken.
//
// When a context ends, the driver closes the connection. The statement may go on at the server, for at most 10 s where
// it waits for a lock.
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
// Each session sets what the server's settings and its init_connect may have changed: character set, sql_mode (strict),
// time_zone, autocommit, the level of isolation, sql_select_limit and others.
//
// # Time
//
// The clock is SYSDATE(6), in µs, corrected by the session's offset from UTC, whatever time_zone is. With the server's option
// sysdate-is-now it shows the statement's start, which serves as well. A clock that stands still (SET timestamp in
// init_connect, together with that option) is refused. A stamp comes with each Tail, with each append, and by Now. Its
// Clock names the server and the second in which its process was started; behind a proxy there is no such name. Its
// Skew is zero for one server. With several hosts, replicas, a cluster or a proxy it is 100 ms, an assumption: set serverSkew to how far
// the clocks of your servers may be apart. A worker's uncertainty is half of a
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
//     rpl_semi_sync_master_timeout (10 s by default) without a replica, the server goes on alone: set it to an hour or more.
//   - In a Galera cluster all nodes have each record before its append returns. A node may be written and read like any
//     other: reads wait for what others have committed (wsrep_sync_wait), and a node that is cut off is read by nobody.
//     Error 1213 of an append that loses to another node's means that nothing was stored.
//   - In a group of MySQL's with a single primary, a majority has each record. A new primary is read when it has applied
//     all (group_replication_consistency = BEFORE_ON_PRIMARY_FAILOVER). Not tested.
//
// Where records are lost, two workers may hold one slot.
//
// # What is refused
//
// With [store.ErrRefused], at the first use, every 10 minutes, and soon after operations failed:
//
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
// An administrator calls Init (leasectl init). Workers need, for DELETE to trim:
//
//	GRANT SELECT, INSERT, DELETE ON jobs.worker_leases TO worker;
//	GRANT SELECT, INSERT, UPDATE, DELETE ON jobs.worker_leases_roster TO worker;
//
// People who look need SELECT on both. They need no right to administer, and better have none: SUPER or READ_ONLY ADMIN write to a
// server in spite of read_only.
//
// # Costs
//
// An append takes one round trip and one commit; on MySQL, and after a conflict, there is one more read. A Tail takes one round trip. A
// new connection takes seven after its login, and the check of the server 16, once in 10 minutes. An abandoned statement
// costs its connection. There are no hints ([store.Watcher]): workers that wait for a lease look when the time has come.
//
// Measured with MariaDB on the loopback interface of a busy machine with 2 cores, p50 and p99:
//
//	append                        0.6 ms   50 ms
//	append, read back as on MySQL 0.6 ms   19 ms
//	append, with a binary log     1.9 ms  104 ms
//	tail of 2                     0.4 ms    5 ms
//	now                           0.1 ms    4 ms
//
// In a ledger of 100,000 records, a tail of 16 takes 1.2 ms, a page of 1000 60 ms, and the list of worker types
// 63 ms. By: go test ./store/mysql -run xxx -bench . There leasectl status, why, inspect slots and doctor take up to 0.15 s,
// and verify 4.6 s (make long).
//
// [InnoDB locks]: https://dev.mysql.com/doc/refman/8.4/en/innodb-locks-set.html
package mysql
