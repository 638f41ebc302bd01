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
// under the same name is committed, if all call Check, and roll back when it fails. By
// their manuals, that holds at each isolation level of PostgreSQL, InnoDB and SQLite, since a row lock (in
// SQLite, the write lock) doesn't depend on the level. At Repeatable Read and above,
// PostgreSQL ends a transaction that waited for another one's fence with a serialization
// failure (40001): begin it anew.
//
// Call Check first in a transaction, as [Do] does. What was read before it may be older
// than the last write of the previous holder, and SQLite may be unable to turn the
// transaction into one that writes. With SQLite, set busy_timeout.
//
// The commit must be durable: PostgreSQL with synchronous_commit, and, as with any
// database, a failover only to a replica that has all commits.
//
// Tests run it on SQLite and PostgreSQL 15. MySQL's statements are written after its manual; they have
// not been run against a server. It needs InnoDB.
package sqlfence
