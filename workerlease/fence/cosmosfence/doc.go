// Package cosmosfence refuses stale holders of a lease in Azure Cosmos DB (API for NoSQL).
//
// [Update] protects one item, which carries the token of its last write in the property
// [Field]. [Batch] protects any items of one logical partition, by an item that holds only
// the fence: a transactional batch writes it and the protected items together.
//
// Both read the fence, with its ETag, and write on the condition that the ETag is still
// the same. If another writer came between, they read again. A higher token is a
// [fence.StaleError].
//
// # What is guaranteed
//
// After a write with a token was stored, none with a lower token is stored in the same
// item, or in the same batch's partition by the same fence, if all writers use this
// package, and there is one region for writes: ETags are not compared across regions that
// write. An error of the network leaves the outcome open: repeat the write with the same
// token.
//
// The token must outlive the record. So don't delete an item that Update protects: let
// change return an item that says it is deleted. A batch may delete protected items, but
// never the fence. Give neither a time to live.
//
// # What hasn't been shown
//
// Batch has run on a fake alone: the peer of the tests answers the SDK's transactional batches with 500. A test of it on a
// real account runs where COSMOS_URI names one.
package cosmosfence
