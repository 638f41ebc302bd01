// Package cosmospeer gives tests an Azure Cosmos DB server (API for NoSQL): the
// one named in the environment variable COSMOS_URI, with the key in COSMOS_KEY,
// or else a peer that it installs and starts by itself, the npm package
// @vercel/cosmosdb-server.
//
// The peer needs Node.js, version 18 or newer, with npm. It is installed once, by
// npm ci from the lockfile in the folder server, which takes some 20 seconds and
// 60 MB in the user's cache folder; several test binaries that want it at once
// wait for one installation. It runs as a process of its own and speaks plain HTTP
// on a free port of the loopback interface. It ends with the test binary, even
// when that is killed: the peer watches a pipe whose other end the test binary
// holds.
//
// Where no peer can be had (no Node.js, or no network for the first installation),
// tests are skipped. If the environment variable REQUIRE_STORES, a list separated
// by commas, contains "cosmos", they fail instead.
//
// # What was added to the emulator
//
// It keeps its data in memory. The peer also writes each write that succeeded to a
// journal, before the reply, and replays it when it is restarted, so that it keeps
// what it acknowledged as Cosmos DB does. The read of an absent item and the
// creation of one in an absent container, which the emulator answers with 500, give
// 404; where the container is absent, with the substatus 1003. The account's own
// addresses begin with http instead of https.
//
// # What the peer can't show
//
// Creating an item is atomic: of many creates of one id in one partition, one gives
// 201 and the others 409. That is what a ledger needs. The rest is thin. All
// consistency levels are the same, since there is one copy of the data; the account
// says Session, and one region for writes. Nothing is throttled (429), retried
// (449), or in failover (403), each request costs 1 request unit, and keys are not
// checked. Queries ignore the header that names their partition, so that a query
// without the partition in its text is right on Cosmos DB and wrong here;
// GetCurrentTimestamp gives 400; transactional batches aren't rolled back; there are
// no offers, so throughput can't be seen; a time to live never deletes anything;
// indexing policies are stored and do nothing. Error bodies differ, so only the
// status may be looked at. Its clock is that of this machine, or off by a fixed offset,
// and its speed says nothing about that of Cosmos DB.
package cosmospeer
