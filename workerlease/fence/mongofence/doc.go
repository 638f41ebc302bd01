// Package mongofence refuses stale holders of a lease in MongoDB, document by document.
//
// A document carries the token of its last write in the field [Field]. Each function
// writes one document by one update with an upsert, whose filter takes the document only
// if its token is not higher. If it is higher, MongoDB tries to insert the document, and
// fails with a duplicate key: that is a [fence.StaleError].
//
//	err := mongofence.Update(ctx, invoices, id, lease.Token, bson.D{{"$set", bson.D{{"sent", true}}}})
//
// [Delete] leaves a tombstone, a document with [Deleted], so that the token outlives the
// record. [Live] is a filter without tombstones. Never remove one.
//
// # What is guaranteed
//
// After a write with a token was stored in a document, none with a lower token is stored
// in it, if all writers use this package. MongoDB updates a document atomically. Writes
// are acknowledged by a majority, so a failover undoes none of them. An error of the
// network leaves the outcome open: repeat the write with the same token.
//
// Each document is fenced on its own: an old holder may still write documents that the
// new one hasn't touched. A collection may be sharded only by _id. Documents without
// the field are refused with [ErrUnfenced]: set it to 0 in all of them once.
//
// # What hasn't been shown
//
// The peer of the tests (FerretDB on SQLite) doesn't make conditional updates atomically.
// So the tests show the filters and errors, one write after the other. That they hold
// for concurrent writers rests on MongoDB's documentation.
package mongofence
