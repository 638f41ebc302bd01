// Package cosmospeer gives tests an Azure Cosmos DB server (API for NoSQL): the
// one named in the environment variable COSMOS_URI, with the key in COSMOS_KEY,
// or else a peer that it installs and starts, the npm package
// @vercel/cosmosdb-server.
//
// The peer needs Node.js, version 18 or newer, with npm. It is installed once, by
// npm ci from the lockfile in the folder server, which takes about 20 seconds and
// 60 MB in the user's cache folder; test binaries that need it at the same time wait
// for one installation. It runs as a separate process and serves plain HTTP on a free
// port of the loopback interface. It ends with the test binary, even when that is
// killed, because it watches a pipe whose other end the test binary holds.
//
// If there is no peer (no Node.js, or no network for the first installation), tests
// are skipped. If the environment variable REQUIRE_STORES, a list separated by commas,
// contains "cosmos", they fail instead.
//
// # What was added to the emulator
//
// The emulator keeps its data in memory. The peer also writes each successful write to
// a journal, before the reply, and replays the journal when it restarts. So it keeps
// acknowledged writes, as Cosmos DB does. Reading an absent item, and creating an item
// in an absent container, give 404 instead of the emulator's 500, with the substatus
// 1003 if the container is absent. The account's own addresses begin with http
// instead of https.
//
// # What the peer can't show
//
// Creating an item is atomic: of many creates of one id in one partition, one gives
// 201 and the others 409. A ledger needs no more. The rest is simplified:
//
//   - All consistency levels are the same, because there is one copy of the data. The
//     account reports Session, and one region for writes.
//   - Nothing is throttled (429), retried (449), or in failover (403). Each request
//     costs 1 request unit. Keys are not checked.
//   - Queries ignore the header that names their partition. A query without the
//     partition in its text is right on Cosmos DB and wrong here.
//   - GetCurrentTimestamp gives 400. Transactional batches aren't rolled back. There
//     are no offers, so throughput can't be checked. A time to live never deletes
//     anything. Indexing policies are stored and do nothing.
//   - Error bodies differ, so tests may check only the status.
//   - The clock is this machine's, or off by a fixed offset. The speed says nothing
//     about Cosmos DB.
package cosmospeer
