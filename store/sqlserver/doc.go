//go:build sqlserver

// Package sqlserver keeps ledgers in a table of SQL Server 2016 or later, or of Azure SQL Database: [Open] makes a
// [store.Ledger] from a URI.
//
// # Untested
//
// This store was never run on a real server. What is said below is by the documentation of SQL Server and of its driver;
// tests cover what needs no server: the meaning of errors, what is refused, URIs, and hosts that don't answer. By hand, its suite
// was run on Babelfish 4.2, which has the protocol and most of the language, with what that lacks bridged: MERGE, the trim's
// DELETE, triggers, security policies, IGNORE_DUP_KEY and availability groups were not run. The package
// therefore has the build tag sqlserver, so that nobody links it by chance, and [Ledger.Durability] and [Ledger.Examine]
// say the same. Before you rely on it, run its suite on a server like yours, as a user who may create tables in a database
// that is empty:
//
//	SLOTLEASE_SQLSERVER='sqlserver://USER:PASSWORD@HOST/DATABASE' go test -tags sqlserver ./store/sqlserver
//
// It runs the conformance suite, races of processes for a key, and each refusal with its cause planted. Without the
// variable these tests are skipped. No test kills a server, or fails over. testdata/statements.sql has each statement
// that is ever sent, for review.
//
// # Tables
//
// Two tables hold everything: worker_leases the records, worker_leases_roster the presences.
//
//	CREATE TABLE dbo.worker_leases (
//	  worker_type varbinary(255) NOT NULL,
//	  seq bigint NOT NULL,
//	  document nvarchar(max) NOT NULL,
//	  CONSTRAINT pk_worker_leases PRIMARY KEY CLUSTERED (worker_type, seq)
//	)
//
// The names of worker types are bytes: texts are compared by a collation, and without their trailing spaces. (Bytes are
// compared without trailing zeros, which no name has: what a foreign row has under "job\x00" is read as a record of job that is
// damaged.) A document is the JSON text of [storekit.Encode]. SQL reads it:
//
//	SELECT seq, JSON_VALUE(document, '$.instanceId') FROM dbo.worker_leases WHERE worker_type = CONVERT(varbinary(255), 'job')
//
// [Ledger.Init] creates the tables and changes nothing that exists. Further columns are left alone, if they may be null or
// have a default. Partitions, compression, temporal history and change data capture make no difference.
//
// # Appends
//
// An append is one INSERT, which commits by itself, and a SELECT of what it has stored, in one round trip. Of any number
// of inserts of one key exactly one is stored, since [primary keys] are unique. Error 2627 is a conflict if its text names
// the constraint of that very key and the table, nothing else went wrong, and a row with the key is there. A violation of
// another unique index (2601, 2627) is a refusal.
//
// The error [store.ErrNotStored] comes with errors by which the server says that it has rolled the statement back, with
// XACT_ABORT on: a deadlock (1205), a lock that was waited for for 2 s (1222), a conflict of snapshots (3960), a missing
// right (229) and the like; see errors.go for all of them. After any other error the outcome is unknown: a full log (9002),
// an error of severity 17 or more, a lost connection, a context that has ended; and after every error that comes once the
// server has said that the row is stored. The driver doesn't send a statement again (its option disableretry): after a
// broken connection, that would turn "stored" into a conflict.
//
// The clause OUTPUT makes the server refuse an insert into a table with [triggers] for it (334). The SELECT notices a
// row-level security policy that hides the record from its own writer. The error is then [store.ErrRefused], and the
// record may be stored.
//
// When a context ends, the connection is closed, and the server rolls back what it hasn't committed.
//
// # Reads
//
// Reads are single statements at the level READ COMMITTED, without hints: nothing that isn't committed is read. With
// [READ_COMMITTED_SNAPSHOT], which Azure has by default, they see all that was committed when they began, and lock
// nothing. Without it they wait, for at most 2 s, while a row that they read is being written.
//
// Each statement first makes sure that its session was set up on this server, that no transaction is open, and that the
// database takes writes here (Updateability is READ_WRITE). A readable secondary, a snapshot or a read-only database
// fails that, and the connection isn't used again; applicationIntent=ReadOnly is refused in the URI. A primary that was cut
// off from its cluster may answer reads until it notices: for the time of its lease, 20 s by default. It is then as if
// those reads had been made a moment earlier; appends to it fail, if synchronous commits are required.
//
// Each session sets what the server's "user options", the login's language and a logon trigger may have changed:
// IMPLICIT_TRANSACTIONS, XACT_ABORT, LOCK_TIMEOUT, ROWCOUNT, TEXTSIZE, LANGUAGE and others. The pool never resets a session
// (sp_reset_connection), and no statement changes one. Behind a proxy that shares sessions, statements fail.
//
// # Time
//
// The clock is SYSUTCDATETIME(), in µs. The server reads it once per statement, when that begins, so between the call and
// the return. On Windows it may go on in steps of 15.6 ms, so that each stamp has a MaxAge of 16 ms. A stamp comes with each
// Tail, with each append, and by Now. Its Clock names the server and when that was started (when its tempdb was made);
// Azure SQL Database doesn't say when. Its Skew is zero for one server. With several hosts, an availability group, a failover
// cluster instance, Azure SQL Database or a managed instance it is 100 ms, an assumption: set serverSkew to how far the clocks
// of your servers may be apart.
//
// # Durability
//
//   - A crash of the server and a loss of power lose nothing: a commit waits for the log on the disk. A database with
//     [DELAYED_DURABILITY] = FORCED doesn't wait, and is refused. With ALLOWED these appends wait all the same.
//   - A failover within an availability group loses nothing if the replica that takes over commits synchronously and is
//     synchronized. With REQUIRED_SYNCHRONIZED_SECONDARIES_TO_COMMIT = 0, the default, the primary goes on alone when none
//     answers, and a forced failover then loses the newest records. An asynchronous replica lags: it can take over by force
//     alone. [Ledger.Warning] and leasectl doctor say so, if the user may see the replicas (VIEW ANY DEFINITION).
//   - A failover cluster instance keeps all: another machine takes over with the same disks.
//   - In Azure SQL Database and managed instances copies within the region have each record before its append returns. Active
//     geo-replication and failover groups lag.
//   - Log shipping, replication, distributed availability groups and database mirroring aren't looked at. They lag, but for
//     mirroring in the mode of high safety. Nor is Stretch Database, which enforces no key on the rows that it has moved away:
//     keep the tables out of it.
//
// Where records are lost, two workers may hold one slot.
//
// # What is refused
//
// With [store.ErrRefused], at the first use, every 10 minutes, and soon after operations failed:
//
//   - two hosts of the URI that both take writes, as after a forced failover whose old primary goes on;
//   - a database that takes no writes here, or acknowledges what isn't on the disk (FORCED); tempdb, which no start survives;
//   - versions before SQL Server 2016; Azure Synapse, which enforces no keys; Babelfish and others with the same protocol;
//   - a view, a synonym, a memory-optimized, an external or a file table;
//   - other types of our columns, or columns of ours that are masked, encrypted or computed; a key of other columns, or with
//     IGNORE_DUP_KEY;
//   - another unique index, triggers, checks, foreign keys, row-level security, computed columns, and columns that must be
//     given.
//
// # Rights
//
// An administrator calls Init (leasectl init), or runs what leasectl init --print prints, or [Ledger.InitScript] returns, which
// has the GRANTs that workers need, and no more. DELETE is for trimming.
//
// People who look need SELECT on both. VIEW SERVER STATE isn't needed.
//
// Logins have a password, of SQL Server's or of Windows' (DOMAIN%5CUSER). For Microsoft Entra ID give Options.DB.
//
// # The application's pool
//
// Options.DB lends a connection for each operation, whose session is set up for that, in two round trips. What Open notes in the session
// context is taken out again; the rest the driver resets when the application uses the connection next. Each statement makes sure where
// it runs. Which servers DB may lead to isn't known, so they aren't asked whether two of them take writes. This was never run, either.
//
// # Costs
//
// An append takes one round trip and one commit, and after a conflict there is one more read. A Tail takes one round trip.
// A new connection takes two after its login, and the check of the server 10, once in 10 minutes. An abandoned statement
// costs its connection. There are no hints ([store.Watcher]): workers that wait for a lease look when the time has come.
// Nothing was measured; go test -tags sqlserver ./store/sqlserver -run xxx -bench . measures it on the server that is named.
//
// [primary keys]: https://learn.microsoft.com/sql/relational-databases/tables/primary-and-foreign-key-constraints
// [triggers]: https://learn.microsoft.com/sql/t-sql/queries/output-clause-transact-sql
// [READ_COMMITTED_SNAPSHOT]: https://learn.microsoft.com/sql/t-sql/statements/set-transaction-isolation-level-transact-sql
// [DELAYED_DURABILITY]: https://learn.microsoft.com/sql/relational-databases/logs/control-transaction-durability
package sqlserver
