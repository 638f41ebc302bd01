// Package sqlfence refuses stale holders of a lease in an SQL database.
//
// [Check] raises the token of a fence within the caller's transaction, or fails with a
// [fence.StaleError]. Its upsert locks the fence's row until the transaction ends. So the
// writes of a lower token come before it or not at all:
//
//	err := sqlfence.Do(ctx, db, sqlfence.PostgreSQL, "invoices", lease.Token, func(tx *sql.Tx) error {
//		_, err := tx.ExecContext(ctx, "UPDATE invoices SET sent = true WHERE id = $1", id)
//		return err
//	})
//
// Fences are rows of the table lease_fences, which [Schema] creates. A fence outlives the
// rows it protects. Never delete it.
//
// # What is guaranteed
//
// After a transaction with a token has been committed, no transaction with a lower token
// under the same name is committed, if all call Check, and roll back when it fails. That
// holds at Read Committed, Repeatable Read and Serializable in PostgreSQL and InnoDB, and
// in SQLite, since a row lock (in SQLite, the write lock) doesn't depend on the level.
//
// At Repeatable Read and above, PostgreSQL ends a transaction whose fence another one has
// changed with a serialization failure, also if its token is stale. It is the driver's
// error, wrapped, with the SQLSTATE 40001, and no [fence.StaleError]: roll back, and run
// the whole transaction again. Then Check passes or says that the token is stale.
//
// Call Check first in a transaction, as [Do] does. What was read before it may be older
// than the last write of the previous holder, and SQLite may be unable to turn the
// transaction into one that writes. With SQLite, set busy_timeout.
//
// The commit must be durable: PostgreSQL with synchronous_commit, and, as with any
// database, a failover only to a replica that has all commits.
//
// The tests run SQLite, PostgreSQL 15 and MariaDB 10.11. MySQL itself hasn't been run: its
// statements are MariaDB's, and it needs InnoDB.
package sqlfence
