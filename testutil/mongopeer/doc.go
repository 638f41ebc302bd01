// Package mongopeer gives tests a MongoDB server: the one named in the environment
// variable MONGODB_URI, or else a MongoDB-compatible peer (FerretDB on SQLite) that
// it builds and starts.
//
// The peer is a small program in a separate module, in the folder server, so that its
// 120 dependencies never reach this module. It is built once, which takes one or two
// minutes, and kept in the user's cache folder; test binaries that need it at the
// same time wait for one build. It runs as a separate process, on a free port of the
// loopback interface, with its data in a temporary folder. It ends with the test
// binary, even when that is killed, because it watches a pipe whose other end the
// test binary holds.
//
// If there is no peer (no Go command, no network for the first build, or this package
// used from the module cache, which doesn't contain nested modules), tests are
// skipped. If the environment variable REQUIRE_STORES, a list separated by commas,
// contains "mongo", they fail instead.
//
// # What the peer can't show
//
// Inserts are atomic and durable as in MongoDB, which is all that a ledger needs. The
// peer is one standalone server: it has no elections, rollbacks or stale secondaries,
// and majority means nothing. Its conditional updates are not atomic. A sorted find
// scans the collection, so keep collections small. Its speed says nothing about
// MongoDB's.
//
// # Real servers
//
// [StartSet] starts a replica set of the mongod that the environment variable MONGOD names, and
// [StartCluster] a sharded cluster with the mongos that MONGOS names. Without them, tests that need
// them are skipped, and say so; with "mongod" in REQUIRE_STORES they fail. make mongodb runs what
// there is for them: conformance on a set and through a router; workers through step-downs, kills
// and partitions with rollbacks; the least rights. An election takes 2 to 4 s, since the time-out
// is 2 s.
//
// Members and clients reach a member only through a proxy, which can cut the members off from each
// other. It tells them apart by what mongod says of itself with enableTestCommands. Servers end with
// the test binary, as the peer does. This needs a Unix system and sh.
//
// How the servers are started, initiated, cut off and ended is tested with a stand-in: a program
// that takes the same flags and notes what it is asked. No real mongod could be had where this was
// written, so nothing else of it has run.
package mongopeer
